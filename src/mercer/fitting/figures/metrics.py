"""Figures of merit of answers, with intervals, beside those of the best constant answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.fitting.evaluation import CalibrationTable, Metric
from mercer.fitting.figures.intervals import area_interval, bootstrap, wilson
from mercer.selection import Roc, roc

_BINS = 10
_LEAST_PROBABILITY = 1e-15  # what is impossible costs 34.5 in the log loss, not infinity


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of rows whose truth is known.

    Attributes
    ----------
    truth, predictions : (n,) arrays
        Labels or targets.
    scores : (n,) or (n, classes) array, or None
        Decision values.
    probabilities : (n, classes) array or None
        In the order of the classes.
    """

    truth: Array
    predictions: Array
    scores: Array | None = None
    probabilities: Array | None = None


def codes_of(labels: Array, classes: Sequence[Any]) -> Array:
    """Return the position of each label among the classes; -1 for labels that are none of them."""
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place.get(label, -1) for label in np.asarray(labels).tolist()], dtype=np.intp)


def classification_metrics(
    answers: Answers, classes: Sequence[Any], shares: Array, seed: int
) -> tuple[Metric, ...]:
    """Return accuracy, balanced accuracy, area under the ROC curve, log loss and Brier score.

    Parameters
    ----------
    answers : Answers
        Of a classifier.
    classes : sequence
        Labels in the order of scores and probabilities.
    shares : (classes,) array
        Of each class among the training rows: what the constant answer goes by.
    seed : int
        Of the bootstrap.

    Returns
    -------
    tuple of Metric
        Those that can be computed; accuracy first.
    """
    truth, said = codes_of(answers.truth, classes), codes_of(answers.predictions, classes)
    n, right = len(truth), truth == said
    often = float((truth == int(shares.argmax())).mean())
    low, high = wilson(float(right.sum()), n)
    found = [Metric("accuracy", float(right.mean()), low, high, "Wilson", baseline=often)]
    found.append(_balanced(truth, right, len(classes), seed))
    scores = answers.scores
    if answers.probabilities is not None and len(classes) > 2:
        scores = answers.probabilities
    known = truth >= 0  # labels that the model knows
    if scores is not None and len(np.unique(truth[known])) > 1:
        area, low, high, method = area_interval(truth[known], scores[known])
        name = "area under the ROC curve"
        found.append(Metric(name, area, low, high, method, baseline=0.5))
    if answers.probabilities is not None:
        found += _of_probabilities(truth, answers.probabilities, shares, seed)
    return tuple(found)


def _balanced(truth: Array, right: Array, k: int, seed: int) -> Metric:
    """Return the mean over the classes that are there of the share of their rows found."""
    member = (truth[:, None] == np.arange(k)).astype(np.float64)
    member = member[:, member.any(axis=0)]

    def figure(sums: Array) -> Array:
        k = sums.shape[1] // 2
        return np.asarray(np.nanmean(np.where(sums[:, :k], sums[:, k:] / sums[:, :k], np.nan), 1))

    rows = np.hstack([member, member * right[:, None]])
    value = float(figure(rows.sum(axis=0)[None])[0]) if len(rows) else math.nan
    (low, high), method = bootstrap(rows, figure, seed), "bootstrap"
    if low == high:  # classes are right or wrong as a whole: no variance, but few rows prove little
        n, found = member.sum(axis=0), (member * right[:, None]).sum(axis=0)
        ends = [wilson(hits, int(of)) for hits, of in zip(found, n, strict=True)]
        low, high = (float(end) for end in np.mean(ends, axis=0).clip([0, value], [value, 1]))
        method = "Wilson, of each class"
    constant = 1.0 / max(member.shape[1], 1)
    return Metric("balanced accuracy", value, low, high, method, baseline=constant)


