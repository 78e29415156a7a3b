"""Is it the optimum of the quadratic programme? Duality gap, optimality conditions, feasibility.

With F = p - K b and an offset r, weak duality bounds the distance to the optimum by

    gap = sum_i max over the box of (F_i - r)(t_i - b_i) >= 0,

a sum of nonnegative terms: unlike primal minus dual it does not cancel near the optimum. For a
classifier it is exactly the primal objective (half the squared norm plus C times the hinge losses)
minus the dual one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.problems import BoxQP, Dual

_TOL = 1e-3
_AT_BOUND = 1e-9  # of the width of the box


@dataclass(frozen=True)
class BoxQPQuantities:
    """Measures of an answer to a box quadratic programme.

    Attributes
    ----------
    primal, dual : float
        Upper and lower bound on the optimal value (of the maximised dual form p'b - b'Kb/2).
    gap : float
        Their difference.
    relative_gap : float
        gap / max(|primal|, |dual|).
    violation : float
        Largest F_i - F_j over pairs that could still move: zero at the optimum.
    intercept_error : float
        How far the offset is from the range that the conditions leave it.
    infeasibility : float
        Largest distance of a variable from its box, and of the sum from its value, relative to the
        size of the variables.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    intercept_error: float
    infeasibility: float


@certify.register
def _(problem: BoxQP, value: Dual, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        quantities = _measure(problem, np.asarray(value.coef, dtype=np.float64), value.intercept)
    ok = (
        quantities.violation <= tol
        and quantities.intercept_error <= tol
        and quantities.infeasibility <= 1e-9
    )
    statement = (
        f"no pair of points violates the optimality conditions by more than "
        f"{max(quantities.violation, 0.0):.1e}; the objective is within "
        f"{100 * quantities.relative_gap:.2g} % of the optimum"
    )
    return Certificate(bool(ok), quantities, tol, statement)


def _measure(problem: BoxQP, b: Array, intercept: float) -> BoxQPQuantities:
    Kb = np.asarray(exact(problem.gram) @ b)
    F = problem.linear - Kb
    gap = _gap(problem, b, F - intercept)
    dual = float(problem.linear @ b - 0.5 * b @ Kb)
    size = max(abs(dual), abs(dual + gap), np.finfo(float).tiny)
    return BoxQPQuantities(
        dual + gap,
        dual,
        gap,
        gap / size if np.isfinite(gap) else np.inf,
        *_conditions(problem, b, F, intercept),
        _infeasibility(problem, b),
    )


def _gap(problem: BoxQP, b: Array, slope: Array) -> float:
    # where the slope points to an infinite bound there is no finite upper bound: that is honest
    up, down = problem.upper - b, problem.lower - b
    with np.errstate(invalid="ignore"):
        reach = np.where(slope > 0, slope * up, np.where(slope < 0, slope * down, 0.0))
    return float(np.maximum(np.nan_to_num(reach, nan=0.0, posinf=np.inf), 0.0).sum())


def _conditions(problem: BoxQP, b: Array, F: Array, intercept: float) -> tuple[float, float]:
    """Give the largest F_i - F_j over pairs that could move, and the error of the offset.

    F is at most the offset where b can grow, and at least that where b can shrink. A variable is
    at its bound when it is within rounding of it: other solvers do not assign bounds exactly.
    """
    if not np.isfinite(F).all() or not np.isfinite(intercept):
        return np.inf, np.inf
    width = problem.upper - problem.lower
    slack = _AT_BOUND * np.where(np.isfinite(width), width, np.abs(b).max(initial=0.0))
    rising = float(F[b < problem.upper - slack].max(initial=-np.inf))
    falling = float(F[b > problem.lower + slack].min(initial=np.inf))
    apart = rising - falling
    return (apart if np.isfinite(apart) else 0.0), max(rising - intercept, intercept - falling, 0.0)


def _infeasibility(problem: BoxQP, b: Array) -> float:
    outside = np.maximum(np.maximum(problem.lower - b, b - problem.upper), 0.0).max(initial=0.0)
    total = abs(b.sum() - problem.total)
    size = max(float(np.abs(b).sum()), abs(problem.total), np.finfo(float).tiny)
    return float(max(outside / max(float(np.abs(b).max(initial=0.0)), 1e-300), total / size))
