"""Certificates of smooth risks: duality gap and gradient, with or without regularization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Definiteness, definiteness, exact
from mercer.gram.accurate_products import gamma
from mercer.gram.base import RKHSFunction
from mercer.machines.logistic.problem import (
    CERTIFIED,
    LogLoss,
    SmoothRisk,
    SquaredLoss,
    TanhLoss,
    rounding_of_dual,
)
from mercer.machines.ridge.problem import Coefficients
from mercer.rows.points import to_dense, to_host
from mercer.solvers.certificate import Certificate, certify, larger

# --- unpenalized ---------------------------------------------------------------------------------
#
# How far is a risk without a penalty above its minimum? By least squares, or Newton's decrement.
#
# Squares: the minimum itself is computed from the rows. The logistic loss of two classes is
# bounded along any line by its curvature: with g the gradient, H the second derivatives, nu^2 =
# g'H^-1 g, R the longest row and m the smallest eigenvalue of H, nu R <= sqrt(m) / 2 proves that
# there is one minimum, within 4 nu in the metric H (Bach 2010, proposition 2), so that it is no
# more than 4 nu^2 below.
#
# Tanh: a local minimum, in the same way. With t = tanh f, the third derivative of -y t is
# y (1 - t^2) (2 - 6 t^2), at most 4 (1 - t^2), and 1 - t^2 grows by exp(2 |e|) at most as f moves
# by e. Along a step of length r in the metric H, with R the longest row in the metric H^-1 and b
# the largest eigenvalue of F'diag(s (1 - t^2))F in units of H, the risk changes by at least
# -nu r + r^2 / 2 - (2 / 3) R b exp(2 R r) r^3, which is positive at r = 4 nu if
# R b nu exp(8 R nu) < 3 / 32. So there is a local minimum within 4 nu, less than 4 nu^2 below.

_WITHIN = 4.0  # times nu: the distance of the minimum in the metric of the second derivatives
_PROVEN = 3 / 32  # of the change of curvature: below, a local minimum is near
_ROUNDING = 1e-13  # of the risk of no function at all


def unpenalized_gap(problem: SmoothRisk, f: Array) -> float:
    """Return a bound of the risk of scores f above the minimum; infinite where none is proven.

    Of the tanh loss, which is not convex, above the local minimum that they are next to.

    To 1e-13 of the risk of no function, an allowance: perfect fits differ by rounding alone.
    """
    if problem.gram.factor is None:
        return float("inf")
    F = np.asarray(to_dense(problem.gram.factor), dtype=np.float64)
    F = np.column_stack([F, np.ones(len(F))]) if problem.bias else F
    size = np.abs(F).max(axis=0, initial=0.0)
    F = F / np.where(size > 0, size, 1.0)
    ways = {LogLoss: _logistic, SquaredLoss: _squares, TanhLoss: _tanh}
    excess = ways[type(problem.loss)](problem, F, f)
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


def _tanh(problem: SmoothRisk, F: Array, f: Array) -> float:
    slopes = problem.weighted_slopes(f)
    bend = problem.weights[:, None] * problem.loss.curvature(f, problem.codes).own
    parts = zip(slopes.T, bend.T, strict=True)  # each class against the rest has its own function
    return sum(_next_to_minimum(F, *part) for part in parts)


def _next_to_minimum(F: Array, slopes: Array, bend: Array) -> float:
    H = (F.T * bend) @ F
    if not np.isfinite(H).all():
        return float("inf")
    values, vectors = np.linalg.eigh(H)
    if not values[0] > np.finfo(float).eps * len(F) * values[-1]:
        return float("inf")
    G = F @ (vectors / np.sqrt(values))
    nu = float(np.linalg.norm(G.T @ slopes))
    longest = float(np.linalg.norm(G, axis=1).max(initial=0.0))
    steepest = float(np.linalg.eigvalsh((G.T * np.abs(slopes)) @ G)[-1])
    with np.errstate(over="ignore"):
        bent = longest * steepest * nu * np.exp(8 * longest * nu)
    return _WITHIN * nu**2 if bent < _PROVEN else float("inf")


# --- smooth risk ---------------------------------------------------------------------------------
#
# Is the risk smallest? A duality gap and the gradient; for losses that are not convex, the
# latter.
#
# A gap is small to second order: an answer that is wrong by a thousandth has one of a millionth.
# So the gradient is judged beside it. The bound needs K to be positive semidefinite.

_BALANCE_STEPS = 100
_BALANCED = 1e-11  # of the slopes of a function: a hundredth of what is asked
_ENTRIES = 1 << 22  # of features, whose sizes are written out at a time
_TINY = float(np.finfo(np.float64).tiny)
_MORE = 12  # roundings of what a bound is computed from, beside those of its sums


@dataclass(frozen=True)
class SmoothRiskQuantities:
    """Measures of an answer to a `SmoothRisk`.

    Attributes
    ----------
    objective : float
        The weighted loss and the penalty.
    relative_gap : float
        How far the objective is above a proven lower bound, over the objective; for a loss that is
        not convex NaN, or without a penalty how far above the local minimum that is proven nearby.
    stationarity : float
        Norm of the gradient as a function, over what pulls on the function before it cancels; for
        a bounded loss, over what could pull.
    imbalance : float
        How far the slopes of the lower bound are from adding up to zero, as a bias needs, over the
        sum of their sizes.
    mismatch : float
        Where there are weights w beside coefficients a: how far F'a is from w, over the size of w,
        or the objective of one from that of the other, over the objective, whichever is more,
        beyond rounding.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by the
        construction of the kernel, rounding where K was factored, infinite where that is not shown.
    rounding : float
        A bound of what rounding of the products in the lower bound may add to `relative_gap`.
    """

    objective: float
    relative_gap: float
    stationarity: float
    imbalance: float
    mismatch: float = 0.0
    indefiniteness: float = 0.0
    rounding: float = 0.0


@certify.register
def _(problem: SmoothRisk, value: Coefficients, tol: float | None = None) -> Certificate:
    tol = CERTIFIED if tol is None else tol
    convex = definiteness(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        measured = _measure(problem, value, convex)
    ok = measured.stationarity <= tol and measured.mismatch <= tol and convex.shown
    if problem.loss.convex or problem.penalty == 0:
        ok = ok and measured.relative_gap + measured.rounding <= tol and measured.imbalance <= 1e-9
    return Certificate(bool(ok), measured, tol, _statement(problem, measured, tol, convex))


def _statement(
    problem: SmoothRisk, found: SmoothRiskQuantities, tol: float, convex: Definiteness
) -> str:
    still = f"the gradient is {found.stationarity:.1e} of what pulls on the function"
    if found.mismatch > tol:
        return f"{still}; but coefficients and weights are two answers, {found.mismatch:.1e} apart"
    if not convex.shown:
        return f"{still}; {convex.obstacle}, so other functions may be better by any amount"
    if problem.loss.convex:
        known = found.relative_gap + found.rounding
        gap = f"the objective is within {known:.1e} of the optimum, relatively"
        return f"{gap}; {still}"
    if problem.penalty == 0 and np.isfinite(found.relative_gap):
        still = f"{still}; a local minimum is at most {found.relative_gap:.1e} below, relatively"
    elif problem.penalty == 0:
        still = f"{still}; no minimum nearby is proven"
    return f"{still}; the loss is not convex, so another stationary point may be better"


def _measure(
    problem: SmoothRisk, value: Coefficients, convex: Definiteness
) -> SmoothRiskQuantities:
    total, problem = float(problem.weights.sum()), problem.of_weight_one().placed()
    function = RKHSFunction(exact(problem.gram), value.coef, value.weights)
    gram, image = function.gram, function.at_points()
    f = problem.beside(image + value.intercept)
    objective = problem.risk(f) + 0.5 * problem.penalty * function.squared_norm(image)
    gap, imbalance, rounding = float("nan"), 0.0, 0.0
    if problem.loss.convex and not convex.shown:
        gap = float("inf")
    elif problem.penalty == 0:
        gap = unpenalized_gap(problem, f) / max(abs(objective), _TINY)
    elif problem.loss.convex:
        weighted_slopes = problem.weighted_slopes(_balanced(problem, f))
        if problem.bias:
            sizes = np.abs(weighted_slopes).sum(axis=0)
            imbalance = float(
                (np.abs(weighted_slopes.sum(axis=0)) / np.maximum(sizes, 1e-300)).max()
            )
        image = np.asarray(gram @ weighted_slopes)
        bound = _lower_bound(problem, weighted_slopes, image + convex.shift * weighted_slopes)
        lost = rounding_of_dual(
            problem, gram, weighted_slopes, to_host((weighted_slopes * image).sum(axis=0))
        )
        gap = (objective - bound) / max(abs(objective), _TINY)
        rounding = lost / max(abs(objective), _TINY)
        gap = max(gap, 0.0) if np.isfinite(gap) else float("inf")
    still = _stationarity(problem, function, f)
    both = function.is_primal and len(value.coef) > 0
    apart = _mismatch(problem, value, gram.placed, objective) if both else 0.0
    return SmoothRiskQuantities(
        total * objective, gap, still, imbalance, apart, convex.shift, rounding
    )


def _mismatch(problem: SmoothRisk, value: Coefficients, F: Any, objective: float) -> float:
    """Compare both forms of an answer as functions, beyond what rounding of F'a may be.

    That is gamma_n |F|'|a|, Higham (3.5), which is not held against an answer.
    """
    assert value.weights is not None
    known = gamma(int(np.count_nonzero(np.any(value.coef != 0, axis=1))) + _MORE)
    weights = np.asarray(F.T @ value.coef)
    terms = _sizes_of_terms(F, np.abs(value.coef))
    off = np.maximum(np.abs(weights - value.weights) - known * terms, 0.0)
    found = float(np.linalg.norm(off)) / max(float(np.linalg.norm(value.weights)), _TINY)
    own = problem.risk(problem.beside(np.asarray(F @ weights) + value.intercept))
    own += 0.5 * problem.penalty * float(np.square(weights).sum())
    # as slopes are penalty times coefficients, rounding of F'a moves loss and penalty alike
    rounding = known * problem.penalty * float(np.square(terms).sum())
    found = larger(found, (abs(own - objective) - rounding) / max(abs(objective), _TINY))
    return found if np.isfinite(found) else float("inf")


def _sizes_of_terms(F: Any, coef: Array) -> Array:
    """Return what F'a is the sum of, block of rows by block: never all of |F| at once."""
    step = max(1, _ENTRIES // max(1, F.shape[1]))
    parts = range(0, F.shape[0], step)
    total = np.zeros((F.shape[1], coef.shape[1]))
    for first in parts:
        total += abs(F[first : first + step].T) @ coef[first : first + step]
    return total


def _balanced(problem: SmoothRisk, f: Array) -> Array:
    """Move the biases to where the slopes of each function add up to zero: there the bound holds.

    A convex problem of as many unknowns as there are functions; a few Newton steps solve it.
    """
    if not problem.bias:
        return f
    s, moved = problem.weights, f
    for _ in range(_BALANCE_STEPS):
        weighted_slopes = problem.weighted_slopes(moved)
        g, sizes = weighted_slopes.sum(axis=0), np.abs(weighted_slopes).sum(axis=0)
        # of all, and of each: a class of little weight has slopes of its own
        if np.abs(g).max() <= 1e-14 * sizes.sum() and (np.abs(g) <= _BALANCED * sizes).all():
            break
        step = _balancing_step(problem.loss.curvature(moved, problem.codes).mean(s), g / s.sum())
        if step is None:
            break
        length, now = min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300)), problem.risk(moved)
        while length > 1e-6 and problem.risk(moved + length * step) > now * (1 + 1e-12):
            length *= 0.5
        moved = moved + length * step
    return moved


