"""Certificate of action values: the residual of their equation, and of Bellman's on the sample."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from mercer.machines.reinforcement.problem import BellmanEquation, KernelQ
from mercer.solvers.certificate import Certificate, certify

_TOL = 1e-6


@dataclass(frozen=True)
class BellmanQuantities:
    """Measures of action values, in units of the rewards.

    Attributes
    ----------
    residual : float
        Largest leftover of the equation that is solved: Q against the ridge regression on its own
        targets.
    bellman_residual : float
        Largest |r + discount max Q(s', a') - Q(s, a)| of a transition of the sample.
    bellman_error : float
        Root of its mean square.
    largest_value : float
        Largest |Q| at the sample.
    """

    residual: float
    bellman_residual: float
    bellman_error: float
    largest_value: float


@certify.register
def _(problem: BellmanEquation, value: KernelQ, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    whole = value.coef.shape == (len(problem.points),) and np.isfinite(value.intercept)
    if not whole or not np.isfinite(value.coef).all():
        nothing = BellmanQuantities(inf, inf, inf, inf)
        return Certificate(
            False, nothing, tol, "the coefficients are not finite, or their number is wrong"
        )
    left, wrong = problem.leftover(value)
    size = max(float(np.abs(problem.here(value)).max()), float(np.abs(problem.rewards).max()))
    constant = abs(float(value.coef.sum())) * problem.penalty if problem.bias else 0.0
    quantities = BellmanQuantities(
        max(float(np.abs(left).max()), constant),
        float(np.abs(wrong).max()),
        float(np.sqrt(np.average(wrong**2, weights=problem.weights))),
        size,
    )
    as_asked = problem.bias or value.intercept == 0
    ok = quantities.residual <= tol * (size or 1.0) and as_asked
    statement = (
        f"Q is the regression on its own targets within {quantities.residual:.1e}, with a "
        f"Bellman residual of {quantities.bellman_error:.2g} on the sample (root mean square); "
        f"other states and the quality of the policy are not certified"
    )
    return Certificate(bool(ok), quantities, tol, statement)
