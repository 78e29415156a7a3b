"""Judge a fitted pipeline on held-out rows, or on every row by fits without it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.array_types import Array
from mercer.fitting.candidates import prepared_columns
from mercer.fitting.evaluation import Evaluation
from mercer.fitting.figures.intervals import LEVEL
from mercer.fitting.figures.metrics import (
    Answers,
    calibration_of,
    classification_metrics,
    codes_of,
    confusion_of,
    regression_metrics,
    roc_of,
)
from mercer.fitting.importance import permutation_importance
from mercer.selection import Choice
from mercer.theory import Bound, hoeffding, machine_bound

_DELTA = 0.05  # chance that a bound fails
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Decider:
    """How a pipeline's answers are read.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    classes : tuple
        Labels, of two the positive one second.
    threshold : float or None
        Decision value from which on a row is positive.
    """

    task: str
    classes: tuple[Any, ...]
    threshold: float | None

    def scores(self, pipeline: Any, rows: Any) -> Array | None:
        """Return decision values, for two classes those of the positive one."""
        if self.task == "regression" or not hasattr(pipeline, "decision_function"):
            return None
        values = np.asarray(pipeline.decision_function(rows))
        order = self._order(pipeline)
        if values.ndim == 2:
            return values[:, order]
        return values if order[-1] == 1 else -values

    def probabilities(self, pipeline: Any, rows: Any) -> Array | None:
        """Return probabilities in the order of the classes."""
        if self.task == "regression" or not hasattr(pipeline, "predict_proba"):
            return None
        return np.asarray(pipeline.predict_proba(rows))[:, self._order(pipeline)]

    def predictions(self, pipeline: Any, rows: Any, scores: Array | None) -> Array:
        """Return labels or numbers."""
        if self.threshold is None or scores is None:
            return np.asarray(pipeline.predict(rows))
        labels = np.asarray(self.classes)
        return np.asarray(labels[(scores >= self.threshold).astype(int)])

    def answers(self, pipeline: Any, rows: Any, truth: Array) -> Answers:
        """Return everything that a pipeline says of rows."""
        scores = self.scores(pipeline, rows)
        said = self.predictions(pipeline, rows, scores)
        probabilities = self.probabilities(pipeline, rows)
        if scores is None and probabilities is not None:  # of machines without decision values
            scores = probabilities[:, 1] if len(self.classes) == 2 else probabilities
        return Answers(truth, said, scores, probabilities)

    def _order(self, pipeline: Any) -> list[int]:
        own = list(np.asarray(pipeline.classes_).tolist())
        return [own.index(label) for label in self.classes if label in own]


def cross_answers(pipeline: Any, table: Any, y: Array, decider: Decider, seed: int) -> Answers:
    """Predict every row by a fit of the same settings, preparation included, without its fold."""
    labels = decider.task == "classification"
    most = int(np.unique(y, return_counts=True)[1].min()) if labels else len(y) // 2
    kind = StratifiedKFold if labels else KFold
    folds = kind(max(2, min(_FOLDS, most)), shuffle=True, random_state=seed)
    tests, parts = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small folds: what counts is how they answer
        for train, test in folds.split(np.zeros(len(y)), y):
            fitted = clone(pipeline).fit(table.rows(train), y[train])
            parts.append(decider.answers(fitted, table.rows(test), y[test]))
            tests.append(test)
    order = np.argsort(np.concatenate(tests))
    said = np.concatenate([part.predictions for part in parts])[order]
    scores = _joined([part.scores for part in parts], order)
    return Answers(y, said, scores, _joined([part.probabilities for part in parts], order))


def _joined(parts: list[Any], order: Array) -> Array | None:
    """Put the values of all folds together; None where some have none, or not of all classes."""
    if any(part is None for part in parts) or len({part.shape[1:] for part in parts}) > 1:
        return None
    return np.asarray(np.concatenate(parts)[order])


def evaluate(
    answers: Answers,
    *,
    kind: str,
    rows: Array,
    decider: Decider,
    train_target: Array,
    choice: Choice | None,
    scoring: Any,
    seed: int,
    importance: tuple[Any, str] = ((), ""),
    constant: tuple[float, ...] | None = None,
) -> Evaluation:
    """Put the figures together.

    Parameters
    ----------
    answers : Answers
        Truth and what the model says.
    kind : str
        Which rows these are.
    rows : int array
        Their places in the table.
    decider : Decider
        Task and classes.
    train_target : array
        Targets of the training rows, which constant answers go by.
    choice : Choice or None
        For the cross-validated score.
    scoring : object
        What the comparison went by.
    seed : int
        Of the bootstrap.
    importance : tuple
        Of the columns, and its note.
    constant : tuple of float, optional
        The best constant answer, in place of that of `train_target`.

    Returns
    -------
    Evaluation
        Everything that a report shows.
    """
    classes = decider.classes
    residuals = confusion = curve = calibration = None
    constant = constant_of(train_target, classes) if constant is None else constant
    if decider.task == "classification":
        metrics = classification_metrics(answers, classes, np.array(constant), seed)
        confusion, curve = confusion_of(answers, classes), roc_of(answers, classes)
        calibration = calibration_of(answers, classes)
    else:
        metrics = regression_metrics(answers, constant[0], seed)
        residuals = np.asarray(answers.truth - answers.predictions)
    crossed = (float("nan"), float("nan"))
    if choice is not None:
        tuning = choice.contenders[choice.chosen].tuning
        crossed = (float(tuning.mean[tuning.best]), float(tuning.standard_error[tuning.best]))
    plain = "accuracy" if decider.task == "classification" else "r2"
    return Evaluation(
        kind, rows, answers.truth, answers.predictions, answers.scores, answers.probabilities,
        metrics, LEVEL, confusion, curve, calibration, residuals, *importance,
        crossed, plain if scoring is None else str(scoring),
    )  # fmt: skip


def constant_of(target: Array, classes: tuple[Any, ...]) -> tuple[float, ...]:
    """Return the best constant answer: shares of the classes, or the mean of a quantity."""
    if not classes:
        return (float(np.mean(target)),)
    counts = np.bincount(codes_of(target, classes) + 1, minlength=len(classes) + 1)[1:]
    return tuple((counts / max(counts.sum(), 1)).tolist())


def importance_of(
    pipeline: Any, table: Any, truth: Array, decider: Decider, seed: int, tell: Any = None
) -> tuple[Any, str]:
    """Return the permutation importance of the columns of a table."""
    preparation, machine = pipeline[0], pipeline[-1]
    classification = decider.task == "classification"
    score = accuracy_score if classification else r2_score
    rows = preparation.transform(table)
    found, note = permutation_importance(
        machine, rows, prepared_columns(preparation), score, truth, seed, tell
    )
    return found, f"Loss of {'accuracy' if classification else 'R^2'}: {note}."


def bounds_of(
    machine: Any, rows: Any, y: Array, evaluation: Evaluation, points: int
) -> tuple[Bound, ...]:
    """Return what theory promises of the error of a classifier.

    Hoeffding's bound from held-out rows; for two classes the margin bound from training rows alone,
    which holds for all settings that were compared at once.
    """
    if evaluation.confusion is None:
        return ()
    found = []
    if evaluation.kind != "cross-validated":
        wrong, n = float(np.mean(evaluation.truth != evaluation.predictions)), len(evaluation.truth)
        bound = hoeffding(n, _DELTA, wrong)
        statement = (
            f"with probability {1 - _DELTA:g} the true error is at most {bound.value:.4g}, "
            f"{wrong:.4g} being observed on {n} rows that were not learnt from"
        )
        found.append(replace(bound, statement=statement))
    try:
        bound = machine_bound(machine, rows, y, delta=_DELTA / points)
    except (TypeError, ValueError, AttributeError):  # another machine, more classes
        return tuple(found)
    fixed = f"the {points} settings that were compared were fixed beforehand"
    assumptions = tuple(fixed if "kernel was fixed" in one else one for one in bound.assumptions)
    return (*found, replace(bound, assumptions=assumptions))
