"""Explanations of a prediction: terms of a sum, votes of neighbors, and classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing import Fitted

# --- sums ----------------------------------------------------------------------------------------
#
# Predictions that are sums over training rows, f(x) = sum_i c_i k(x_i, x) + b: their terms.
#
# The terms are sorted by size. Their exact sum (`math.fsum`) is shown next to the value of the
# estimator.

_SHOWN = 50  # terms; the others are added up

ReasonOf = Callable[[Fitted, Array], dict[str, Any]]
"""Takes a fitted estimator and one row; returns the fields of a response to `why`."""


@dataclass(frozen=True, eq=False)
class TermSum:
    """A function f(x) = sum_i coefficient_i k(row_i, x) + intercept.

    Attributes
    ----------
    rows : (m,) int array
        The training rows in it.
    coefficient : (m,) array
        Their coefficients.
    intercept : float
        The constant.
    against : tuple of int or None
        For several classes, the pair of labels that it separates; positive for the second.
    """

    rows: Array
    coefficient: Array
    intercept: float
    against: tuple[Any, Any] | None = None


def kernel_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the terms of a prediction with `dual_coef_` and `intercept_`."""
    expansion = expansion_of(fitted, x)
    found = terms_of(fitted, x, expansion)
    # for several classes the value counts votes, or belongs to one class: the sum is of a pair
    return found if expansion.against is None else {**found, "value": found["sum"]}


def latent_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Take the mean of the latent function apart; of several classes, that of the likeliest two."""
    machine = fitted.machine
    coefficient, rows = np.asarray(machine.dual_coef_), np.arange(len(fitted.rows.X))
    means = np.ravel(machine.latent_mean_and_variance(x)[0])
    if coefficient.shape[1] == 1:
        found = TermSum(rows, coefficient[:, 0], 0.0)
        return {**terms_of(fitted, x, found), "value": means[0]}
    first, second = sorted(np.argsort(-means)[:2].tolist())
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    found = TermSum(rows, coefficient[:, second] - coefficient[:, first], 0.0, pair)
    return {**terms_of(fitted, x, found), "value": means[second] - means[first]}


def ball_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Take the squared radius minus the squared distance from the center apart."""
    machine = fitted.machine
    own = float(np.ravel(machine.kernel_(x, x))[0])
    constant = machine.radius_**2 - machine.center_norm_**2 - own
    found = TermSum(np.asarray(machine.support_), 2.0 * machine.dual_coef_, float(constant))
    return terms_of(fitted, x, found)


def terms_of(fitted: Fitted, x: Array, expansion: TermSum) -> dict[str, Any]:
    """Return the terms of a sum at a row, the largest first."""
    kernel = np.ravel(fitted.machine.kernel_(fitted.rows.X[expansion.rows], x))
    terms = expansion.coefficient * kernel
    order = np.argsort(-np.abs(terms), kind="stable")
    shown, rest = order[:_SHOWN], order[_SHOWN:]
    total = math.fsum([expansion.intercept, *terms.tolist()])
    return {
        "terms": [
            {
                "index": fitted.rows.index[expansion.rows[k]],
                "coefficient": expansion.coefficient[k],
                "kernel": kernel[k],
                "contribution": terms[k],
            }
            for k in shown
        ],
        "rest": {"count": len(rest), "sum": math.fsum(terms[rest].tolist())},
        "intercept": expansion.intercept,
        "sum": total,
        "against": expansion.against,
        "words": _words(total, expansion, terms),
    }


def expansion_of(fitted: Fitted, x: Array) -> TermSum:
    """Return the sum that decides at a row; of several classes, that of the best two."""
    machine = fitted.machine
    coefficient, intercept = np.asarray(machine.dual_coef_), np.ravel(machine.intercept_)
    rows = np.asarray(getattr(machine, "support_", np.arange(len(fitted.rows.X))))
    if coefficient.ndim == 2 and coefficient.shape[1] == 1:
        coefficient = coefficient[:, 0]
    if coefficient.ndim == 1:
        return TermSum(rows, coefficient, float(intercept[0]))
    order = np.argsort(-np.ravel(machine.decision_function(x)))
    second, first = sorted(int(k) for k in order[:2])[::-1]
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    if getattr(machine, "multiclass", "ovr") == "ovr":
        difference = coefficient[:, second] - coefficient[:, first]
        return TermSum(rows, difference, float(intercept[second] - intercept[first]), pair)
    return _of_pair(fitted, rows, first, second, pair)


def _of_pair(
    fitted: Fitted, rows: Array, first: int, second: int, pair: tuple[Any, Any]
) -> TermSum:
    """Return the function of a pair of classes: each row has a coefficient against each other."""
    machine = fitted.machine
    count = len(machine.classes_)
    codes = np.searchsorted(machine.classes_, fitted.rows.y[rows])  # type: ignore[index]
    coefficient = np.zeros(len(rows))
    coefficient[codes == first] = machine.dual_coef_[codes == first, second - 1]
    coefficient[codes == second] = machine.dual_coef_[codes == second, first]
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = np.flatnonzero(coefficient)
    constant = float(np.ravel(machine.intercept_)[pairs.index((first, second))])
    return TermSum(rows[chosen], coefficient[chosen], constant, pair)


