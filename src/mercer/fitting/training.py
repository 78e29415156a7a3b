"""Candidate kernels for a prepared table, and training of the best."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.data import Kind, TablePreparation
from mercer.deadline import within
from mercer.fitting.phases import Phases
from mercer.kernels import Kernel, resolve
from mercer.machines.base.approximate import approximation_of
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.svm.svc import SVC
from mercer.machines.svm.svr import SVR
from mercer.rows.points import is_sparse
from mercer.selection import Choice, TuningProgress, choose_threshold
from mercer.selection.choice import Candidate, compare, families, sums_over_kinds
from mercer.selection.grids import known_axes

# --- candidates ----------------------------------------------------------------------------------
#
# Which machine and which kernels are compared for a table whose columns have become numbers.
#
# The preparation looks at no target, so it is learnt once from all training rows; the folds of
# the comparison then share one kernel matrix.

# Where a ridge regression factors a matrix of all rows, a support vector regression needs those
# outside its tube: at 16500 rows 1 s of processor time against 43 s, with R^2 0.836 against 0.840
# (California housing).
MOST_RIDGE_ROWS = 2000
_COSTS = (0.1, 1.0, 10.0, 100.0)  # of the regression, in units of the targets' spread
_TUBES = (0.05, 0.2)
# Plain kernels at C = 1000 are slow: without it a fit to 2532 rows of four classes took 20 s of
# processor time in place of 33 s, with the same choice (the poll in Chile of R's carData).
_MANY_ROWS = 1000
_LARGEST_COST = 100.0


@dataclass(frozen=True, eq=False)
class PreparedCandidate(Candidate):
    """A kernel family for rows that are prepared."""

    def pipeline(self, machine: Any) -> Any:
        """Return the machine itself."""
        return machine

    def grid(self, axes: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the points: every kernel with every setting of the machine."""
        return {**({"kernel": self.kernels} if self.kernels else {}), **axes}


def default_machine(task: str, rows: int) -> tuple[Any, str]:
    """Return the machine for a task, and why."""
    if task == "classification":
        return SVC(), "The machine is a support vector classifier (SVC)."
    if rows <= MOST_RIDGE_ROWS:
        return KernelRidge(), "The machine is a kernel ridge regression (KernelRidge)."
    return SVR(), (
        f"The machine is a support vector regression (SVR): with more than {MOST_RIDGE_ROWS} rows "
        "it is much faster than KernelRidge, and about as exact; machine=KernelRidge() asks for "
        "that."
    )


def settings_of(machine: Any, y: Array) -> dict[str, Sequence[Any]]:
    """Return what is tuned beside the kernel."""
    if isinstance(machine, SVR) and machine.nu is None:
        spread = float(np.std(y)) or 1.0
        return {
            "C": tuple(spread * cost for cost in _COSTS),
            "epsilon": tuple(spread * tube for tube in _TUBES),
        }
    rows = np.arange(len(y), dtype=np.float64)[:, None]
    axes: dict[str, Sequence[Any]] = dict(known_axes(machine, rows, y))
    axes.pop("kernel", None)
    if isinstance(machine, SVC) and "C" in axes and len(y) > _MANY_ROWS:
        axes["C"] = tuple(cost for cost in axes["C"] if cost <= _LARGEST_COST)
    return axes


def candidates_of(
    rows: Any, preparation: TablePreparation, kernels: Sequence[Any] | None
) -> list[Candidate]:
    """Return kernel families, from plain to rich.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Prepared training rows.
    preparation : TablePreparation
        Which knows the kinds of its columns.
    kernels : sequence of str or Kernel, or None
        Names of families, kernels, or texts of kernels; None takes all families.

    Returns
    -------
    list of Candidate
        At least one.
    """
    texts = any(block.kind is Kind.TEXT for block in preparation.blocks_)
    known = [
        PreparedCandidate(one.name, (), one.kernels)
        for one in families((), rows, dense=not texts and not is_sparse(rows))
    ]
    if len(preparation.blocks_) > 1:
        summed = sums_over_kinds(rows, preparation.blocks_)
        known.append(PreparedCandidate("sum over kinds of columns", (), summed))
    if kernels is None:
        return list(known)
    by_name = {one.name: one for one in known}
    asked = [kernels] if isinstance(kernels, str | Kernel) else list(kernels)
    found: list[Candidate] = []
    for one in asked:
        if isinstance(one, str) and one in by_name:
            found.append(by_name[one])
        else:
            found.append(PreparedCandidate(str(one), (), (_kernel(one, rows, by_name),)))
    if not found:
        raise ValueError("fit: kernels=[] names nothing to compare; leave it out for all families")
    return found


