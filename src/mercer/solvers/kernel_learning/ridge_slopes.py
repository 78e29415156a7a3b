"""The measure of a ridge fit and its slopes in the scales: n^3 once, n^2 for each feature."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import AbsDist, Expression, Statistic
from mercer.gram import Source
from mercer.kernels.slopes import columns_of_distance, slope
from mercer.problems.kernel_learning.relevance import Inverted, Relevance, Scaled
from mercer.problems.process.evidence import Evidence

_PANEL = 1024  # rows of one product between two chances to hear Ctrl-C
_LARGE = 1e100  # slopes beyond are those of a square root at zero, where the distance is zero


def measured(problem: Relevance, value: Scaled, slopes: bool = True) -> tuple[float, Array]:
    """Return what is minimised, and its slopes in the logarithms of scales and penalty.

    Infinite, with slopes of zero, where K + penalty is not positive definite to working precision.

    Parameters
    ----------
    problem : Relevance
        What is asked.
    value : Scaled
        Scales and penalty.
    slopes : bool
        Whether slopes are wanted; zeros otherwise.
    """
    flat = np.zeros(len(value.scales) + 1)
    expression, leaf = problem.family(value.scales)
    found = inverted(problem, Source(expression, problem.X).pairs().dense(), value.penalty)
    if found is None:
        return np.inf, flat
    judged = problem.measure(problem, found)
    if not np.isfinite(judged.value):
        return np.inf, flat
    if not slopes:
        return judged.value, flat
    M = judged.M
    by_penalty = float(np.sum(M.diagonal() / problem.row_weights)) + judged.direct
    M *= slopes_by_distance(problem, expression, leaf)
    raw = columns_of_distance(leaf, problem.X)
    return judged.value, np.append(
        by_scales(M, raw, value.scales, leaf), value.penalty * by_penalty
    )


def slopes_by_distance(problem: Relevance, expression: Expression, leaf: Statistic) -> Array:
    """Return dk/dD for all pairs of rows; zero where D is, since that is multiplied by it."""
    return finite_slopes(slope(expression, leaf), problem.X)


def finite_slopes(bent: Expression, X: Points, Y: Points | None = None) -> Array:
    """Evaluate dk/dD, or D dk/dD; zero where D is: slopes of square roots are not finite there."""
    values = choose_backend().pairs(bent, X, Y, np.float64).dense()
    values = np.where(np.abs(values) < _LARGE, values, 0.0)
    if Y is None:
        np.fill_diagonal(values, 0.0)
    return values


def inverted(problem: Relevance | Evidence, K: Array, penalty: float) -> Inverted | None:
    """Invert C = K + penalty S^-1; None where it is not positive definite."""
    root = np.sqrt(problem.row_weights)
    A = np.array(K, dtype=np.float64)
    A *= root[:, None] * root
    A.flat[:: len(A) + 1] += penalty
    factor = choose_backend().cholesky_factor(A)
    if factor is None:
        return None
    log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())))
    G = factor.inverse()
    G *= root[:, None] * root
    if problem.bias:
        u = G.sum(axis=1)
        total = float(u.sum())
        if not total > 0:
            return None
        log_determinant += float(np.log(total))
        G -= np.outer(u / total, u)
    return Inverted(G, G @ problem.targets, penalty, log_determinant)


def by_scales(
    A: Array, raw: Array, scales: Array, leaf: Statistic, other: Array | None = None
) -> Array:
    """Sum A_ij dD_ij over all pairs, for the logarithm of each scale.

    Parameters
    ----------
    A : (n, m) array
        What slopes are multiplied by.
    raw : (n, d) array
        Columns that the distance looks at.
    scales : (d,) array
        Scales.
    leaf : Statistic
        The distance D.
    other : (m, d) array, optional
        Columns of the other rows; `raw` by default.
    """
    other = raw if other is None else other
    if isinstance(leaf, AbsDist):
        pairs = zip(raw.T, other.T, scales, strict=True)
        return np.array([-_absolute(A, x, y) / scale for x, y, scale in pairs])
    middle = raw.mean(axis=0)  # distances do not see it, rounding does
    x, y = (raw - middle) / scales, (other - middle) / scales  # squares of others may overflow
    squares = A.sum(axis=1) @ x**2 + A.sum(axis=0) @ y**2 - 2.0 * np.sum(x * (A @ y), axis=0)
    return np.asarray(-2.0 * squares)


def _absolute(A: Array, x: Array, y: Array) -> float:
    """Sum A_ij |x_i - y_j|."""
    total = 0.0
    for first in range(0, len(x), _PANEL):
        rows = slice(first, first + _PANEL)
        total += float(np.sum(A[rows] * np.abs(x[rows][:, None] - y)))
    return total
