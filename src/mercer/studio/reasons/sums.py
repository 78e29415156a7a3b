"""Answers that are sums over training rows, f(x) = sum_i c_i k(x_i, x) + b, taken apart.

The terms are sorted by size, and their exact sum (`math.fsum`) stands beside the value of the
machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.drawing.fitted import Fitted

_SHOWN = 50  # terms; the others are added up

ReasonOf = Callable[[Fitted, Array], dict[str, Any]]
"""Takes a fitted machine and one row; returns the fields of an answer to `why`."""


@dataclass(frozen=True, eq=False)
class Expansion:
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
        Of several classes: the pair of labels that it tells apart, the second where it is positive.
    """

    rows: Array
    coefficient: Array
    intercept: float
    against: tuple[Any, Any] | None = None


def kernel_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Take the answer of a machine with `dual_coef_` and `intercept_` apart."""
    expansion = expansion_of(fitted, x)
    found = terms_of(fitted, x, expansion)
    # of several classes the machine's value counts votes, or is of one class: the sum is of a pair
    return found if expansion.against is None else {**found, "value": found["sum"]}


def latent_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Take the mean of the latent function apart; of several classes, that of the likeliest two."""
    machine = fitted.machine
    coefficient, rows = np.asarray(machine.dual_coef_), np.arange(len(fitted.rows.X))
    means = np.ravel(machine.latent_mean_and_variance(x)[0])
    if coefficient.shape[1] == 1:
        found = Expansion(rows, coefficient[:, 0], 0.0)
        return {**terms_of(fitted, x, found), "value": means[0]}
    first, second = sorted(np.argsort(-means)[:2].tolist())
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    found = Expansion(rows, coefficient[:, second] - coefficient[:, first], 0.0, pair)
    return {**terms_of(fitted, x, found), "value": means[second] - means[first]}


def ball_sum(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Take the squared radius minus the squared distance from the centre apart."""
    machine = fitted.machine
    own = float(np.ravel(machine.kernel_(x, x))[0])
    constant = machine.radius_**2 - machine.center_norm_**2 - own
    found = Expansion(np.asarray(machine.support_), 2.0 * machine.dual_coef_, float(constant))
    return terms_of(fitted, x, found)


def terms_of(fitted: Fitted, x: Array, expansion: Expansion) -> dict[str, Any]:
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


def expansion_of(fitted: Fitted, x: Array) -> Expansion:
    """Return the sum that decides at a row; of several classes, that of the best two."""
    machine = fitted.machine
    coefficient, intercept = np.asarray(machine.dual_coef_), np.ravel(machine.intercept_)
    rows = np.asarray(getattr(machine, "support_", np.arange(len(fitted.rows.X))))
    if coefficient.ndim == 2 and coefficient.shape[1] == 1:
        coefficient = coefficient[:, 0]
    if coefficient.ndim == 1:
        return Expansion(rows, coefficient, float(intercept[0]))
    order = np.argsort(-np.ravel(machine.decision_function(x)))
    second, first = sorted(int(k) for k in order[:2])[::-1]
    pair = machine.classes_[first].item(), machine.classes_[second].item()
    if getattr(machine, "multiclass", "ovr") == "ovr":
        difference = coefficient[:, second] - coefficient[:, first]
        return Expansion(rows, difference, float(intercept[second] - intercept[first]), pair)
    return _of_pair(fitted, rows, first, second, pair)


def _of_pair(
    fitted: Fitted, rows: Array, first: int, second: int, pair: tuple[Any, Any]
) -> Expansion:
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
    return Expansion(rows[chosen], coefficient[chosen], constant, pair)


def _words(total: float, expansion: Expansion, terms: Array) -> str:
    """Say how many terms make half of what pulls."""
    size = np.sort(np.abs(terms))[::-1]
    half = int(np.searchsorted(np.cumsum(size), size.sum() / 2)) + 1 if len(size) else 0
    return (
        f"{total:.4g} = {expansion.intercept:.4g} and {len(terms)} terms; the largest {half} make "
        "half of all that pulls"
    )