def _kernel(one: Any, rows: Any, known: dict[str, Any]) -> Kernel:
    try:
        found = resolve(one, rows)
        found(rows[:1], rows[:1])  # a kernel of other rows is refused before any fit
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"fit: kernels: {one!r} is neither a family ({', '.join(known)}) nor a kernel on these "
            f"rows ({error})"
        ) from error
    return found


def prepared_columns(preparation: TablePreparation) -> dict[str, list[int]]:
    """Return which columns of the prepared rows each column of the table became.

    Examples
    --------
    >>> from mercer.data import Table, TablePreparation
    >>> table = Table.of({"age": [20, None, 40], "town": ["Ulm", "Bern", "Ulm"]})
    >>> prepared_columns(TablePreparation().fit(table))
    {'age': [0, 1], 'town': [2, 3]}
    """
    plan, place = preparation.plan_, 0
    gaps = set(plan["gaps"])
    found: dict[str, list[int]] = {}

    def take(name: str, width: int) -> None:
        nonlocal place
        found.setdefault(name, []).extend(range(place, place + width))
        place += width

    for group, width in ((plan["numbers"], lambda _: 1), (plan["dates"], _date_width(plan))):
        for name in group:
            take(name, width(name))
        for name in group:
            take(name, int(name in gaps))
    for name, levels in plan["levels"].items():
        take(name, len(levels) + (name in gaps))
    for name, words in plan["words"].items():
        take(name, len(words))
    for name in plan["sparse"]:
        take(name, 1)
    return found


def _date_width(plan: dict[str, Any]) -> Any:
    return lambda name: 1 + 2 * len(plan["cycles"][name])


# --- training ------------------------------------------------------------------------------------
#
# Choose and train: kernels compared on prepared rows, the winner fitted with probabilities.

_CHOOSING = 0.6  # of the time that is left when kernels are compared
_FOLDS = 5


