"""How far is a risk without a penalty above its minimum? By least squares, or Newton's decrement.

Squares: the minimum itself is computed from the rows. The logistic loss of two classes is bounded
along any line by its curvature: with g the gradient, H the second derivatives, nu^2 = g'H^-1 g, R
the longest row and m the smallest eigenvalue of H, nu R <= sqrt(m) / 2 proves that there is one
minimum, within 4 nu in the metric H (Bach 2010, proposition 2), so that it is no more than 4 nu^2
below.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.points import to_dense
from mercer.problems import LogLoss
from mercer.problems.risk.smooth_risk import SmoothRisk

_WITHIN = 4.0  # times nu: the distance of the minimum in the metric of the second derivatives
_ROUNDING = 1e-13  # of the risk of no function at all


def unpenalized_gap(problem: SmoothRisk, f: Array) -> float:
    """Return a bound of the risk of scores f above the minimum; infinite where none is proven.

    To 1e-13 of the risk of no function, an allowance: perfect fits differ by rounding alone.
    """
    if problem.gram.factor is None:
        return float("inf")
    F = np.asarray(to_dense(problem.gram.factor), dtype=np.float64)
    F = np.column_stack([F, np.ones(len(F))]) if problem.bias else F
    size = np.abs(F).max(axis=0, initial=0.0)
    F = F / np.where(size > 0, size, 1.0)
    excess = (
        _logistic(problem, F, f) if isinstance(problem.loss, LogLoss) else _squares(problem, F, f)
    )
    rounding = _ROUNDING * problem.risk(np.zeros_like(f))
    return max(excess - rounding, 0.0)


def _squares(problem: SmoothRisk, F: Array, f: Array) -> float:
    root = np.sqrt(problem.weights)[:, None]
    left = problem.loss.slopes(f, problem.codes)  # f - y
    fitted = F @ np.linalg.lstsq(root * F, root * left, rcond=None)[0]
    return float(0.5 * np.square(root * fitted).sum())


def _logistic(problem: SmoothRisk, F: Array, f: Array) -> float:
    if problem.columns > 1:
        return float("inf")
    g = F.T @ problem.weighted_slopes(f)[:, 0]
    bend = problem.loss.curvature(f, problem.codes).times(np.ones_like(f))[:, 0]
    H = (F.T * (problem.weights * bend)) @ F
    if not np.isfinite(H).all():
        return float("inf")
    values, vectors = np.linalg.eigh(H)
    if not values[0] > 0:
        return float("inf")
    nu = float(np.linalg.norm((vectors.T @ g) / np.sqrt(values)))
    longest = float(np.linalg.norm(F, axis=1).max(initial=0.0))
    if nu * longest > 0.5 * float(np.sqrt(values[0])):
        return float("inf")
    return _WITHIN * nu**2
