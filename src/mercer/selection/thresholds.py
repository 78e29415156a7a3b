"""Receiver operating characteristic (ROC), and the decision threshold of least cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class Roc:
    """Rates of all thresholds, from the highest to the lowest.

    Attributes
    ----------
    thresholds : (k,) array
        Samples with at least this score are predicted positive. The first is infinite.
    false_positive : (k,) array
        False positive rates.
    true_positive : (k,) array
        True positive rates.
    area : float
        Area under the curve.
    """

    thresholds: Array
    false_positive: Array
    true_positive: Array
    area: float


@dataclass(frozen=True)
class Threshold:
    """A decision threshold.

    Attributes
    ----------
    value : float
        Smallest score of the positive class.
    cost : float
        Mean cost per sample.
    false_positive : float
        False positive rate.
    true_positive : float
        True positive rate.
    """

    value: float
    cost: float
    false_positive: float
    true_positive: float


def roc(y: npt.ArrayLike, score: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Roc:
    """Compute the ROC curve.

    Parameters
    ----------
    y : (n,) array-like
        Two labels; the larger one is positive.
    score : (n,) array-like
        Scores; larger for the positive class.
    sample_weight : (n,) array-like, optional
        Sample weights. A weight of 2 equals two copies.

    Returns
    -------
    Roc
        The curve and the area under it.

    Examples
    --------
    >>> roc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).area
    0.75
    """
    positive, s, w = _checked(y, score, sample_weight)
    order = np.argsort(-s, kind="stable")
    s, gained = s[order], np.cumsum(np.where(positive, w, 0.0)[order])
    lost = np.cumsum(np.where(positive, 0.0, w)[order])
    last = np.append(np.flatnonzero(s[1:] != s[:-1]), len(s) - 1)  # rows of one score move together
    true = np.concatenate([[0.0], gained[last] / gained[-1]])
    false = np.concatenate([[0.0], lost[last] / lost[-1]])
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    return Roc(np.concatenate([[np.inf], s[last]]), false, true, area)


def choose_threshold(
    y: npt.ArrayLike,
    score: npt.ArrayLike,
    *,
    false_positive_cost: float = 1.0,
    false_negative_cost: float = 1.0,
    sample_weight: npt.ArrayLike | None = None,
) -> Threshold:
    """Find the threshold of least cost. Use held-out samples, not training samples.

    Parameters
    ----------
    y : (n,) array-like
        Two labels; the larger one is positive.
    score : (n,) array-like
        Scores; larger for the positive class.
    false_positive_cost, false_negative_cost : float
        Costs of a false positive and a false negative.
    sample_weight : (n,) array-like, optional
        Sample weights. A weight of 2 equals two copies.

    Returns
    -------
    Threshold
        Midpoint of two adjacent scores; the highest if tied.

    Examples
    --------
    >>> choose_threshold([0, 0, 1, 1], [1.0, 4.0, 3.5, 8.0], false_negative_cost=5.0).value
    2.25
    """
    if not (0 <= false_positive_cost < np.inf and 0 <= false_negative_cost < np.inf):
        raise ValueError("choose_threshold: costs must be finite and not negative")
    curve = roc(y, score, sample_weight)
    positive, _, w = _checked(y, score, sample_weight)
    share = float(w[positive].sum() / w.sum())
    alarms = false_positive_cost * (1 - share) * curve.false_positive
    cost = alarms + false_negative_cost * share * (1 - curve.true_positive)
    best = int(cost.argmin())
    return Threshold(
        float(_cuts(curve.thresholds)[best]),
        float(cost[best]),
        float(curve.false_positive[best]),
        float(curve.true_positive[best]),
    )


def _cuts(thresholds: Array) -> Array:
    """Give, for each point of the curve, a threshold between the scores it divides."""
    scores = thresholds[1:]  # falling; the first point of the curve is above them all
    middle = scores[1:] + (scores[:-1] / 2 - scores[1:] / 2)
    between = np.where(middle > scores[1:], middle, scores[:-1])
    return np.concatenate([[np.nextafter(scores[0], np.inf)], between, scores[-1:]])


def _checked(
    y: npt.ArrayLike, score: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[Array, Array, Array]:
    labels, s = np.asarray(y).ravel(), np.asarray(score, dtype=np.float64).ravel()
    w = np.ones(len(s)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not len(labels) == len(s) == len(w):
        raise ValueError(f"{len(labels)} labels, {len(s)} scores and {len(w)} weights")
    if not np.isfinite(s).all():
        raise ValueError(f"score {int(np.flatnonzero(~np.isfinite(s))[0])} is not a finite number")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative")
    used = w > 0
    classes = np.unique(labels[used])
    if len(classes) != 2:
        raise ValueError(f"y must have two labels, got {len(classes)}: {classes[:5].tolist()}")
    return labels[used] == classes[1], s[used], w[used]
