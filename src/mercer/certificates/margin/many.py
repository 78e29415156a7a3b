"""Are all programmes of a family at their optimum? The worst of them decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.certificates.base import Certificate, certify
from mercer.certificates.margin.box_qp import (
    BoxQPQuantities,
    bound_of_objective,
    convexity,
    judged,
    measure,
)
from mercer.gram import Definiteness, Gram, exact
from mercer.gram.base import Unwrapped
from mercer.gram.definite import BY_CONSTRUCTION
from mercer.problems import BoxQP, Dual, Duals, Many

_SENT = 8.0  # bytes of a coefficient: what a product takes for each point, beside the points


@dataclass(frozen=True)
class ManyQuantities:
    """Measures of the answers to several box quadratic programmes.

    Attributes
    ----------
    programmes : int
        How many there are.
    worst : int
        The number, from 0, of the one with the largest violation.
    primal, dual, gap : float
        Sums over the programmes.
    relative_gap, violation, intercept_error, infeasibility : float
        The largest among the programmes.
    violation_at_zero, violation_free, violation_at_bound : float
        The largest in each zone among the programmes.
    margin : float
        The smallest.
    support_fraction, bound_fraction : float
        Shares of all variables.
    radius : float
        The largest.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by construction,
        rounding where K was factored, infinite where that is not shown.
    """

    programmes: int
    worst: int
    primal: float
    dual: float
    gap: float
    relative_gap: float
    violation: float
    violation_at_zero: float
    violation_free: float
    violation_at_bound: float
    intercept_error: float
    infeasibility: float
    margin: float
    support_fraction: float
    bound_fraction: float
    radius: float
    indefiniteness: float = 0.0


@certify.register
def _(problem: Many, value: Duals, tol: float | None = None) -> Certificate:
    if len(problem.problems) != len(value.parts):
        raise ValueError(f"{len(problem.problems)} programmes, but {len(value.parts)} answers")
    return judged_together(problem, value, tol, _convexity(problem))


def judged_together(
    problem: Many, value: Duals, tol: float | None, convex: Definiteness
) -> Certificate:
    """Return the verdict on all programmes, given what is known of K."""
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        pairs = zip(problem.problems, value.parts, _products(problem, value), strict=True)
        found = [
            measure(p, np.asarray(dual.coef, dtype=np.float64), dual.intercept, Kb, convex)
            for p, dual, Kb in pairs
        ]
        together = _together(found, [len(p.linear) for p in problem.problems])
    verdicts = [judged(quantities, tol, convex) for quantities in found]
    statement = (
        f"in {len(found)} programmes no pair of points violates the optimality conditions by more "
        f"than {max(together.violation, 0.0):.1e} (worst: number {together.worst}); "
    )
    statement += bound_of_objective(together.relative_gap, convex, "every objective")
    return Certificate(all(v.ok for v in verdicts), together, verdicts[0].tol, statement)


def _together(found: list[BoxQPQuantities], sizes: list[int]) -> ManyQuantities:
    def worst(name: str) -> float:
        return float(max(getattr(q, name) for q in found))

    def total(name: str) -> float:
        return float(sum(getattr(q, name) for q in found))

    def share(name: str) -> float:
        return float(np.average([getattr(q, name) for q in found], weights=sizes))

    primal, dual, gap = total("primal"), total("dual"), total("gap")
    return ManyQuantities(
        len(found),
        int(np.argmax([q.violation for q in found])),
        primal,
        dual,
        gap,
        worst("relative_gap"),
        worst("violation"),
        worst("violation_at_zero"),
        worst("violation_free"),
        worst("violation_at_bound"),
        worst("intercept_error"),
        worst("infeasibility"),
        float(min(q.margin for q in found)),
        share("support_fraction"),
        share("bound_fraction"),
        worst("radius"),
        worst("indefiniteness"),
    )


def _convexity(problem: Many) -> Definiteness:
    """Look at every Gram once; the worst that is found counts for all programmes."""
    grams: dict[int, list[BoxQP]] = {}
    for one in problem.problems:
        grams.setdefault(id(one.unwrapped.base), []).append(one)
    found = [convexity(*those) for those in grams.values()]
    return max(found, key=lambda one: (one.shift, -one.seen), default=BY_CONSTRUCTION)


def _products(problem: Many, value: Duals) -> list[Array]:
    """Return K b of every programme, by one product of the shared Gram where that is less work."""
    unwrapped = [p.unwrapped for p in problem.problems]
    base = unwrapped[0].base
    n = base.shape[0]
    columns = [_on_base(h, dual, n) for h, dual in zip(unwrapped, value.parts, strict=True)]
    alone = sum(
        len(p.linear) * np.count_nonzero(c) for p, c in zip(problem.problems, columns, strict=True)
    )
    used = np.flatnonzero(np.any(columns, axis=0))
    # a card is sooner done with all entries than with being sent the rows of each programme
    sent = choose_backend().keeps(_SENT * n)
    if any(h.base is not base for h in unwrapped) or (alone <= n * len(used) and not sent):
        return [_product(p, dual) for p, dual in zip(problem.problems, value.parts, strict=True)]
    shared = np.asarray(exact(base) @ np.stack(columns, axis=1))
    return [
        _part(column, h, dual)
        for column, h, dual in zip(shared.T, unwrapped, value.parts, strict=True)
    ]


def _on_base(unwrapped: Unwrapped, dual: Dual, n: int) -> Array:
    if unwrapped.index is None:
        return np.asarray(dual.coef, dtype=np.float64)
    return np.bincount(unwrapped.index, np.asarray(dual.coef, dtype=np.float64), n)


def _part(product: Array, unwrapped: Unwrapped, dual: Dual) -> Array:
    product = product if unwrapped.index is None else product[unwrapped.index]
    return product if unwrapped.shift is None else product + unwrapped.shift * dual.coef


def _product(problem: BoxQP, dual: Dual) -> Array:
    gram: Gram = exact(problem.gram)
    return np.asarray(gram @ np.asarray(dual.coef, dtype=np.float64))
