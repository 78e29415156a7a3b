"""Function `choose`: compare kernel families by cross-validation and select one."""

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
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation
from mercer.data.column import are_labels
from mercer.data.preparation import Block, kinds_in, plan_of
from mercer.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Spectrum
from mercer.machines.base.parameters import is_real
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.svc import SVC
from mercer.progress import shown
from mercer.rows.foreign import reading_arrays
from mercer.rows.points import is_sparse
from mercer.selection.folds import count_rows, folds_of, indexable, shuffled, take_rows
from mercer.selection.grids import known_axes, typical_distance
from mercer.selection.task import TuningCallback, TuningProgress, machine_at
from mercer.selection.tuning import NothingJudgedError, Tuning, tune

# --- choice --------------------------------------------------------------------------------------
#
# Which kernel? A small set of them, each with its parameters tuned, compared on the same folds.

_REFERENCE = "gaussian"  # the family that others' time is measured by
_UNBOUNDED = "polynomial"  # the family that grows fastest beyond the rows seen
_PATIENCE = 5.0  # times the seconds of that family
_UNLIMITED = 30.0  # seconds that any family may take
_LEAST_SECONDS = 0.1  # of a family whose share of the time limit is used up


@dataclass(frozen=True, eq=False)
class Choice:
    """Result of kernel selection.

    Attributes
    ----------
    machine : Pipeline
        Preprocessing and estimator, fitted to all samples.
    contenders : tuple of Contender
        Compared kernel families, from simple to flexible.
    chosen : int
        Index of the selected family.
    reason : str
        Reason of the selection.
    notes : tuple of str
        Notes on subsamples and ignored columns.
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
    """Compare kernels by cross-validation and fit the best one.

    Compares linear, polynomial, Gaussian, Matern and Laplacian kernels on scaled columns. Tables
    with mixed columns also have a sum of one kernel per kind; strings have kernels on words and
    substrings. The hyperparameters of each are tuned on the same folds. With 500 samples or more,
    the simplest family within one standard error of the difference to the best is selected;
    otherwise, the best.

    Parameters
    ----------
    X : array-like, sparse matrix, table or list of str
        Samples. Tables (of `mercer.data`, pandas, polars or pyarrow) can have numbers, categories,
        dates, missing values and text; `mercer.data.TablePreparation` converts them.
    y : array-like
        Labels or targets. Integers with more than 30 distinct values are targets.
    machine : estimator, optional
        Estimator of Mercer with a parameter `kernel`. If None, `SVC()` for labels and
        `KernelRidge()` for targets.
    cv : int, splitter, iterable or "loo"
        Cross-validation folds, as in scikit-learn. If an integer, the folds are shuffled.
    scoring : str, callable or None
        Score, as in scikit-learn.
    max_rows : int
        Number of samples for the comparison. The fit uses all of them.
    random_state : int
        Random seed of subsample and folds.
    journal : path, optional
        Folder that records the results, to resume an interrupted run.
    callback : callable, optional
        Called with `TuningProgress`. Return True to stop the comparison and select among the
        evaluated families.
    time_limit : float, optional
        Time limit of the comparison in seconds. Each family gets an equal part of the remaining
        time. Without it, a family is stopped after five times the time of the Gaussian kernel,
        but at least half a minute, and keeps its best candidate.

    Returns
    -------
    Choice
        The fitted pipeline and the comparison. Print it for a summary.

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
    """Compare candidates as in `choose`, without the final fit.

    Parameters
    ----------
    candidates : sequence of Candidate
        Kernel families from simple to flexible. For regression, polynomials are last, because
        their extrapolation is unbounded; they are only selected if they are best.
    X, y, machine, cv, scoring, max_rows, random_state, journal, callback, time_limit
        See `choose`.
    axes : dict, optional
        Grid of other hyperparameters. If None, the default of the estimator.

    Returns
    -------
    Choice
        The selection; its estimator is not fitted.
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
            self.notes.append(f"{one.name} was not compared: stopped by the callback.")
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
            self.notes.append(f"{one.name} was not fully evaluated ({tuning.status}).")

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
            "choose: cv lists rows, but the comparison uses a subsample; increase max_rows, or "
            "pass a number of folds or a splitter"
        )
    return folds_of(machine, X, y, cv, None, seed)


def _file(folder: Any, name: str) -> Path | None:
    if folder is None:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{name.replace(' ', '-')}.jsonl"


# --- contender -----------------------------------------------------------------------------------
#
# Kernel families that were compared: which is taken, and why, in words.

_FEW_ROWS = 500  # below, an error of a few points of accuracy would excuse a plainer kernel


@dataclass(frozen=True, eq=False)
class Contender:
    """A kernel family with its best candidate.

    Attributes
    ----------
    name : str
        Name of the family.
    tuning : Tuning
        All candidates and scores.
    behind : float
        Mean score of the best family minus its own, on the same folds.
    behind_error : float
        Standard error of that difference; approximate, since folds share samples.
    """

    name: str
    tuning: Tuning
    behind: float
    behind_error: float


def plainest(contenders: tuple[Contender, ...], rows: int) -> int:
    """Return which is taken: the plainest that is behind by no more than its error."""
    if rows < _FEW_ROWS:
        return next(k for k, one in enumerate(contenders) if one.behind == 0.0)
    return next(k for k, one in enumerate(contenders) if one.behind <= one.behind_error)


def reason(contenders: tuple[Contender, ...], chosen: int) -> str:
    """Say why."""
    taken = contenders[chosen]
    if taken.behind == 0.0:
        behind = [one.behind > one.behind_error for one in contenders[:chosen]]
        why = "no simpler kernel was compared"
        if chosen and all(behind):
            why = "every simpler kernel scores lower by more than one standard error"
        elif chosen:
            why = "there are too few rows to prefer a simpler kernel"
        return f"Selected: {taken.name}. It has the best score, and {why}."
    best = next(one for one in contenders if one.behind == 0.0)
    return (
        f"Selected: {taken.name}. {best.name} scores {taken.behind:.2g} higher, within the "
        f"standard error of the difference ({taken.behind_error:.2g}), and {taken.name} is "
        "simpler."
    )


# --- candidates ----------------------------------------------------------------------------------
#
# Kernels worth comparing, each in a pipeline that prepares the rows for it, with its own grid.
#
# From plain to rich: linear, polynomials, Gaussian, Matern, Laplacian, and for tables of several
# kinds of columns a sum with a kernel for each kind. Strings are compared by words, and by pieces
# of letters.

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
MOST_WORDS = 20_000  # of a text: the most frequent ones
_PIECES = (3, 4, 5)  # letters


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kernel family.

    Attributes
    ----------
    name : str
        For the table.
    steps : tuple of (name, transformer)
        What prepares the rows.
    kernels : tuple of Kernel
        Members of the family that are tried.
    """

    name: str
    steps: tuple[tuple[str, Any], ...]
    kernels: tuple[Kernel, ...]

    def pipeline(self, machine: Any) -> Pipeline:
        """Put the machine behind the preparation."""
        return Pipeline([*self.steps, ("machine", machine)])

    def grid(self, axes: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the points: every kernel with every setting of the machine."""
        own = {f"machine__{name}": values for name, values in axes.items()}
        return {"machine__kernel": self.kernels, **own}


def of_numbers(X: Any) -> list[Candidate]:
    """Return the candidates for rows of numbers."""
    sparse = is_sparse(X)
    scaler = StandardScaler(with_mean=not sparse)
    steps = (("scale", scaler),)
    return families(steps, scaler.fit_transform(X))


def of_strings(rows: Sequence[str]) -> list[Candidate]:
    """Return the candidates for single strings: words, and pieces of letters."""
    pieces = tuple(Spectrum(k).normalized() for k in _PIECES)
    found = [Candidate("spectrum", (), pieces)]
    vectoriser = TfidfVectorizer(sublinear_tf=True, max_features=MOST_WORDS)
    try:
        vectoriser.fit(rows)
    except ValueError:  # no words: sequences of letters, such as genes
        return found
    return [Candidate("linear (words)", (("words", vectoriser),), (Linear(),)), *found]


def families(steps: Any, rows: Any, dense: bool = True) -> list[Candidate]:
    """Return one kernel for all columns, from plain to rich."""
    typical = typical_distance(rows, 2) / 2
    offset = 2.0 * typical**2  # about the mean square of a centred row, as "polynomial" takes it
    polynomials = tuple(offset**-d * Polynomial(d, offset) for d in (2, 3))
    found = [
        Candidate("linear", steps, (Linear(),)),
        Candidate("polynomial", steps, polynomials),
        Candidate("gaussian", steps, tuple(Gaussian(f * typical) for f in FACTORS)),
        Candidate("matern", steps, tuple(Matern(1.5, f * typical) for f in FACTORS)),
    ]
    if dense and not is_sparse(rows):
        middle = typical_distance(rows, 1) / 2
        scales = tuple(Laplacian(f * middle) for f in FACTORS)
        found.append(Candidate("laplacian", steps, scales))
    return found


# --- table candidates ----------------------------------------------------------------------------
#
# Candidates for tables of mixed columns: what turns them into numbers, and a kernel per kind.

_WIDE = 1000  # columns of a text from which on its words are compared by the linear kernel


def of_table(table: Table) -> list[Candidate]:
    """Return the candidates for a table: one kernel for all columns, and one for each kind.

    Categories and words are those of all rows, so that every fold has the same columns; what they
    weigh is learnt in each fold.
    """
    plan = plan_of(table, MOST_WORDS)
    if not kinds_in(plan):
        raise ValueError("choose: all columns are identifiers or constant")
    prepare = TablePreparation(plan)
    steps = (("columns", prepare),)
    prepared = prepare.fit_transform(table)
    found = families(steps, prepared, dense=not plan["words"])
    blocks = prepare.blocks_
    if len(blocks) > 1:
        found.append(
            Candidate("sum over kinds of columns", steps, sums_over_kinds(prepared, blocks))
        )
    return found


def left_out(table: Table) -> list[str]:
    """Describe ignored identifiers."""
    names = [name for name, kind in table.kinds.items() if kind is Kind.IDENTIFIER]
    return [
        f"Column {name!r} has a distinct {table.column(name).parsed} in most rows and was ignored."
        for name in names
    ]


def sums_over_kinds(rows: Any, blocks: list[Block]) -> tuple[Kernel, ...]:
    """Return sums of a kernel for each kind: Gaussian where rows are dense, linear on words."""
    places = [list(range(block.start, block.stop)) for block in blocks]
    typical = [typical_distance(rows[:, place], 2) / 2 for place in places]
    return tuple(
        _added([_on(place, factor * scale) for place, scale in zip(places, typical, strict=True)])
        for factor in FACTORS
    )


def _on(place: list[int], scale: float) -> Kernel:
    kernel: Kernel = Linear() if len(place) > _WIDE else Gaussian(scale)
    return kernel.on(place)


def _added(kernels: list[Kernel]) -> Kernel:
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total + kernel
    return total


# --- questions -----------------------------------------------------------------------------------
#
# Rows and answers as `choose` takes them: checked, in a form to choose from, a sample.

_FEW = 10  # rows of each class that a sample has at least


def answers(y: Any) -> Array:
    """Return labels or targets as an array; objects that are all numbers become numbers."""
    found: Array = np.asarray(y)
    if found.ndim == 1 and found.dtype.kind in "fO":
        lacking = [k for k, one in enumerate(found.tolist()) if _is_missing(one)]
        if lacking:
            raise ValueError(
                f"choose: y has {len(lacking)} missing values, the first in row {lacking[0]}; "
                "remove these rows"
            )
        if found.dtype == object and all(is_real(one) for one in found):
            return np.array(found.tolist())
    return found


def _is_missing(entry: Any) -> bool:
    nothing = entry is None or type(entry).__name__ == "NAType"  # of pandas, which may not be there
    return nothing or (is_real(entry) and bool(np.isnan(float(entry))))


def refuse(X: Any, y: Array, machine: Any, max_rows: int, scoring: Any) -> None:
    """Raise if rows, answers or options are none that kernels can be compared on."""
    n = count_rows(X)
    if y.ndim != 1 or n != len(y) or not n:
        raise ValueError(
            f"choose: X has {n} rows and y has shape {y.shape}; one entry per row, and at least "
            "one row, is needed"
        )
    if isinstance(machine, type) or not hasattr(machine, "get_params"):
        raise TypeError(f"choose: machine={machine!r} must be an estimator, such as SVC()")
    if isinstance(scoring, list | tuple | set | frozenset | dict):
        raise ValueError(f"choose: scoring={scoring!r} must be one score, or None")
    if "kernel" not in machine.get_params():
        raise ValueError(
            f"choose: machine={type(machine).__name__} has no parameter `kernel` to choose"
        )
    if not is_real(max_rows) or max_rows % 1 or max_rows < 10:
        raise ValueError(f"choose: max_rows={max_rows!r} must be an integer of at least 10")


def sample(y: Array, labels: bool, most: int, seed: int) -> tuple[Array, list[str]]:
    """Return rows to compare on, with every class in its share, and a few of each."""
    n, most = len(y), int(most)
    if n <= most:
        return np.arange(n), []
    order = shuffled(np.random.default_rng(seed), n, y if labels else None, _FEW)
    note = f"Compared on {most} of {n} rows (max_rows); fitted to all rows."
    return np.sort(order[:most]), [note]


def rows_of(X: Any) -> Any:
    """Return rows in a form that can be chosen from; mixed columns and gaps make a table."""
    if isinstance(X, Table):
        return X
    if hasattr(X, "columns"):
        return Table.of(X)
    X = indexable(X)
    if not are_strings(X) and (_are_objects(X) or _have_gaps(X)):
        return Table.of(X)
    return X


def are_strings(X: Any) -> bool:
    """Return whether every row is a string."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(row, str) for row in X)
    return getattr(X, "ndim", 2) == 1 and all(isinstance(row, str) for row in X)


def _are_objects(X: Any) -> bool:
    if hasattr(X, "dtype"):
        return bool(X.dtype.kind in "OUS")
    return bool(np.asarray(X, dtype=object).ndim == 2) and any(
        isinstance(entry, str) or entry is None for row in X for entry in row
    )


def _have_gaps(X: Any) -> bool:
    """Return whether an array of numbers has missing entries."""
    return not is_sparse(X) and bool(np.isnan(np.asarray(X, dtype=np.float64)).any())