def _of_probabilities(truth: Array, p: Array, shares: Array, seed: int) -> list[Metric]:
    known = truth >= 0
    truth, p = truth[known], p[known]
    if not len(truth):
        return []
    member = (truth[:, None] == np.arange(p.shape[1])).astype(np.float64)
    sides = 2 if p.shape[1] == 2 else 1  # of two classes one says it all

    def log_loss(q: Array) -> Array:
        return -np.log(np.maximum(q[np.arange(len(q)), truth], _LEAST_PROBABILITY))

    def brier(q: Array) -> Array:
        return np.asarray(np.square(q - member).sum(axis=1) / sides)

    found = []
    for name, losses in (("log loss", log_loss), ("Brier score", brier)):
        each, constant = losses(p), losses(np.tile(shares, (len(p), 1)))
        low, high = bootstrap(each[:, None] / len(p), lambda sums: sums[:, 0], seed)
        value, plain = float(each.mean()), float(constant.mean())
        found.append(Metric(name, value, low, high, "bootstrap", "lower", plain))
    return found


def regression_metrics(answers: Answers, mean: float, seed: int) -> tuple[Metric, ...]:
    """Return root mean squared error, mean absolute error and R^2.

    Parameters
    ----------
    answers : Answers
        Of a regression.
    mean : float
        Of the targets of the training rows: the constant answer.
    seed : int
        Of the bootstrap.

    Returns
    -------
    tuple of Metric
        With bootstrap intervals; R^2 is NaN where all targets are alike.
    """
    y = np.asarray(answers.truth, dtype=np.float64)
    e = y - np.asarray(answers.predictions, dtype=np.float64)
    n, centred = len(y), y - y.mean()  # a shift keeps the sums of squares exact
    rows = np.column_stack([np.square(e), np.abs(e), centred, np.square(centred)])

    def rmse(sums: Array) -> Array:
        return np.asarray(np.sqrt(sums[:, 0] / n))

    def mae(sums: Array) -> Array:
        return np.asarray(sums[:, 1] / n)

    def r2(sums: Array) -> Array:
        total = sums[:, 3] - np.square(sums[:, 2]) / n
        return np.asarray(np.where(total > 0, 1.0 - sums[:, 0] / total, np.nan))

    constant = np.column_stack([np.square(y - mean), np.abs(y - mean), rows[:, 2:]])
    found = []
    for name, figure, better in (
        ("root mean squared error", rmse, "lower"),
        ("mean absolute error", mae, "lower"),
        ("R^2", r2, "higher"),
    ):
        with np.errstate(invalid="ignore", divide="ignore"):
            value, plain = (float(figure(part.sum(axis=0)[None])[0]) for part in (rows, constant))
        low, high = bootstrap(rows, figure, seed)
        found.append(Metric(name, value, low, high, "bootstrap", better, plain))
    return tuple(found)


def confusion_of(answers: Answers, classes: Sequence[Any]) -> Array:
    """Count rows by true (down) and predicted class (across)."""
    k = len(classes)
    truth, said = codes_of(answers.truth, classes), codes_of(answers.predictions, classes)
    known = (truth >= 0) & (said >= 0)
    return np.bincount(truth[known] * k + said[known], minlength=k * k).reshape(k, k)


def roc_of(answers: Answers, classes: Sequence[Any]) -> Roc | None:
    """Return the ROC curve of the second of two classes; None where only one came."""
    truth = codes_of(answers.truth, classes)
    if len(classes) != 2 or answers.scores is None or len(np.unique(truth[truth >= 0])) < 2:
        return None
    return roc(truth[truth >= 0], answers.scores[truth >= 0])


def calibration_of(answers: Answers, classes: Sequence[Any]) -> CalibrationTable | None:
    """Compare probabilities with what came, in ten bins of equally many rows.

    Of the second of two classes; of the class that is predicted, where there are more.
    """
    if answers.probabilities is None or not len(answers.truth):
        return None
    truth = codes_of(answers.truth, classes)
    if len(classes) == 2:
        p, happened = answers.probabilities[:, 1], truth == 1
    else:
        p = answers.probabilities.max(axis=1)
        happened = truth == answers.probabilities.argmax(axis=1)
    order = np.argsort(p, kind="stable")
    bins = [part for part in np.array_split(order, min(_BINS, len(order))) if len(part)]
    predicted = np.array([p[part].mean() for part in bins])
    came = np.array([happened[part].mean() for part in bins])
    count = np.array([len(part) for part in bins])
    ends = np.array([wilson(float(happened[part].sum()), len(part)) for part in bins])
    error = float(np.average(np.abs(predicted - came), weights=count))
    return CalibrationTable(predicted, came, ends[:, 0], ends[:, 1], count, error)
