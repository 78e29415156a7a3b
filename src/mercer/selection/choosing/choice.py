"""Which kernel? A small set of them, each with its parameters tuned, compared on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from mercer.array_types import Array
from mercer.data import Table
from mercer.data.labels import are_labels
from mercer.foreign_arrays import reading_arrays
from mercer.machines import SVC, KernelRidge
from mercer.machines.base.parameters import is_real
from mercer.progress import shown
from mercer.selection.choosing.candidates import Candidate, of_numbers, of_strings
from mercer.selection.choosing.contender import Contender, plainest, reason
from mercer.selection.choosing.questions import answers, are_strings, refuse, rows_of, sample
from mercer.selection.choosing.table_candidates import left_out, of_table
from mercer.selection.default_grids import known_axes
from mercer.selection.outcome import NothingJudgedError, Tuning
from mercer.selection.running.folds import folds_of
from mercer.selection.running.progress import TuningCallback, TuningProgress
from mercer.selection.running.rows import take_rows
from mercer.selection.running.task import machine_at
from mercer.selection.tuning import tune

_REFERENCE = "gaussian"  # the family that others' time is measured by
_UNBOUNDED = "polynomial"  # the family that grows fastest beyond the rows seen
_PATIENCE = 5.0  # times the seconds of that family
_UNLIMITED = 30.0  # seconds that any family may take
_LEAST_SECONDS = 0.1  # of a family whose share of the time limit is used up


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice of kernel, and why.

    Attributes
    ----------
    machine : Pipeline
        Preparation and machine, fitted to all rows.
    contenders : tuple of Contender
        What was compared, from plain to rich.
    chosen : int
        Which of them was taken.
    reason : str
        Why.
    notes : tuple of str
        What else there is to know: rows that were sampled, columns that were left out.
    """

    machine: Any
    contenders: tuple[Contender, ...]
    chosen: int
    reason: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        width = max(len(one.name) for one in self.contenders)
        head = f"{'score':>7}{'':10}  {'behind':>7}{'':10}  points  seconds"
        lines = [f"  {'kernel':{width}}  {head}"]
        for k, one in enumerate(self.contenders):
            best, sign = one.tuning.best, "*" if k == self.chosen else " "
            mean, error = one.tuning.mean[best], one.tuning.standard_error[best]
            lines.append(
                f"{sign} {one.name:{width}}  {mean:7.4f} +- {error:.4f}  {one.behind:7.4f} +- "
                f"{one.behind_error:.4f}  {len(one.tuning.points):6d}  {one.tuning.seconds:7.2f}"
            )
        return "\n".join([*lines, self.reason, *self.notes])


@reading_arrays
def choose(
    X: Any,
    y: Any,
    *,
    machine: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    max_rows: int = 5000,
    random_state: int = 0,
    journal: Any = None,
    callback: Any = None,
    time_limit: float | None = None,
) -> Choice:
    """Compare kernels on the data, and fit the one to take.

    Linear, polynomial, Gaussian, Matern and Laplacian kernels on scaled columns, for tables of
    mixed columns also a sum with one kernel for each kind, for strings words and pieces of letters.
    Each has its parameters tuned on the same folds. From 500 rows on the plainest family is taken
    that is not behind the best by more than one standard error of their difference; with fewer
    rows, where that error hides large differences, the best.

    Parameters
    ----------
    X : array-like, sparse matrix, table or list of str
        Rows. Tables (of `mercer.data`, pandas, polars or pyarrow) may have numbers, categories,
        dates, missing entries and text columns; `mercer.data.TablePreparation` makes numbers of
        them.
    y : array-like
        Labels or targets. Whole numbers of more than 30 different values are targets.
    machine : estimator, optional
        What is fitted: a machine of this library with a parameter `kernel`. By default `SVC()` for
        labels and `KernelRidge()` for targets.
    cv : int, splitter, iterable or "loo"
        As in scikit-learn; rows are shuffled for a number of folds.
    scoring : str, callable or None
        As in scikit-learn.
    max_rows : int
        Compare on a sample of so many rows; the fit has all of them.
    random_state : int
        Seed of the sample and the folds.
    journal : path, optional
        A folder that keeps all results, to go on after an interruption.
    callback : callable, optional
        Called with `TuningProgress` of the family at work; a true return value ends the comparison
        with the families judged so far.
    time_limit : float, optional
        Seconds for the whole comparison, shared by the families: each has an equal part of what
        is left when it begins. Without it, no family takes more than five times as long as the
        Gaussian one, once that is more than half a minute: what was judged by then counts.

    Returns
    -------
    Choice
        The fitted pipeline and a table that explains it; print it.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import choose
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = choose(X, (X**2).sum(axis=1) > 1.5)
    >>> found.contenders[0].name, found.contenders[found.chosen].name
    ('linear', 'gaussian')
    >>> found.machine.predict([[0.0, 0.0], [2.0, 2.0]]).tolist()
    [False, True]
    """
    X, y = rows_of(X), answers(y)
    machine = (SVC() if are_labels(y) else KernelRidge()) if machine is None else machine
    refuse(X, y, machine, max_rows, scoring)
    candidates, more = _candidates(X)
    found = compare(
        candidates, X, y, machine, cv=cv, scoring=scoring, max_rows=max_rows,
        random_state=random_state, journal=journal, callback=callback, time_limit=time_limit,
    )  # fmt: skip
    return replace(found, machine=found.machine.fit(X, y), notes=(*more, *found.notes))


