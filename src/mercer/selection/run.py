"""Schedule the fits of a search on the cores, and evaluate its candidates."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import sklearn

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.deadline import TimeLimitError, now, within
from mercer.progress import is_shown, show
from mercer.resources import MemoryBudgetError, call_threads, config, memory_budget
from mercer.selection.identity import digest
from mercer.selection.journal import Journal
from mercer.selection.sharing import groups
from mercer.selection.sharing.base import Group, Judged, Refit, Stopped, refits
from mercer.selection.task import Point, Task, TuningCallback, TuningProgress

# --- scheduler -----------------------------------------------------------------------------------
#
# Groups on the cores: prepared one after the other, their units judged side by side.
#
# As many threads as the library may use judge units, each with one thread of its own, linear
# algebra on one thread, and an equal share of the memory; the last unit may spread over all
# threads. The calling thread prepares groups, with the threads that are idle then, and otherwise
# listens: to results, to Ctrl-C, to whoever may ask to stop. What prepared groups hold together
# stays within the memory budget; a group that is too large alone is replaced by others.

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


# --- evaluator -----------------------------------------------------------------------------------
#
# The one who judges points for a search: runs groups, remembers all results, can be stopped.

_ALL = ""  # name of the set of all rows


@dataclass(eq=False)
class Evaluator:
    """Judges points, each once.

    Attributes
    ----------
    task : Task
        What is tuned.
    metric : str
        Name of the scorer that searches see.
    rng : numpy Generator
        For searches that draw.
    client : distributed.Client or None
        A cluster whose workers judge groups, one task for each; None judges them here.
    points : list of dict
        All points seen, in the order in which they came.
    table : dict
        Everything judged, by (rows, point, fold): a name of the set of rows, empty for all of
        them, the position of the point, the number of the fold.
    work : Counter
        How many fits each kind of group judged.
    notes : list of str
        What searches said about how sure the outcome is.
    """

    task: Task
    metric: str
    rng: np.random.Generator
    journal: Journal | None = None
    callback: TuningCallback | None = None
    time_limit: float | None = None
    client: Any = None
    points: list[Point] = field(default_factory=list)
    table: dict[tuple[str, int, int], Judged] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    work: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    started: float = field(default_factory=now)
    stopped: str = ""
    _places: dict[str, int] = field(default_factory=dict)
    _keys: list[str] = field(default_factory=list)
    _asked: set[tuple[str, int, int]] = field(default_factory=set)

    def evaluate(
        self,
        points: Sequence[Point],
        folds: Sequence[int] | None = None,
        rows: Array | None = None,
    ) -> Array:
        """Judge points; what was judged before is not judged again.

        Parameters
        ----------
        points : sequence of dict
            Settings of parameters.
        folds : sequence of int, optional
            Folds to judge them on; all by default.
        rows : int array, optional
            Rows to which everything is restricted, learning and judging; all by default.

        Returns
        -------
        (points, folds) array
            Scores by the metric, the larger the better; NaN where a fit failed.
        """
        chosen = range(len(self.task.splits)) if folds is None else [int(fold) for fold in folds]
        subset = self._name(rows)
        places = [self._place(point) for point in points]
        self._asked.update((subset, place, fold) for place in places for fold in chosen)
        missing: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for place in dict.fromkeys(places):
            lacking = tuple(f for f in chosen if (subset, place, f) not in self.table)
            if lacking:
                missing[lacking].append(place)
        task = self.task if rows is None or not missing else self._on_rows(rows, points[0])
        for lacking, some in missing.items():
            _Round(self, subset, lacking, some, task.on_folds(lacking)).run()
        scores = [[self._score((subset, place, f)) for f in chosen] for place in places]
        return np.array(scores, dtype=np.float64).reshape(len(places), len(chosen))

    def _on_rows(self, rows: Array, point: Point) -> Task:
        """Restrict everything to some rows; a point may make them a square matrix."""
        try:
            machine = self.task.machine_at(point)
        except (TypeError, ValueError):  # fits will say what is wrong with it
            machine = self.task.machine
        return self.task.on_rows(np.asarray(rows), machine)

    def say(self, note: str) -> None:
        """Keep a sentence about how sure the outcome is."""
        self.notes.append(note)

    def scores(self, metric: str | None = None, train: bool = False) -> Array:
        """Return scores of all points on all folds, with all rows: NaN where there is none."""
        found = np.full((len(self.points), len(self.task.splits)), np.nan)
        for (subset, place, fold), judged in self.table.items():
            if subset == _ALL:
                found[place, fold] = self._value(judged, metric or self.metric, train)
        return found

    def names(self) -> list[str]:
        """Return the names of the scores."""
        found = dict.fromkeys(self.task.scorers)
        several = dict.fromkeys(name for one in self.table.values() for name in one.test)
        return list(found if not several or set(several) <= set(found) else several)

    def _value(self, judged: Judged, metric: str, train: bool) -> float:
        from_where = judged.train if train else judged.test
        spare = np.nan if self.task.error_score == "raise" else self.task.error_score
        return float(spare if judged.failure else from_where.get(metric, spare))

    def _score(self, key: tuple[str, int, int]) -> float:
        judged = self.table[key]
        return np.nan if judged.failure else self._value(judged, self.metric, False)

    def _name(self, rows: Array | None) -> str:
        if rows is None:
            return _ALL
        name = digest(np.asarray(rows))
        self.sizes[name] = len(rows)
        return name

    def _place(self, point: Point) -> int:
        """Return the position of a point among all, adding it if it is new."""
        try:
            key = digest(dict(sorted(point.items())))
        except (TypeError, AttributeError, RecursionError, ValueError) as error:
            if self.journal is not None:
                raise ValueError(
                    f"the point {point!r} cannot be written into a journal: its values can only be "
                    "told apart within this process. Use named functions, or no journal"
                ) from error
            key = f"object {id(point)}"
        if key not in self._places:
            self._places[key] = len(self.points)
            self._keys.append(key)
            self.points.append(point)
        return self._places[key]

    def key_of(self, place: int) -> str:
        """Return the name of a point in journals."""
        return self._keys[place]

    # --- while it runs ---------------------------------------------------------------------

    def progress(self) -> TuningProgress:
        """Return how far it is."""
        seconds = now() - self.started
        judged = self._asked & self.table.keys()
        lacking = {(subset, place) for subset, place, _ in self._asked - judged}
        known = {place for _, place, _ in self._asked}
        left = seconds * (len(self._asked) - len(judged)) / len(judged) if judged else np.nan
        scores = self.scores()
        whole = ~np.isnan(scores).any(axis=1)
        with np.errstate(invalid="ignore"):  # scores may be infinite
            means = np.where(whole, scores.mean(axis=1), -np.inf) if len(scores) else np.empty(0)
        best = int(means.argmax()) if whole.any() else None
        return TuningProgress(
            len(known - {place for _, place in lacking}),
            len(known),
            None if best is None else self.points[best],
            float("nan") if best is None else float(means[best]),
            seconds,
            float(left),
        )

    def stopping(self) -> bool:
        """Return whether the time is over or somebody asked to stop."""
        left = self.left()
        if not self.stopped and left is not None and left < 0:
            self.stopped = "the time limit was reached"
        return bool(self.stopped)

    def left(self) -> float | None:
        """Return the seconds until the time limit; None where there is none."""
        if self.time_limit is None:
            return None
        return self.time_limit - (now() - self.started)

    def best(self) -> Point | None:
        """Return the point with the best mean score; None without one, or if it is to end."""
        if self.stopping():
            return None
        return self.progress().best_params

    def report(self) -> None:
        """Show how far it is, and ask the callback."""
        if is_shown():
            progress = self.progress()
            show(str(progress), progress.done / max(1, progress.points))
        if self.callback is not None and self.callback(self.progress()):
            self.stopped = "the callback asked to stop"


@dataclass(eq=False)
class _Round:
    """Some points on some folds of some rows: groups, and where their results belong."""

    owner: Evaluator
    subset: str
    folds: tuple[int, ...]
    places: list[int]
    task: Task
    taken_up: bool = False  # whether something came from a journal

    def run(self) -> None:
        points = [self.owner.points[place] for place in self.places]
        work = ScheduledWork(
            groups(self.task, points),
            done=self._known,
            keep=self._keep,
            stopping=self.owner.stopping,
            instead=partial(self._instead, points),
            left=self.owner.left,
        )
        if self.owner.client is None:
            run(work)
        else:
            from mercer.selection.dask_cluster import run_on_cluster  # noqa: PLC0415  has Dask

            run_on_cluster(work, self.owner.client, self.task, points)
        if self.taken_up:
            self.owner.report()

    @cached_property
    def _name(self) -> str:
        keys = [self.owner.key_of(place) for place in self.places]
        return digest((self.subset, self.folds, keys))

    def _key(self, group: Group, unit: int) -> str:
        kind, folds = group.kind, group.units[unit]
        return f"{self._name} {kind} {digest((tuple(group.points), tuple(folds)))}"

    def _known(self, group: Group, unit: int) -> bool:
        """Return whether a unit is in the table already, from a journal."""
        journal = self.owner.journal
        if journal is None or (key := self._key(group, unit)) not in journal.finished:
            return False
        self._enter([Finished(group, unit, journal.finished[key])])
        self.taken_up = True
        return True

    def _keep(self, finished: Sequence[Finished]) -> None:
        if self.owner.journal is not None:
            units = [(self._key(one.group, one.unit), one.judged) for one in finished]
            self.owner.journal.write(units)
        self._enter(finished)
        for one in finished:
            self.owner.work[one.group.kind] += len(one.judged)
        self.owner.report()

    def _enter(self, finished: Sequence[Finished]) -> None:
        for one in finished:
            for (position, fold), judged in one.judged.items():
                key = (self.subset, self.places[position], self.folds[fold])
                self.owner.table[key] = self._checked(judged)

    def _checked(self, judged: Judged) -> Judged:
        if judged.failure and self.task.error_score == "raise":
            raise ValueError(judged.failure)
        metric = self.owner.metric
        if judged.test and metric not in judged.test and not judged.trouble:
            raise ValueError(
                f"metric={metric!r} is not among the scores ({', '.join(judged.test)})"
            )
        return judged

    def _instead(
        self,
        points: Sequence[Point],
        group: Group,
        units: Sequence[int],
        error: BaseException | None,
    ) -> list[Group]:
        folds = sorted(fold for unit in units for fold in group.units[unit])
        if not isinstance(group, Refit):
            return refits(self.task, points, group.points, folds)
        if isinstance(error, MemoryBudgetError) and not group.alone:
            return [Refit(self.task, group.point, group.points[0], folds, alone=True)]
        return []
