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
# Default estimators and candidate kernels for a preprocessed table.
#
# The preprocessing does not use the target, so it is fitted once to all training rows. The folds
# of the comparison then share one kernel matrix.

# Ridge regression factors a matrix of all rows. Support vector regression only needs the rows
# outside its tube: 1 s of processor time instead of 43 s at 16500 rows, with R^2 0.836 instead of
# 0.840 (California housing).
MOST_RIDGE_ROWS = 2000
_COSTS = (
    0.1,
    1.0,
    10.0,
    100.0,
)  # for regression, in standard deviations of the targets
_TUBES = (0.05, 0.2)
# C = 1000 is slow for simple kernels: without it, a fit to 2532 rows of four classes took 20 s of
# processor time instead of 33 s with the same choice (the poll in Chile of R's carData).
_MANY_ROWS = 1000
_LARGEST_COST = 100.0


@dataclass(frozen=True, eq=False)
class PreparedCandidate(Candidate):
    """A kernel family for preprocessed rows."""

    def pipeline(self, machine: Any) -> Any:
        """Return the estimator unchanged."""
        return machine

    def grid(self, axes: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the grid: all kernels combined with all parameters of the estimator."""
        return {**({"kernel": self.kernels} if self.kernels else {}), **axes}


def default_machine(task: str, rows: int) -> tuple[Any, str]:
    """Return the default estimator for a task and the reason."""
    if task == "classification":
        return SVC(), "Estimator: support vector classifier (SVC)."
    if rows <= MOST_RIDGE_ROWS:
        return KernelRidge(), "Estimator: kernel ridge regression (KernelRidge)."
    return SVR(), (
        f"Estimator: support vector regression (SVR). With more than {MOST_RIDGE_ROWS} rows, it "
        "is much faster than KernelRidge and about as accurate. To use that, pass "
        "machine=KernelRidge()."
    )


def settings_of(machine: Any, y: Array) -> dict[str, Sequence[Any]]:
    """Return the grid of the hyperparameters other than the kernel."""
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
    """Return kernel families from simple to flexible.

    Parameters
    ----------
    rows : (n, d) array or CSR matrix
        Preprocessed training rows.
    preparation : TablePreparation
        Fitted preprocessing step, which contains the column kinds.
    kernels : sequence of str or Kernel, or None
        Families, kernels or kernel expressions. If None, all families.

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
        raise ValueError("fit: kernels=[] is empty; pass None to compare all families")
    return found


def _kernel(one: Any, rows: Any, known: dict[str, Any]) -> Kernel:
    try:
        found = resolve(one, rows)
        found(rows[:1], rows[:1])  # raise before the fit if the kernel does not apply to the rows
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"fit: kernels: {one!r} is neither a family ({', '.join(known)}) nor a kernel on these "
            f"rows ({error})"
        ) from error
    return found


def prepared_columns(preparation: TablePreparation) -> dict[str, list[int]]:
    """Return the feature indices of each column of the table.

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
# Comparison of kernels on preprocessed rows, and fit of the best one.

_CHOOSING = 0.6  # fraction of the remaining time for the comparison of kernels
_FOLDS = 5


@dataclass(frozen=True)
class Training:
    """Arguments of `fit` for training, under the same names."""

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
    """A fitted pipeline and its model selection.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" and "machine".
    rows : array or CSR matrix
        Preprocessed training rows.
    choice : Choice or None
        Result of model selection.
    points : int
        Number of candidates.
    notes : tuple of str
        Decisions.
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
    """Preprocess, compare kernels and fit.

    Parameters
    ----------
    table : Table
        Training rows without the target.
    y : array
        Targets.
    task : str
        "classification" or "regression".
    how : Training
        Options.
    phases : Phases
        Clock and progress.
    blocks_of : callable, optional
        Returns preprocessed blocks of rows to fit to instead, and notes on them.
    default : callable
        Returns the default estimator for a task and a number of rows, and the reason.

    Returns
    -------
    Trained
        Fitted pipeline.
    """
    with phases.phase("prepare", "preprocessing columns"):
        preparation = TablePreparation()
        rows = preparation.fit_transform(table)
        notes = list(preparation.describe())
    machine, why = _machine(how.machine, task, len(y), default)
    _take_approximation(machine, how.approximation)
    notes.append(why)
    choice = None
    if how.tune:
        with phases.phase("choose", "comparing kernels"):
            choice, machine, more = _compared(rows, preparation, y, machine, how, phases)
            notes += more
    if how.calibrate and "probability" in machine.get_params(deep=False):
        machine.set_params(probability=True)
        notes.append(
            "Probabilities are calibrated on decision values of five more fits, each without "
            "a fifth of the training rows."
        )
    with phases.phase("train", "fitting the estimator"), within(phases.left, "fit"):
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
            f"fit: machine={type(machine).__name__}() does not support the task {task}; pass a "
            f"{other} estimator or change task"
        )
    return clone(machine), f"Estimator: {type(machine).__name__} (specified)."