def compare(
    candidates: Sequence[Candidate],
    X: Any,
    y: Array,
    machine: Any,
    *,
    axes: dict[str, Sequence[Any]] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    max_rows: int = 5000,
    random_state: int = 0,
    journal: Any = None,
    callback: Any = None,
    time_limit: float | None = None,
) -> Choice:
    """Compare candidates as `choose` does, and leave the fit to the caller.

    Parameters
    ----------
    candidates : sequence of Candidate
        From plain to rich. Polynomials come last for a quantity, and are taken only if they are
        best: beyond the rows seen they grow without bound, and one such row costs more than all
        others gain.
    X, y, machine, cv, scoring, max_rows, random_state, journal, callback, time_limit
        As in `choose`.
    axes : dict, optional
        What is tuned beside the kernel; by default what is known of the machine.

    Returns
    -------
    Choice
        Its machine has the parameters chosen, and is not fitted.
    """
    if is_regressor(machine):
        candidates = sorted(candidates, key=lambda one: one.name == _UNBOUNDED)
    rows, notes = sample(y, is_classifier(machine), max_rows, random_state)
    few, truth = take_rows(X, rows), y[rows]
    splits = _folds(machine, few, truth, cv, random_state, sampled=len(rows) < len(y))
    axes = _axes(machine, truth) if axes is None else axes
    comparison = Comparison(callback, candidates, time_limit)
    with shown("choose", solvers=False):
        for one in comparison.order():
            comparison.add(
                one,
                partial(
                    tune, one.pipeline(machine), few, truth, grid=one.grid(axes), cv=splits,
                    scoring=scoring, journal=_file(journal, one.name),
                    time_limit=comparison.share(),
                ),
            )  # fmt: skip
    contenders = comparison.contenders()
    chosen = plainest(contenders, len(truth))
    taken, point = comparison.judged[chosen][0], contenders[chosen].tuning.best_params
    made = machine_at(taken.pipeline(machine), point)
    notes += comparison.notes
    return Choice(made, contenders, chosen, reason(contenders, chosen), tuple(notes))


class Comparison:
    """Families judged one after the other, until somebody asks to stop."""

    def __init__(
        self,
        callback: TuningCallback | None,
        candidates: Sequence[Candidate],
        time_limit: float | None,
    ) -> None:
        self.callback, self.stopped = callback, False
        self.candidates, self.left, self.begun = candidates, len(candidates), time.perf_counter()
        self.limit, self.reference = time_limit, 0.0
        self.judged: list[tuple[Candidate, Tuning]] = []
        self.notes: list[str] = []

    def order(self) -> list[Candidate]:
        """Return the families in the order of judging; the first is the measure of time.

        Linear and polynomial kernels at large costs can take sixty times as long as the Gaussian.
        """
        return sorted(self.candidates, key=lambda one: one.name != _REFERENCE)

    def share(self) -> float | None:
        """Return the seconds that the next family may take."""
        if self.limit is not None:
            left = self.limit - (time.perf_counter() - self.begun)
            return max(left / max(self.left, 1), _LEAST_SECONDS)
        return max(_PATIENCE * self.reference, _UNLIMITED) if self.reference else None

    def add(self, one: Candidate, judge: Callable[..., Tuning]) -> None:
        """Judge a family; one that was not reached, or not judged to the end, is noted."""
        self.left -= 1
        if self.stopped:
            self.notes.append(f"{one.name} was not compared: the callback asked to stop.")
            return
        try:
            tuning = judge(callback=None if self.callback is None else self._ask)
        except NothingJudgedError as stopped:
            if not self.judged:
                raise
            self.notes.append(f"{one.name} was not compared: {stopped}.")
            return
        self.judged.append((one, tuning))
        if one.name == _REFERENCE:
            self.reference = tuning.seconds
        if not tuning.complete:
            self.notes.append(f"{one.name} was not judged to the end ({tuning.status}).")

    def _ask(self, progress: TuningProgress) -> bool:
        self.stopped = bool(self.callback is not None and self.callback(progress))
        return self.stopped

    def contenders(self) -> tuple[Contender, ...]:
        """Compare the best points of all families with that of the leader, fold by fold."""
        self.judged.sort(key=lambda pair: self.candidates.index(pair[0]))
        scores = np.array([tuning.scores[tuning.best] for _, tuning in self.judged])
        difference = scores[int(np.argmax(scores.mean(axis=1)))] - scores
        folds = scores.shape[1]
        error = np.zeros(len(scores))
        if folds > 1:
            error = difference.std(axis=1, ddof=1) / np.sqrt(folds)
        return tuple(
            Contender(one.name, tuning, float(d.mean()), float(e))
            for (one, tuning), d, e in zip(self.judged, difference, error, strict=True)
        )


def _candidates(X: Any) -> tuple[list[Candidate], list[str]]:
    if isinstance(X, Table):
        return of_table(X), left_out(X)
    if are_strings(X):
        return of_strings(list(X)), []
    return of_numbers(X), []


def _axes(machine: Any, y: Array) -> dict[str, Sequence[Any]]:
    """Return what is tuned beside the kernel; its values do not depend on the rows."""
    rows = np.arange(len(y), dtype=np.float64)[:, None]
    axes = known_axes(machine, rows, y)
    return {name: values for name, values in axes.items() if name != "kernel"}


def _folds(
    machine: Any, X: Any, y: Array, cv: Any, seed: int, *, sampled: bool
) -> tuple[tuple[Array, Array], ...]:
    number = cv is None or (isinstance(cv, Integral) and is_real(cv))
    if sampled and not (number or isinstance(cv, str) or hasattr(cv, "split")):
        raise ValueError(
            "choose: cv lists rows, but only a sample of them is compared; raise max_rows, or pass "
            "a number of folds or a splitter"
        )
    return folds_of(machine, X, y, cv, None, seed)


def _file(folder: Any, name: str) -> Path | None:
    if folder is None:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{name.replace(' ', '-')}.jsonl"