def _words(total: float, expansion: TermSum, terms: Array) -> str:
    """State how many terms make up half of the total."""
    size = np.sort(np.abs(terms))[::-1]
    half = int(np.searchsorted(np.cumsum(size), size.sum() / 2)) + 1 if len(size) else 0
    return (
        f"{total:.4g} = {expansion.intercept:.4g} and {len(terms)} terms; the largest {half} make "
        "up half of the sum of their sizes"
    )


# --- shares --------------------------------------------------------------------------------------
#
# Predictions that are not sums over points: neighbors that vote, columns, classes, clusters.
#
# Terms that are not rows have a name. `sum` is None if parts are compared and not added.


def neighbours(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the rows that vote: positive for the predicted class, negative for others."""
    machine, rows = fitted.machine, fitted.rows
    found = np.ravel(machine.kneighbors(x, return_distance=False))
    label = machine.predict(x)[0]
    same = rows.y[found] == label  # type: ignore[index]
    weight = np.full(len(found), 1.0 / len(found))
    if machine.votes == "similarity":
        similar = np.ravel(machine.kernel_(rows.X[found], x))
        weight = np.abs(similar) / (np.abs(similar).sum() or 1.0)
    signed = np.where(same, weight, -weight)
    terms = [
        {"index": rows.index[one], "contribution": value}
        for one, value in zip(found, signed.tolist(), strict=True)
    ]
    words = f"{int(same.sum())} of the {len(found)} nearest points are of this class"
    return _compared(terms, words, "Votes of the nearest points")


def columns(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return what each column adds to the log odds of the likeliest two classes.

    Log odds of independent columns are a sum over columns. The contribution of a column is the
    change when the mean of all rows replaces its value.
    """
    machine, rows = fitted.machine, fitted.rows
    scores = np.ravel(machine.predict_log_proba(x))
    first, second = sorted(np.argsort(-scores, kind="stable")[:2].tolist())
    mean, width = rows.X.mean(axis=0), rows.X.shape[1]
    replaced = np.repeat(x, width, axis=0)
    replaced[np.arange(width), np.arange(width)] = mean
    logs = machine.predict_log_proba(np.vstack([x, mean, replaced]))
    odds = logs[:, second] - logs[:, first]
    shares = odds[0] - odds[2:]
    terms = [
        {"name": name, "contribution": share}
        for name, share in zip(rows.columns, shares.tolist(), strict=True)
    ]
    terms.sort(key=lambda term: -abs(term["contribution"]))
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    found = _compared(
        terms, f"log odds {odds[0]:.4g}: {odds[1]:.4g} at the mean of all rows, and a contribution "
        "of each column", "Contribution of each column",
    )  # fmt: skip
    total = math.fsum([float(odds[1]), *shares.tolist()])
    return {**found, "intercept": odds[1], "sum": total, "value": odds[0], "against": pair}


def class_probabilities(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the probability of each class."""
    found, names = np.ravel(fitted.machine.predict_proba(x)), fitted.rows.names
    likeliest = int(np.argmax(found))
    words = f"class {names[likeliest]} has probability {found[likeliest]:.3g}"
    terms = _ranked([f"class {name}" for name in names], found)
    return {**_compared(terms, words, "Probability of each class"), "value": found[likeliest]}


def responsibilities(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return how likely the row comes from each part of a mixture."""
    found = np.ravel(fitted.machine.predict_proba(x))
    best = int(np.argmax(found))
    words = f"the row comes from part {best + 1} with probability {found[best]:.3g}"
    terms = _ranked([f"part {k + 1}" for k in range(len(found))], found)
    value = np.ravel(fitted.machine.score_samples(x))[0]
    return {**_compared(terms, words, "Fraction of each part"), "value": value}


def distances(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return how far each mean is."""
    found = np.ravel(fitted.machine.transform(x))
    order = np.argsort(found, kind="stable")
    terms = [{"name": f"mean {k + 1}", "contribution": found[k]} for k in order]
    words = f"mean {order[0] + 1} is the nearest, at {found[order[0]]:.3g}"
    value = float(found[order[0]])
    return {**_compared(terms, words, "Distance from each mean"), "value": value}


def _ranked(names: list[str], values: Array) -> list[dict[str, Any]]:
    order = np.argsort(-values, kind="stable")
    return [{"name": names[k], "contribution": float(values[k])} for k in order]


def _compared(terms: list[dict[str, Any]], words: str, title: str) -> dict[str, Any]:
    nothing = {"count": 0, "sum": 0.0}
    return {
        "terms": terms, "words": words, "title": title, "rest": nothing,
        "intercept": None, "sum": None, "against": None,
    }  # fmt: skip
