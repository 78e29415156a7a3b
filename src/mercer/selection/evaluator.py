"""Evaluate candidates for a search strategy, each once, with journal, progress and time limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.deadline import now
from mercer.progress import is_shown, show
from mercer.resources import MemoryBudgetError
from mercer.selection.identity import digest
from mercer.selection.journal import Journal
from mercer.selection.scheduler import Finished, ScheduledWork, run, run_on_cluster
from mercer.selection.sharing import Group, Judged, groups
from mercer.selection.sharing.base import Refit, refits
from mercer.selection.task import Point, Task, TuningCallback, TuningProgress

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
