"""Is this the closest distribution? Its relative entropy against the dual, and its expectations.

The gap is small to second order, so the distribution that the multipliers mean is also compared
with the one that is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from mercer.array_types import Array
from mercer.machines.entropy.problem import Expectations, GibbsAnswer, span, tilted
from mercer.solvers.certificate import Certificate, certify

_TOL = 1e-7
_SAME = 1e-6  # of the largest probability: agreement of multipliers and probabilities
_FACE = 1e-6  # of the length of a direction: how well it must fit the points that stay


@dataclass(frozen=True)
class EntropyQuantities:
    """Measures of a distribution.

    Attributes
    ----------
    primal : float
        Its relative entropy to the prior.
    dual : float
        l'b - ln Z(l): no distribution with these expectations is closer to the prior.
    gap : float
        Primal less dual, as the sum of KL(p | Gibbs) and l'(E[f] - b).
    infeasibility : float
        Largest difference of an expectation from its target, in units of the feature.
    fault : float
        Distance of the sum of p from one; infinite if p is not a distribution.
    pushed_out : int
        Points with probability zero in every distribution with these expectations.
    mismatch : float
        Largest difference between p and the distribution of the multipliers, over the largest.
    """

    primal: float
    dual: float
    gap: float
    infeasibility: float
    fault: float
    pushed_out: int
    mismatch: float = 0.0


@certify.register
def _(problem: Expectations, value: GibbsAnswer, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    p, out = value.probabilities, _pushed_out(problem, value)
    bad = p.shape != problem.prior.shape or not np.isfinite(p).all() or (p < 0).any()
    if bad or (p[(problem.prior <= 0) | out] > 0).any():
        nothing = EntropyQuantities(inf, -inf, inf, inf, inf, int(out.sum()))
        return Certificate(
            False, nothing, tol, "the solution is not a distribution on the admissible points"
        )
    inside = np.where(out, -inf, problem.log_prior)
    multipliers = value.multipliers * problem.scale
    log_sum, gibbs = tilted(inside, problem.gaps, multipliers)
    off = p @ problem.gaps
    quantities = EntropyQuantities(
        _divergence(p, problem.log_prior),
        -log_sum,
        _divergence_of(p, gibbs) + float(multipliers @ off),
        float(np.abs(off).max(initial=0.0)),
        abs(float(p.sum()) - 1.0),
        int((out & (problem.prior > 0)).sum()),
        float(np.abs(p - gibbs).max() / max(p.max(), np.finfo(float).tiny)),
    )
    # features and targets are known no better than they were rounded
    hidden = span(problem, inside > -inf)[1]
    met = bool((np.abs(off) <= tol + hidden).all())
    enough = tol * max(1.0, abs(quantities.primal)) + float(np.abs(multipliers) @ hidden)
    ok = abs(quantities.gap) <= enough and met and quantities.mismatch <= _SAME
    gap = max(quantities.gap, 0.0)  # rounding may take it below
    statement = (
        f"relative entropy {quantities.primal:.6g}, within {gap:.1e} of the minimum; "
        f"expectations are met to {quantities.infeasibility:.1e}"
    )
    return Certificate(bool(ok and quantities.fault <= 1e-9), quantities, tol, statement)


def _pushed_out(problem: Expectations, value: GibbsAnswer) -> Array:
    """Return the points that the direction proves to have probability zero; none without proof."""
    y = value.direction * problem.scale
    length = float(np.abs(y).max(initial=0.0))
    if length == 0:
        return np.zeros(len(problem.prior), dtype=bool)
    heights = problem.gaps @ (y / length)
    level = _FACE + float(np.abs(y / length) @ problem.noise)
    used = problem.prior > 0
    if (heights[used] > level).any():  # then the targets are not on a face in this direction
        return np.zeros(len(problem.prior), dtype=bool)
    return np.asarray(heights < -level)


def _divergence(p: Array, log_prior: Array) -> float:
    some = p > 0
    return float(p[some] @ (np.log(p[some]) - log_prior[some]))


def _divergence_of(p: Array, q: Array) -> float:
    """Return KL(p | q) as a sum of terms that are not negative, for p and q that sum to one."""
    some = p > 0
    if (q[some] <= 0).any():
        return inf
    ratio = q[some] / p[some] - 1.0
    return float(p[some] @ (ratio - np.log1p(ratio))) + float(p.sum() - q[some].sum())
