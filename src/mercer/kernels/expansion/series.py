"""Series of features, cut off: the nodes that stand where a formula has infinitely many features.

Each is a kernel with finitely many features, and what it leaves out is a kernel as well: the rest
of the same series. With F the features of the node inside (`CenteredDot`: the rows themselves),
u = F/|F| and u^(p) all monomials of degree p in u with the roots of their multinomials:

===================  ==============================================================
node                 features, p = 0, 1, ..., degree
===================  ==============================================================
`ExpSeries`          |F|^p / sqrt(p!) u^(p), times exp(-|F|^2 / 2) if `damped`
`RationalSeries`     c_pn(|F|) u^(p), n = 0, 1, ..., orders[p]
===================  ==============================================================

The damped series is the Gaussian kernel's: exp(-|F - G|^2 / 2) is
exp(-|F|^2 / 2) exp(-|G|^2 / 2) sum_p (F'G)^p / p!. Lengths and directions are kept apart, so that
no power overflows before it meets the number that makes it small.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from scipy.special import gammaln

from mercer.array_types import Array, FrozenArray, Points
from mercer.backends.lowering.inputs import apply_steps
from mercer.expression import Expression, Statistic
from mercer.kernels.features import dimension, rows, width
from mercer.kernels.monomials import symmetric_powers
from mercer.points import row_count, to_dense


@dataclass(frozen=True)
class CenteredDot(Statistic):
    """Sum of (x_i - centre_i) (y_i - centre_i) factor^2."""

    centre: FrozenArray = field(default_factory=lambda: FrozenArray([0.0]))
    factor: float = 1.0


@dataclass(frozen=True)
class ExpSeries(Expression):
    """sum_p of^p / p! up to a degree; `damped` by exp(-of(x, x) / 2) and the same of y."""

    of: Expression
    degree: int
    damped: bool


@dataclass(frozen=True)
class RationalSeries(Expression):
    """(1 + |F - G|^2 / 2)^(-alpha), F and G the features of `of`, as a double series.

    With p = (1 + |F|^2) / 2 and q the same of y, the kernel is the sum over m of
    (alpha)_m / m! (F'G)^m (p + q)^(-alpha - m), and (p + q)^(-b) the sum over n of
    (b)_n / n! (ab)^n ((1 - a) (1 - b))^b / (2 middle)^b, where a = (p - middle) / (p + middle) and
    b the same of q. All of its coefficients are positive.

    Attributes
    ----------
    of : Expression
        A node with finitely many features F.
    alpha : float
        The exponent.
    middle : float
        Positive.
    orders : tuple of int
        The largest n for each m.
    """

    of: Expression
    alpha: float
    middle: float
    orders: tuple[int, ...]


@dimension.register
def _(e: CenteredDot, d: int) -> int | None:
    return width(e.steps, d)


@dimension.register
def _(e: ExpSeries, d: int) -> int | None:
    inner = dimension(e.of, d)
    return None if inner is None else comb(inner + e.degree, e.degree)


@dimension.register
def _(e: RationalSeries, d: int) -> int | None:
    inner = dimension(e.of, d)
    if inner is None:
        return None
    return sum((n + 1) * monomials(inner, m) for m, n in enumerate(e.orders))


def monomials(columns: int, degree: int) -> int:
    """Count the monomials of a degree."""
    return comb(columns + degree - 1, degree) if columns else int(degree == 0)


@rows.register
def _(e: CenteredDot, X: Points) -> Any:
    return (to_dense(apply_steps(e.steps, X)) - e.centre.array) * e.factor


@rows.register
def _(e: ExpSeries, X: Points) -> Any:
    lengths, unit = directions(to_dense(rows(e.of, X)))
    squares = np.square(lengths) if e.damped else np.zeros(len(lengths))
    out, end = np.empty((row_count(X), comb(unit.shape[1] + e.degree, e.degree))), 0
    for p, block in enumerate(symmetric_powers(unit, e.degree)):
        start, end = end, end + block.shape[1]
        size = np.exp(_power(lengths, p) - gammaln(p + 1) / 2 - squares / 2)
        np.multiply(block, size[:, None], out=out[:, start:end])
    return out


@rows.register
def _(e: RationalSeries, X: Points) -> Any:
    lengths, unit = directions(to_dense(rows(e.of, X)))
    a, less = position(lengths, e.middle)
    parts = []
    for m, block in enumerate(symmetric_powers(unit, len(e.orders) - 1)):
        b, n = e.alpha + m, np.arange(e.orders[m] + 1)
        size = (gammaln(b) - gammaln(e.alpha) - gammaln(m + 1) - b * np.log(2 * e.middle)) / 2
        size = np.exp(size + _power(lengths, m) + b * np.log(less))
        steps = np.exp((gammaln(b + n) - gammaln(b) - gammaln(n + 1)) / 2)
        powers = np.power(a[:, None], n) * (steps * size[:, None])
        parts.append((block[:, :, None] * powers[:, None, :]).reshape(len(block), -1))
    return np.concatenate(parts, axis=1)


def directions(F: Array) -> tuple[Array, Array]:
    """Return the lengths of rows and the rows of length one; rows of zeros stay what they are."""
    largest = np.abs(F).max(axis=1, initial=0.0)
    scaled = F / np.where(largest > 0, largest, 1.0)[:, None]  # no square over- or underflows
    norms = np.sqrt(np.square(scaled).sum(axis=1))
    return largest * norms, scaled / np.where(norms > 0, norms, 1.0)[:, None]


def position(lengths: Array, middle: float) -> tuple[Array, Array]:
    """Return a = (p - middle) / (p + middle) for p = (1 + |F|^2) / 2, and 1 - a."""
    p = 0.5 + np.square(lengths) / 2
    return (p - middle) / (p + middle), 2 * middle / (p + middle)


def _power(lengths: Array, p: int) -> Array:
    """Return log |F|^p, 0 for p = 0."""
    with np.errstate(divide="ignore"):
        return p * np.log(lengths) if p else np.zeros(len(lengths))