def _balancing_step(bend: Array, g: Array) -> Array | None:
    """Return Newton's step for the biases; None where curvature is not a number."""
    if not (np.isfinite(bend).all() and np.isfinite(g).all()):
        return None
    sizes = np.sqrt(np.maximum(bend.diagonal(), _TINY))
    scaled = np.linalg.lstsq(bend / np.outer(sizes, sizes), g / sizes, rcond=1e-13)[0]
    return np.asarray(-scaled / sizes)


def _lower_bound(problem: SmoothRisk, weighted_slopes: Array, image: Array) -> float:
    """Return the dual value: - sum_i s_i loss*(u_i) - |sum_i s_i u_i k(x_i, .)|^2 / 2 penalty."""
    conjugates = problem.loss.conjugates(weighted_slopes / problem.weights[:, None], problem.codes)
    squared = float((weighted_slopes * image).sum())
    return float(-problem.weights @ conjugates - squared / (2 * problem.penalty))


def _stationarity(problem: SmoothRisk, function: RKHSFunction, f: Array) -> float:
    gram, weighted_slopes = function.gram, problem.weighted_slopes(f)
    if function.weights is not None:
        left = problem.penalty * function.weights + gram.placed.T @ weighted_slopes
        squared = float(np.square(left).sum())
    else:
        assert function.coef is not None
        left = problem.penalty * function.coef + weighted_slopes
        squared = max(float((left * (gram @ left)).sum()), 0.0)
    lengths, strengths = np.sqrt(np.maximum(gram.diag(), 0.0)), problem.sizes(weighted_slopes)
    reach = lengths @ strengths.sum(axis=1)
    still = np.sqrt(squared) / reach if reach > 0 else 0.0
    if problem.bias:
        sizes = strengths.sum(axis=0)
        still = max(
            still, float((np.abs(weighted_slopes.sum(axis=0)) / np.maximum(sizes, 1e-300)).max())
        )
    return float(still) if np.isfinite(still) else float("inf")