@dataclass(frozen=True)
class Training:
    """How `fit` trains: its arguments of the same names."""

    machine: Any
    kernels: Sequence[Any] | None
    approximation: Any
    tune: bool
    calibrate: bool
    costs: tuple[float, float] | None
    scoring: Any
    cv: int
    max_rows: int
    random_state: int
    journal: Any


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted pipeline, and how it was found.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "machine".
    rows : array or CSR matrix
        The prepared training rows.
    choice : Choice or None
        The comparison.
    points : int
        How many settings were compared.
    notes : tuple of str
        What was decided.
    """

    pipeline: Pipeline
    rows: Any
    choice: Choice | None
    points: int
    notes: tuple[str, ...]


def train(
    table: Any,
    y: Array,
    task: str,
    how: Training,
    phases: Phases,
    blocks_of: Callable[[TablePreparation], tuple[Any, list[str]]] | None = None,
    default: Callable[[str, int], tuple[Any, str]] = default_machine,
) -> Trained:
    """Prepare, compare and fit.

    Parameters
    ----------
    table : Table
        Training rows without the target.
    y : array
        Their targets.
    task : str
        "classification" or "regression".
    how : Training
        The options.
    phases : Phases
        The clock.
    blocks_of : callable, optional
        Gives rows in blocks, prepared, to fit to in place of these, and sentences about them.
    default : callable
        Gives the machine for a task and so many rows where none is given, and says why.

    Returns
    -------
    Trained
        The pipeline, fitted to these rows.
    """
    with phases.phase("prepare", "columns become numbers"):
        preparation = TablePreparation()
        rows = preparation.fit_transform(table)
        notes = list(preparation.describe())
    machine, why = _machine(how.machine, task, len(y), default)
    _take_approximation(machine, how.approximation)
    notes.append(why)
    choice = None
    if how.tune:
        with phases.phase("choose", "kernels are compared"):
            choice, machine, more = _compared(rows, preparation, y, machine, how, phases)
            notes += more
    if how.calibrate and "probability" in machine.get_params(deep=False):
        machine.set_params(probability=True)
        notes.append(
            "Probabilities are calibrated on decision values of five further fits, each without "
            "a fifth of the training rows."
        )
    with phases.phase("train", "the machine is fitted"), within(phases.left, "fit"):
        if blocks_of is None:
            machine.fit(rows, y)
        else:
            blocks, more = blocks_of(preparation)
            machine.fit(blocks)
            notes += more
    notes += _approximated(machine)
    pipeline = Pipeline([("prepare", preparation), ("machine", machine)])
    if choice is not None:
        choice = replace(choice, machine=pipeline)
        points = sum(len(one.tuning.points) for one in choice.contenders)
        return Trained(pipeline, rows, choice, points, tuple(notes))
    return Trained(pipeline, rows, None, 1, tuple(notes))


def _machine(machine: Any, task: str, rows: int, default: Any) -> tuple[Any, str]:
    if machine is None:
        return default(task, rows)  # type: ignore[no-any-return]
    if isinstance(machine, type) or not hasattr(machine, "get_params"):
        raise TypeError(f"fit: machine={machine!r} must be an estimator, such as SVC()")
    if is_classifier(machine) != (task == "classification"):
        other = "classifier" if task == "classification" else "regression"
        raise ValueError(
            f"fit: machine={type(machine).__name__}() does not fit to the task, {task}; pass a "
            f"{other}, or another task"
        )
    return clone(machine), f"The machine was given: {type(machine).__name__}."


def _take_approximation(machine: Any, approximation: Any) -> None:
    """Set the approximation of a machine, unless it is left to it."""
    if isinstance(approximation, str) and approximation == "auto":
        return
    if "approximation" not in machine.get_params(deep=False):
        name = type(machine).__name__
        raise ValueError(
            f"fit: approximation={approximation!r} has no meaning for {name}, which takes no "
            "features in place of a kernel; leave it out, or pass another machine, such as SVC()"
        )
    machine.set_params(approximation=approximation)
    approximation_of(machine)  # what is no approximation is refused before any work


def _approximated(machine: Any) -> list[str]:
    """Say that features stand for the kernel, and how far they are from it."""
    error = getattr(machine, "approximation_error_", None)
    if error is None:
        return []
    kernel = machine.kernel_
    return [
        f"{kernel.phi.dimension} features ({kernel.approximation!r}) stand for the kernel, with an "
        f"error of {error}; approximation=None asks for the kernel itself."
    ]


def _compared(
    rows: Any, preparation: TablePreparation, y: Array, machine: Any, how: Training, phases: Phases
) -> tuple[Choice | None, Any, list[str]]:
    """Compare kernels; a machine without one has its other parameters tuned."""
    axes = settings_of(machine, y)
    if "kernel" in machine.get_params(deep=False):
        candidates = candidates_of(rows, preparation, how.kernels)
    elif axes:
        candidates = [PreparedCandidate(type(machine).__name__, (), ())]
    else:
        return None, machine, [f"Nothing is known of what to tune in {type(machine).__name__}."]
    folds = _folds(y, how.cv, is_classifier(machine))

    def told(progress: TuningProgress) -> bool:
        share = progress.done / progress.points if progress.points else None
        return phases.tell(str(progress), share, progress)

    left = phases.left
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        choice = compare(
            candidates, rows, y, machine, axes=axes, cv=folds, scoring=how.scoring,
            max_rows=how.max_rows, random_state=how.random_state, journal=how.journal,
            callback=told, time_limit=None if left is None else _CHOOSING * left,
        )  # fmt: skip
    notes = [*choice.notes, choice.reason, *_summary(caught)]
    if folds < how.cv:
        notes.append(f"{folds} folds instead of {how.cv}: there are too few rows for more.")
    return choice, choice.machine, notes


def _folds(y: Array, cv: int, classifier: bool) -> int:
    """Return how many folds there can be; small classes may be missing in some."""
    most = int(np.unique(y, return_counts=True)[1].max()) if classifier else len(y) // 2
    return max(2, min(cv, most))


def _summary(caught: list[warnings.WarningMessage]) -> list[str]:
    """Say once what fits of the comparison complained about."""
    kinds: dict[str, int] = {}
    for one in caught:
        kinds[one.category.__name__] = kinds.get(one.category.__name__, 0) + 1
    return [
        f"{count} fits of the comparison ended with {name}; they count as they are."
        for name, count in kinds.items()
    ]


def threshold_of(
    machine: Any, rows: Any, y: Array, positive: Any, costs: tuple[float, float], seed: int
) -> tuple[float, str]:
    """Find the decision value of least cost on training rows, each predicted without itself.

    Parameters
    ----------
    machine : estimator
        Fitted classifier of two classes.
    rows, y : arrays
        Prepared training rows and labels.
    positive : object
        The positive label.
    costs : tuple of float
        Of a false positive and of a false negative.
    seed : int
        Of the folds.

    Returns
    -------
    float
        For decision values that are positive where `positive` is predicted.
    str
        A sentence.
    """
    plain = clone(machine)
    if "probability" in plain.get_params(deep=False):
        plain.set_params(probability=False)
    count = min(_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
    folds = StratifiedKFold(max(2, count), shuffle=True, random_state=seed)
    values = cross_val_predict(plain, rows, y, cv=folds, method="decision_function")
    values = values if positive == machine.classes_[1] else -values
    found = choose_threshold(
        (y == positive).astype(int), values,
        false_positive_cost=costs[0], false_negative_cost=costs[1],
    )  # fmt: skip
    return found.value, (
        f"Threshold: a row is called {positive!r} from a decision value of {found.value:.4g} on, "
        f"the cheapest on training rows if a false positive costs {costs[0]:g} and a false "
        f"negative {costs[1]:g}."
    )