def _take_approximation(machine: Any, approximation: Any) -> None:
    """Set the approximation of an estimator, unless it is "auto"."""
    if isinstance(approximation, str) and approximation == "auto":
        return
    if "approximation" not in machine.get_params(deep=False):
        name = type(machine).__name__
        raise ValueError(
            f"fit: {name} does not support approximation={approximation!r}; "
            "remove it or pass another estimator, such as machine=SVC()"
        )
    machine.set_params(approximation=approximation)
    approximation_of(machine)  # raise for invalid approximations before the fit


def _approximated(machine: Any) -> list[str]:
    """Describe the approximate feature map and its error."""
    error = getattr(machine, "approximation_error_", None)
    if error is None:
        return []
    kernel = machine.kernel_
    return [
        f"{kernel.phi.dimension} features ({kernel.approximation!r}) approximate the kernel "
        f"with an error of {error}; approximation=None selects the exact kernel."
    ]


def _compared(
    rows: Any, preparation: TablePreparation, y: Array, machine: Any, how: Training, phases: Phases
) -> tuple[Choice | None, Any, list[str]]:
    """Compare kernels, or tune the hyperparameters of an estimator without a kernel."""
    axes = settings_of(machine, y)
    if "kernel" in machine.get_params(deep=False):
        candidates = candidates_of(rows, preparation, how.kernels)
    elif axes:
        candidates = [PreparedCandidate(type(machine).__name__, (), ())]
    else:
        return None, machine, [f"{type(machine).__name__} has no known hyperparameters to tune."]
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
        notes.append(f"Used {folds} folds instead of {how.cv}, because there are too few rows.")
    return choice, choice.machine, notes


def _folds(y: Array, cv: int, classifier: bool) -> int:
    """Return the largest possible number of folds. Small classes can be missing in some."""
    most = int(np.unique(y, return_counts=True)[1].max()) if classifier else len(y) // 2
    return max(2, min(cv, most))


def _summary(caught: list[warnings.WarningMessage]) -> list[str]:
    """Summarize the warnings of the fits of the comparison."""
    kinds: dict[str, int] = {}
    for one in caught:
        kinds[one.category.__name__] = kinds.get(one.category.__name__, 0) + 1
    return [
        f"{count} fits of the comparison issued a {name}; their scores are used unchanged."
        for name, count in kinds.items()
    ]


def threshold_of(
    machine: Any, rows: Any, y: Array, positive: Any, costs: tuple[float, float], seed: int
) -> tuple[float, str]:
    """Find the threshold of least total cost on cross-validated training rows.

    Parameters
    ----------
    machine : estimator
        Fitted binary classifier.
    rows, y : arrays
        Preprocessed training rows and labels.
    positive : object
        Positive class.
    costs : tuple of float
        Costs of a false positive and a false negative.
    seed : int
        Random seed of the folds.

    Returns
    -------
    float
        Threshold of the decision values of `positive`.
    str
        Note on the threshold.
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
        f"Threshold: {positive!r} is predicted for decision values of at least {found.value:.4g}. "
        f"This minimizes the total cost on training rows if a false positive costs {costs[0]:g} "
        f"and a false negative {costs[1]:g}."
    )
