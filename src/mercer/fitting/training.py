"""Choose and train: kernels compared on prepared rows, the winner fitted with probabilities."""

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
from mercer.data import TablePreparation
from mercer.deadline import within
from mercer.fitting.candidates import (
    PreparedCandidate,
    candidates_of,
    default_machine,
    settings_of,
)
from mercer.fitting.phases import Phases
from mercer.machines.base.approximate import approximation_of
from mercer.selection import Choice, TuningProgress, choose_threshold
from mercer.selection.choosing import compare

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
