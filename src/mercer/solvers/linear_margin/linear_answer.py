"""The ends of solvers in the space of features: what they take, what they hand back, how good.

Whatever a solver found, the answer is inside its box and has its sums; and what is said of it is
measured on all rows, from the features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram, exact
from mercer.problems import BoxQP
from mercer.solvers.base import Status
from mercer.solvers.linear_margin.crossover import with_sums
from mercer.solvers.linear_margin.screening import FeatureProgramme
from mercer.solvers.margin.descent import Criterion, filled

_ROUNDING = 1e-12  # of a sum
_NOTHING = 1e-13  # of the linear terms: all that b could do to F; and of its box
_NEAR_TOL = 1e-2  # of the tolerance: rounding that needs a second look


def linear_refusal(name: str, problem: BoxQP) -> str | None:
    """Return why a box programme is not one in the space of features."""
    if not isinstance(problem.unwrapped.base, FactoredGram):
        return (
            f"{name} needs a kernel with an explicit finite feature map (Linear, low-degree "
            "Polynomial); use solver=SMO()"
        )
    if problem.infeasible():
        return "no point of the box has the required sums: the problem is infeasible"
    return None


def admissible(problem: BoxQP, P: FeatureProgramme, b: Array) -> Array:
    """Return b inside its box and with its sums, moved as little as that takes."""
    shut = replace(problem, lower=P.lower, upper=P.upper)  # what cannot move does not
    b = np.clip(np.nan_to_num(b, posinf=0.0, neginf=0.0), P.lower, P.upper)
    weight = np.maximum(len(b) * P.rows.longest() ** 2 + P.shift, np.finfo(float).tiny)
    answering = float(np.abs(P.linear).max(initial=0.0)) / weight
    # of the box, too: where features are tiny, b does nothing to F wherever in its box it is
    nothing = np.abs(b) <= _NOTHING * np.minimum(answering, P.upper - P.lower)
    b = with_sums(P, np.where(nothing, np.clip(0.0, P.lower, P.upper), b))
    if _misses_sums(shut, b):
        b = _filled(shut, b, exact_gradient(problem, P, b))
    return _with_idle(problem, P, np.clip(shut.feasible_near(b), P.lower, P.upper))


def _misses_sums(problem: BoxQP, b: Array) -> bool:
    """Return whether sums are off by more than rounding."""
    groups = zip(problem.members(), problem.totals, strict=True)
    return any(
        abs(total - b[m].sum()) > _ROUNDING * (np.abs(b[m]).sum() + abs(total))
        for m, total in groups
    )


def _filled(problem: BoxQP, b: Array, F: Array) -> Array:
    """Repair sums by few variables, those most willing."""
    b = b.copy()
    rising, falling = problem.rising(b, F), problem.falling(b, F)
    for m, total in zip(problem.members(), problem.totals, strict=True):
        missing = float(total - b[m].sum())
        lower = np.maximum(problem.lower[m], b[m] - abs(missing))
        upper = np.minimum(problem.upper[m], b[m] + abs(missing))
        b[m] = filled(b[m], (rising if missing > 0 else falling)[m], lower, upper, float(total))
    return b


def _with_idle(problem: BoxQP, P: FeatureProgramme, b: Array) -> Array:
    """Set the rows that were left out where their own shift holds them."""
    shift = problem.shift
    if shift is None or not (idle := shift > P.shift).any():
        return b
    F = exact_gradient(problem, P, b)
    others = np.flatnonzero(~idle)
    offsets = problem.among(others, b).offsets(b[others], F[others])
    t = (F - problem.spread(offsets))[idle]
    past = np.sign(t) * np.maximum(np.abs(t) - problem.epsilons[idle], 0.0)
    b = b.copy()
    b[idle] = np.clip(past / shift[idle], problem.lower[idle], problem.upper[idle])
    b[others] = problem.among(others, b).feasible_near(b[others])
    return b


def exact_gradient(problem: BoxQP, P: FeatureProgramme, b: Array) -> Any:
    """Return F = p - K b from the features, nothing else being trusted."""
    rows, shift = P.rows, problem.shift
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        F = problem.linear - rows.values(rows.features.rmatvec(b))
        return F if shift is None else F - shift * b


def meets(
    criterion: Criterion, problem: BoxQP, P: FeatureProgramme, b: Array, F: Array, tol: float
) -> Status:
    """Judge an answer by the criterion, F being exact; where rounding could matter, twice."""
    if not (np.isfinite(F).all() and np.isfinite(b).all()):
        return Status.NOT_FINITE
    gradients = [F]
    if rounding_of(P, b) > _NEAR_TOL * tol:
        gradients.append(problem.linear - exact(problem.gram) @ b)  # in another order
    met = all(
        criterion.measure(problem, b, each) <= criterion.allowed(problem, b, each, tol)
        for each in gradients
    )
    return Status.SOLVED if met else Status.INACCURATE


def fallen_short(status: Status, problem: BoxQP, b: Array, F: Array) -> Status:
    """Return the ending, with the reason where an answer is good for nothing: no margin."""
    if status not in (Status.SOLVED, Status.INACCURATE):
        return status
    if problem.marginless(b, F):
        return Status.NO_MARGIN
    return Status.INACCURATE if problem.margin_is_hidden(b, F) else status


def rounding_of(P: FeatureProgramme, b: Array) -> float:
    """Estimate what gradients made of sums of this size are known to: one rounding of all terms.

    It decides what is tried, and when an answer is looked at twice; certificates have their own.
    """
    return float(np.finfo(float).eps * P.rows.length() ** 2 * np.abs(b).sum())
