"""Groups on a cluster: each is one task, which prepares what its points share and judges its units.

The question travels to the workers once, points with the tasks; scores come back. What a worker had
begun when it was lost, others begin anew.
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mercer.resources import config
from mercer.rows.dask.cluster import GONE, LostError, brought, cancel, time_alone
from mercer.rows.dask.tasks import worker_share
from mercer.selection.run import Finished, ScheduledWork, run
from mercer.selection.sharing import Group, Judged, groups
from mercer.selection.sharing.base import Stop, Stopped, refits
from mercer.selection.task import Point, Task

_LISTEN = 0.2  # seconds between looks at the clock and at who may want to stop


@dataclass(frozen=True, eq=False)
class JudgedUnit:
    """What came back of a unit: which points and folds it was about, and how they did."""

    kind: str
    points: tuple[int, ...]
    folds: tuple[int, ...]
    judged: dict[tuple[int, int], Judged]


class ElsewhereGroup(Group):
    """Stands for a group that was judged on a worker."""

    def __init__(self, unit: JudgedUnit) -> None:
        self.points, self.units, self.name = unit.points, (unit.folds,), unit.kind

    @property
    def kind(self) -> str:
        """Name of what is shared."""
        return self.name

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Raise: it was judged already."""
        raise NotImplementedError("this group was judged on a worker")


def run_on_cluster(work: ScheduledWork, client: Any, task: Task, points: Sequence[Point]) -> None:
    """Judge all units of all groups on the workers of a cluster; see `scheduler.run`.

    Parameters
    ----------
    work : Work
        Whom to ask and tell; its groups are those of the task and the points.
    client : distributed.Client
        The cluster.
    task : Task
        What is tuned.
    points : sequence of dict
        Settings to judge.
    """
    waiting: dict[int, tuple[int, ...]] = {}
    for number, group in enumerate(work.groups):
        units = tuple(k for k in range(len(group.units)) if not work.done(group, k))
        if units:
            waiting[number] = units
    while waiting:
        try:
            judge_waiting(work, client, task, points, waiting)
        except LostError:
            continue  # the question was lost with all workers that had it: it is sent again


def judge_waiting(
    work: ScheduledWork,
    client: Any,
    task: Task,
    points: Sequence[Point],
    waiting: dict[int, tuple[int, ...]],
) -> None:
    """Send what waits, and keep what comes back; what is kept no longer waits."""
    question = client.scatter(task, broadcast=True, hash=False)
    sent = {
        client.submit(judge_group, question, list(points), number, units, pure=False): number
        for number, units in waiting.items()
    }
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for future in sent:
        future.add_done_callback(done.put)
    alone: float | None = None
    try:
        while waiting:
            if work.stopping():
                raise Stopped
            try:
                future = done.get(timeout=_LISTEN)
            except queue.Empty:
                if question.status in GONE:
                    raise LostError from None
                alone = time_alone(client, alone)
                continue
            found = brought(client, future)
            del waiting[sent[future]]
            work.keep([Finished(ElsewhereGroup(unit), 0, unit.judged) for unit in found])
    finally:
        cancel(client, [future for future, number in sent.items() if number in waiting])


def judge_group(
    task: Task, points: list[Point], number: int, units: tuple[int, ...]
) -> list[JudgedUnit]:
    """Prepare a group on a worker, and judge some of its units there."""
    group, found = groups(task, points)[number], list[JudgedUnit]()

    def keep(finished: Sequence[Finished]) -> None:
        for one in finished:
            made = one.group
            unit = JudgedUnit(made.kind, made.points, made.units[one.unit], one.judged)
            found.append(unit)

    def instead(failed: Group, some: Sequence[int], error: BaseException | None) -> list[Group]:
        folds = sorted(fold for unit in some for fold in failed.units[unit])
        return [] if failed is not group else list(refits(task, points, failed.points, folds))

    with config(**worker_share()):
        run(
            ScheduledWork(
                [group],
                done=lambda made, k: made is group and k not in units,
                keep=keep,
                stopping=lambda: False,
                instead=instead,
            )
        )
    return found
