"""Groups on the cores: prepared one after the other, their units judged side by side.

As many threads as the library may use judge units, each with one thread of its own, linear algebra
on one thread, and an equal share of the memory; the last unit may spread over all threads. The
calling thread prepares groups, with the threads that are idle then, and otherwise listens: to
results, to Ctrl-C, to whoever may ask to stop. What prepared groups hold together stays within the
memory budget; a group that is too large alone is replaced by others.
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

from mercer.backends.blas import one_blas_thread
from mercer.deadline import TimeLimitError, within
from mercer.resources import call_threads, config, memory_budget
from mercer.selection.sharing.base import Group, Judged, Stopped

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
class Work:
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


def run(work: Work) -> None:
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

    def __init__(self, work: Work, pool: _Pool, budget: int) -> None:
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
