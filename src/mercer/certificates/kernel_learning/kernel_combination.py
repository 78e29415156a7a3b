"""Are these the best weights of kernels? The duality gap of multiple kernel learning.

With S_m = f_m b'K_m b, recomputed in float64 and summed over the programmes, the optimum lies
between p'b - epsilon'|b| - max_m S_m/2 and the primal objective at the weights d. The
difference has two parts, both sums of nonnegative terms: what the machines leave at their weighted
kernel, and (max_m S_m - sum_m d_m S_m)/2, what other weights could gain. The first is a bound only
if the kernels that are used are positive semidefinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.certificates.margin.box_qp import measure
from mercer.gram import Definiteness, Gram, definiteness, exact
from mercer.gram.accurate_products import gamma, product_rounding
from mercer.gram.definite import BY_CONSTRUCTION
from mercer.problems.kernel_learning.kernel_combination import (
    KernelCombination,
    WeightedDuals,
    on_all_rows,
    on_own_rows,
)

_TOL = 1e-4
_FEASIBLE = 1e-9


@dataclass(frozen=True)
class KernelCombinationQuantities:
    """Measures of weights of kernels.

    Attributes
    ----------
    primal, dual : float
        Upper and lower bound on the smallest optimal value.
    gap : float
        Their difference.
    relative_gap : float
        gap / max(|primal|, |dual|).
    machine_gap : float
        The part of the gap that the machines leave at their weighted kernel.
    kernel_gap : float
        The part that other weights could gain.
    infeasibility : float
        Largest distance of a variable from its box and of the weights from the simplex.
    kernels, used : int
        How many kernels there are, and how many of them have a weight above zero.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    machine_gap: float
    kernel_gap: float
    infeasibility: float
    kernels: int
    used: int


@certify.register
def _(problem: KernelCombination, value: WeightedDuals, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    d = np.asarray(value.weights, dtype=np.float64)
    if len(d) != len(problem.grams):
        raise ValueError(f"{len(problem.grams)} kernels, but {len(d)} weights")
    convex = _convexity(problem, d)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        quantities = _measured(problem, value, d, convex)
    ok = quantities.relative_gap <= tol and quantities.infeasibility <= _FEASIBLE
    statement = (
        f"no weights of the {len(d)} kernels have an objective that is smaller by more than "
        f"{100 * quantities.relative_gap:.2g} %; {quantities.used} of them are used"
        if convex.shown
        else f"of the {len(d)} kernels {quantities.used} are used; of one, {convex.obstacle}, so "
        "other weights may be better by any amount"
    )
    return Certificate(bool(ok), quantities, tol, statement)


def _convexity(problem: KernelCombination, d: Array) -> Definiteness:
    """Look at the kernels that are used: weighted shifts add up, and one doubt is enough."""
    used = np.flatnonzero(d)
    found = [definiteness(problem.grams[m]) for m in used]
    worst = max(found, key=lambda one: (one.shift, -one.seen), default=BY_CONSTRUCTION)
    if not worst.shown:
        return worst
    return Definiteness(float((d * problem.factors)[used] @ [one.shift for one in found]))


def _rounding(factors: Array, grams: tuple[Gram, ...], b: Array) -> Array:
    """Bound what the product of the weighted sum of kernels is off by: Higham (3.5).

    Each product, and the sum of them: a factor, a weight and an addition for each kernel.
    """
    used = np.flatnonzero(factors)
    more = len(factors) + 3
    parts = [factors[m] * product_rounding(grams[m], b, more) for m in used]
    return np.asarray(sum(parts, np.zeros(len(b))))


def _measured(
    problem: KernelCombination, value: WeightedDuals, d: Array, convex: Definiteness
) -> KernelCombinationQuantities:
    grams = tuple(map(exact, problem.grams))
    programmes = problem.programmes(grams[0])
    coefs = [np.asarray(dual.coef, dtype=np.float64) for dual in value.duals.parts]
    columns = on_all_rows(programmes, coefs, grams[0].shape[0])
    products = problem.products(columns, grams)
    machines, primal, squares, outside = 0.0, 0.0, np.zeros(len(d)), 0.0
    parts = zip(programmes, coefs, value.duals.parts, strict=True)
    for k, (programme, b, dual) in enumerate(parts):
        own = np.stack([on_own_rows(programme, column) for column in products[:, :, k]])
        shift = programme.unwrapped.shift
        Kb = d @ own + (0.0 if shift is None else shift * b)
        rounding = on_own_rows(programme, _rounding(d * problem.factors, grams, columns[:, k]))
        if shift is not None:
            rounding = rounding + gamma(4) * np.abs(shift * b)
        found = measure(programme, b, dual.intercept, Kb, convex, rounding)
        machines, primal = machines + found.gap, primal + found.primal
        squares += own @ b
        outside = max(outside, found.infeasibility)
    kernels = 0.5 * max(0.0, float(squares.max() - d @ squares))
    gap = machines + kernels
    size = max(abs(primal), abs(primal - gap), float(np.finfo(float).tiny))
    simplex = max(abs(float(d.sum()) - 1.0), float(-d.min()))
    return KernelCombinationQuantities(
        primal,
        primal - gap,
        gap,
        gap / size if np.isfinite(gap) else np.inf,
        machines,
        kernels,
        max(outside, simplex),
        len(d),
        int(np.count_nonzero(d > 0)),
    )
