"""Run groups of candidates in threads, or as tasks on a Dask cluster.

As many threads as the library may use judge units, each with one thread of its own, linear
algebra on one thread, and an equal share of the memory; the last unit may spread over all
threads. The calling thread prepares groups, with the threads that are idle then, and otherwise
listens: to results, to Ctrl-C, to whoever may ask to stop. What prepared groups hold together
stays within the memory budget; a group that is too large alone is replaced by others.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn

from mercer.backends.lapack import one_blas_thread
from mercer.deadline import TimeLimitError, within
from mercer.resources import call_threads, config, memory_budget
from mercer.rows.dask.cluster import GONE, LostError, brought, cancel, time_alone
from mercer.selection.sharing import Group, Judged, Stop, Stopped, groups
from mercer.selection.sharing.base import refits
from mercer.selection.task import Point, Task

_LISTEN = 0.05  # seconds between looks at the clock and at who may want to stop
_LOOK = 0.5  # seconds after which an idle thread looks whether it is still wanted
_LEAVE = 0.5  # seconds that units get to end once they were told to
_REPLACED = (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


@dataclass(frozen=True, eq=False)
class Finished:
    """A unit that was judged, or what went wrong."""

    group: Group
    unit: int
    judged: dict[tuple[int, int], Judged]
    error: BaseException | None = None


@dataclass(frozen=True)
class ScheduledWork:
    """What is to be run, and whom to ask and tell.

    Attributes
    ----------
    groups : iterable of Group
        In the order in which they are taken up.
    done : callable
        Tells of a group and the number of a unit whether it need not be judged.
    keep : callable
        Told a batch of units when they are finished, on the calling thread.
    stopping : callable
        Asked now and then on the calling thread; true stops everything.
    instead : callable
        Returns groups that take the place of units that failed with an error, or, where there is
        none, do not fit the memory; none where the error should be raised.
    left : callable
        Returns seconds that preparing may still take; None for any number. Units need none: they
        run in other threads, which listen.
    """

    groups: Iterable[Group]
    done: Callable[[Group, int], bool]
    keep: Callable[[Sequence[Finished]], None]
    stopping: Callable[[], bool]
    instead: Callable[[Group, Sequence[int], BaseException | None], list[Group]]
    left: Callable[[], float | None] = lambda: None


def run(work: ScheduledWork) -> None:
    """Judge all units of all groups.

    Raises `Stopped` when `stopping` said so, and whatever else ended the work early; units that
    were finished before have been kept, no other.
    """
    threads, budget = call_threads(np.inf), memory_budget()
    pool = _Pool(threads, budget)
    shift = _Shift(work, pool, budget)
    # filters of warnings belong to the process: threads that change them for a while, and change
    # them back in another order, would leave them changed
    with warnings.catch_warnings():
        try:
            try:
                pool.start()  # in here, so that wherever Ctrl-C comes no thread is left behind
                shift.work_through()
            finally:
                pool.dismiss()
        finally:
            pool.over = True  # said again, for Ctrl-C may have come before `dismiss` could
            shift.clear()


class _Shift:
    """One run: what waits, what is held, what is being judged."""

    def __init__(self, work: ScheduledWork, pool: _Pool, budget: int) -> None:
        self.work, self.pool, self.budget = work, pool, budget
        self.waiting = deque(work.groups)
        self.running: dict[int, tuple[Group, int]] = {}  # by identity: the group, units to come

    def work_through(self) -> None:
        while True:
            self._take_up()
            if not self.running:
                return
            finished = self.pool.collect(_LISTEN)
            self._record(finished)
            if self.work.stopping():
                raise Stopped

    def clear(self) -> None:
        for group, _ in self.running.values():
            group.release()
        self.running.clear()

    def _take_up(self) -> None:
        """Prepare groups until there is work for all threads, or no memory for more."""
        while self.waiting and self._can_take(self.waiting[0]):
            group = self.waiting.popleft()
            units = [k for k in range(len(group.units)) if not self.work.done(group, k)]
            if not units:
                continue
            if group.size > self.budget and self._replaced(group, units):
                continue
            try:
                with within(self.work.left(), "tune"):
                    self._prepare(group)
            except TimeLimitError:
                group.release()
                if not self.work.stopping():  # the limit is that of a fit around the search
                    raise
                raise Stopped from None
            except _REPLACED as error:
                group.release()
                if not self._replaced(group, units, error):
                    raise
                continue
            self.running[id(group)] = (group, len(units))
            self.pool.give(group, units, last=not self.waiting)

    def _can_take(self, group: Group) -> bool:
        """Return whether a thread would be idle otherwise, and the memory suffices."""
        if group.alone or any(other.alone for other, _ in self.running.values()):
            return not self.running
        idle = self.pool.idle()
        if type(group).prepare is Group.prepare:  # costs nothing: two units ahead for each thread
            idle += 2 * self.pool.size
        in_use = sum(other.size for other, _ in self.running.values())
        return idle > 0 and (not self.running or in_use + group.size <= self.budget)

    def _prepare(self, group: Group) -> None:
        idle = self.pool.idle()
        if idle == self.pool.size:
            group.prepare()
            return
        with config(threads=max(1, idle)), one_blas_thread():
            group.prepare()

    def _replaced(
        self, group: Group, units: Sequence[int], error: BaseException | None = None
    ) -> bool:
        others = self.work.instead(group, units, error)
        self.waiting.extendleft(reversed(others))
        return bool(others)

    def _record(self, finished: Sequence[Finished]) -> None:
        good = [one for one in finished if one.error is None]
        if good:
            self.work.keep(good)
        for one in finished:
            group, left = self.running[id(one.group)]
            self.running[id(group)] = (group, left - 1)
            if left == 1:
                del self.running[id(group)]
                group.release()
            if one.error is None:
                continue
            replaceable = isinstance(one.error, _REPLACED)
            if not (replaceable and self._replaced(group, [one.unit], one.error)):
                raise one.error


class _Pool:
    """Daemon threads that judge units: one that does not listen to `stop` is left behind.

    Parameters
    ----------
    size : int
        How many.
    memory : int
        Bytes that units may take together.
    """

    def __init__(self, size: int, memory: int) -> None:
        self.size, self.memory = size, memory
        self.pending = 0  # units given and not collected
        self._jobs: queue.SimpleQueue[tuple[Group, int, int] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self.over = False  # a plain flag: setting it is one step that nothing can interrupt
        settings = sklearn.get_config()
        self._threads = [
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(self._serve, settings),
                name=f"mercer-judge-{number}",
                daemon=True,
            )
            for number in range(size)
        ]

    def start(self) -> None:
        """Let the threads begin; whoever calls this sees to it that they are dismissed."""
        for thread in self._threads:
            thread.start()

    def idle(self) -> int:
        """Count the threads that have nothing to do; negative where units wait for a thread."""
        return self.size - self.pending

    def give(self, group: Group, units: Sequence[int], last: bool) -> None:
        """Hand units to whoever is idle; `last` tells that no other will follow."""
        self.pending += len(units)
        for unit in units:
            spread = last and group.spreads and unit == units[-1]
            self._jobs.put((group, unit, self.size if spread else 1))

    def collect(self, timeout: float) -> list[Finished]:
        """Return all units that are finished, waiting a little for the first."""
        found = []
        try:
            found.append(self._results.get(timeout=timeout))
            while True:
                found.append(self._results.get_nowait())
        except queue.Empty:
            pass
        self.pending -= len(found)
        return found

    def dismiss(self) -> None:
        """Tell all threads to leave, and wait a little for them."""
        self.over = True
        for _ in self._threads:
            self._jobs.put(None)
        end = time.monotonic() + _LEAVE
        for thread in self._threads:
            if thread.is_alive():  # a start that was interrupted may not have got so far
                thread.join(max(0.0, end - time.monotonic()))

    def _serve(self, settings: dict[str, Any]) -> None:
        share = max(1, self.memory // self.size)
        with config(memory=share), sklearn.config_context(**settings):
            while not self.over:
                try:
                    job = self._jobs.get(timeout=_LOOK)
                except queue.Empty:
                    continue
                if job is not None and not self.over:
                    self._results.put(self._judged(*job))

    def _judged(self, group: Group, unit: int, threads: int) -> Finished:
        memory = {"memory": self.memory} if group.alone else {}
        try:
            with one_blas_thread(), config(threads=threads, **memory):
                return Finished(group, unit, group.judge(unit, lambda: self.over))
        except BaseException as error:  # handed to the calling thread
            return Finished(group, unit, {}, error)


# --- on a cluster --------------------------------------------------------------------------------
#
# Each group is one task, which prepares what its points share and judges its units. The question
# travels to the workers once, points with the tasks; scores come back. What a worker had begun when
# it was lost is begun again by others.

_LISTEN_CLUSTER = 0.2  # seconds, as above


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
    """Judge all units of all groups on the workers of a cluster; see `run`.

    Parameters
    ----------
    work : ScheduledWork
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
                future = done.get(timeout=_LISTEN_CLUSTER)
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
    from mercer.rows.dask.tasks import worker_share  # noqa: PLC0415  imports Dask

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
