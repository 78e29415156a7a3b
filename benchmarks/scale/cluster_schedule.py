"""Time and traffic of a fit on a cluster: a formula, and a simulation of the schedule beside it.

`python -m benchmarks.scale.cluster_schedule` prints both for one thousand million rows on a hundred
workers. A pass over the rows is one task for each block, then sums of eight results: first those of
one worker, then across workers. The scheduler handles one task after the other; results travel
through the one network card of the worker that adds them.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from math import ceil, log

FAN_IN = 8  # of `mercer.rows.dask.blocks`


@dataclass(frozen=True)
class Cluster:
    """A cluster, as `cluster_check` measured one worker; the bandwidth is a network's.

    Attributes
    ----------
    workers : int
        Each with one core.
    task : float
        Seconds of the scheduler for a task.
    latency : float
        Seconds until a worker hears of a task, and the scheduler of its end.
    bandwidth : float
        Bytes a second into a worker.
    add : float
        Bytes a second that a worker adds.
    """

    workers: int = 100
    task: float = 1.0e-3
    latency: float = 2.7e-3
    bandwidth: float = 1e9
    add: float = 20e9


@dataclass(frozen=True)
class Pass:
    """A pass over the rows: how many, in blocks of how many, seconds of each, bytes of the sum."""

    rows: int
    block: int
    row: float
    result: float
    shared: float

    @property
    def blocks(self) -> int:
        return ceil(self.rows / self.block)


def predicted(cluster: Cluster, work: Pass) -> tuple[float, float]:
    """Return seconds and bytes between workers of a pass, by the formula of the guide."""
    c, w = cluster, work
    each = ceil(w.blocks / c.workers)
    computing = each * (w.block * w.row) + each * w.result / c.add
    scheduling = c.task * w.blocks * (1 + 1 / FAN_IN)
    within = ceil(log(each, FAN_IN)) if each > 1 else 0
    across = ceil(log(c.workers, FAN_IN)) if c.workers > 1 else 0
    received = FAN_IN * w.result
    tree = within * (2 * c.latency + received / c.add)
    tree += across * (2 * c.latency + received / c.bandwidth + received / c.add)
    if within + across == 0:  # one block: its result still passes a sum
        tree = 2 * c.latency + w.result / c.add
    # the call travels first, then blocks hear of it, each there and back
    start = w.shared / c.bandwidth + 4 * c.latency + c.task
    moved = (c.workers - 1) * w.result + c.workers * w.shared
    return max(computing, scheduling) + tree + start, moved


class Simulation:
    """Tasks, a scheduler that handles one at a time, workers with one core and one card each."""

    def __init__(self, cluster: Cluster, work: Pass) -> None:
        self.cluster, self.work = cluster, work
        self.now = self.scheduler = 0.0
        self.free = [0.0] * cluster.workers  # when the core of each is free
        self.card = [0.0] * cluster.workers
        self.moved = cluster.workers * work.shared
        self.queue: list[tuple[float, int, int, int]] = []  # finished: when, node, worker, level
        self.count = 0

    def finish(self, when: float, node: int, worker: int, level: int) -> None:
        heapq.heappush(self.queue, (when, node, worker, level))

    def handled(self, when: float) -> float:
        """Return when the scheduler has dealt with a message that arrives then."""
        self.scheduler = max(self.scheduler, when) + self.cluster.task
        return self.scheduler

    def run(self) -> tuple[float, float]:
        """Return seconds and bytes."""
        c, w = self.cluster, self.work
        begin = w.shared / c.bandwidth + 2 * c.latency + self.handled(0.0)
        waiting = [deque[int]() for _ in range(c.workers)]
        for block in range(w.blocks):
            waiting[block * c.workers // w.blocks].append(block)
        places = [block * c.workers // w.blocks for block in range(w.blocks)]
        for worker, own in enumerate(waiting):
            for block in own:
                told = self.handled(0.0) + c.latency if block == own[0] else 0.0
                start = max(self.free[worker], told, begin)
                self.free[worker] = start + w.block * w.row
                self.finish(self.free[worker], block, worker, 0)
        done: dict[int, float] = {}
        while self.queue:
            when, block, _, _ = heapq.heappop(self.queue)
            done[block] = self.handled(when + c.latency)
        own = [[(done[b], place) for b in blocks] for place, blocks in grouped(places).items()]
        while max(map(len, own)) > 1:
            own = [self.level(parts) for parts in own]
        tops = [part for (part,) in own]
        while len(tops) > 1:
            tops = self.level(tops)
        return tops[0][0] + c.latency, self.moved

    def level(self, parts: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """Add results in groups of eight; return when each sum is there, and where."""
        if len(parts) == 1:
            return parts
        c, w, ended = self.cluster, self.work, []
        for i in range(0, len(parts), FAN_IN):
            group = parts[i : i + FAN_IN]
            place = group[0][1]
            ready = max(t for t, _ in group) + c.latency
            for _, other in group:
                if other != place:
                    self.card[place] = max(self.card[place], ready) + w.result / c.bandwidth
                    ready = max(ready, self.card[place])
                    self.moved += w.result
            ready = max(ready, self.free[place]) + len(group) * w.result / c.add
            self.free[place] = ready
            ended.append((self.handled(ready + c.latency), place))
        return ended


def grouped(places: list[int]) -> dict[int, list[int]]:
    """Return the blocks of each worker."""
    groups: dict[int, list[int]] = {}
    for block, place in enumerate(places):
        groups.setdefault(place, []).append(block)
    return groups


def compared(cluster: Cluster, work: Pass) -> tuple[float, float, float, float]:
    """Return seconds and bytes by the formula, then by the simulation."""
    return *predicted(cluster, work), *Simulation(cluster, work).run()


# Seconds of a row over m and over m^2, as `cluster_check` measured them on one worker with 100 and
# 300 features.
ROWS = {"moments": (14.4e-9, 0.0335e-9), "residual": (18.6e-9, 0.004e-9)}


def main() -> None:
    m, rows = 1000, 10**9
    print("workers  block  pass      formula s  simulation s  formula MB  simulation MB")
    for workers in (10, 100, 400):
        for block in (100_000, 1_000_000):
            for name, result in (("moments", 8.0 * m**2), ("residual", 32.0 * m)):
                p, q = ROWS[name]
                work = Pass(rows, block, p * m + q * m**2, result, 8.0 * m)
                t, b, ts, bs = compared(Cluster(workers), work)
                print(
                    f"{workers:7d} {block:6.0e} {name:9s} {t:10.1f} {ts:13.1f} "
                    f"{b / 1e6:11.1f} {bs / 1e6:14.1f}"
                )


if __name__ == "__main__":
    main()
