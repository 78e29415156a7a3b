"""Certificates of box QPs: duality gap, KKT conditions and feasibility; families and paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import Definiteness, Gram, definiteness, exact
from mercer.gram.accurate_products import gamma, inner, transposed_product
from mercer.gram.base import Unwrapped
from mercer.gram.definite import BY_CONSTRUCTION
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many, MarginPath, PathDuals
from mercer.rows.points import to_host
from mercer.solvers.certificate import VACUOUS, Certificate, certify

# --- box qp --------------------------------------------------------------------------------------
#
# Is it the optimum of the quadratic programme? Duality gap, optimality conditions, feasibility.
#
# With F = p - K b, where K = K0 + diag(d), and a multiplier r for each group, weak duality bounds
# the distance to the optimum by
#
#     gap = sum_i max over the box of (F_i - r)(t - b_i) - d_i (t - b_i)^2/2
#           - epsilon_i (|t| - |b_i|),
#
# a sum of nonnegative terms: unlike primal minus dual it does not cancel near the optimum. For a
# classifier it is exactly the primal objective (half the squared norm plus the weighted losses)
# minus the dual one.
#
# K b is a sum that rounds. The gap counts what that may hide: the largest one that slopes within
# the rounding of their terms leave. Where that is not next to nothing, and K is held as data, the
# sums are formed anew without rounding (`mercer.gram.accurate_products`).
#
# The bound needs K0 to be positive semidefinite on the differences of feasible points. Where that
# is known but for rounding, it is a bound for K0 + shift I, and the shift is counted in the gap.
# Where it is not known there is no bound, and no answer is certified.
#
# Certified means that the conditions hold to the tolerance: then the answer is the exact optimum
# of the programme whose linear term, the targets or margins asked for, is moved by no more than
# that. Its objective may still be far off where slack of that size is dear. So the statement
# bounds the objective if the gap does, and says that nothing is shown about it if the gap is 100
# % or more.
#
# Primal, dual and gap are those of the answer itself. A classifier multiplied by a constant decides
# alike, and the constant that brings the margin of its samples to 1 takes off what dear slack of
# the size of the tolerance costs. That gap is measured apart, and the statement names it as such.

_TOL = 1e-3
_AT_BOUND = 1e-9  # of the width of the box, or of the largest coefficient
_FEASIBLE = 1e-9
_ROUNDING = 1e-12
_SLIGHT = 0.05  # of the violation, or of the default tolerance: rounding that is not mentioned
_OPERATIONS = 1 << 23  # for values by other formulas: some 0.1 s
_CLEAR = 1e-6  # of the objective, and of the unit of violations: what rounding may always hide


@dataclass(frozen=True)
class BoxQPQuantities:
    """Measures of an answer to a box quadratic programme.

    Attributes
    ----------
    primal, dual : float
        Upper and lower bound on the optimal value (of the maximised form
        p'b - b'Kb/2 - epsilon'|b|): the primal and dual objective of the answer. The upper one is
        infinite where K is not shown to be positive semidefinite: then nothing is known about other
        answers.
    gap : float
        Their difference.
    relative_gap : float
        gap / max(|primal|, |dual|).
    violation : float
        Largest violation over pairs that could still move: zero at the optimum. LIBSVM's measure,
        in units of the output: of the decision function at margin 1, of the targets, of the margin
        in the nu forms, of the score at the border, of half the squared radius of a ball
        (`BoxQP.unit`). Infinite if a nu form has no margin.
    violation_at_zero, violation_free, violation_at_bound : float
        Largest violation, against the intercept, among variables at zero, strictly between, and
        at a bound other than zero: for a classifier the points beyond, on and inside the margin.
    intercept_error : float
        How far the offset is from the range that the conditions leave it.
    infeasibility : float
        Largest distance of a variable from its box, and of a sum from its value, relative to the
        size of the variables.
    squared_norm : float
        |w|^2 = b'K0 b, without what slack adds to the diagonal.
    margin : float
        1/|w|: the distance from f = 0 to f = 1 in feature space.
    support_fraction, bound_fraction : float
        Share of variables that are not zero, and that are at a bound other than zero.
    radius : float
        Length of the longest feature vector, max sqrt(k(x, x)).
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite on the differences of
        feasible points: zero by the construction of the kernel, rounding where K was factored,
        infinite where that is not shown.
    rescaled_gap : float
        The relative gap of a classifier multiplied by the constant, at least 1, that brings its
        margin to 1: another model with the same predictions. The relative gap itself if that is
        less, and for other machines.
    outside_fraction : float
        Fraction of the samples, by weight, that a half-space or a ball leaves outside; NaN for
        other machines.
    rounding : float
        What may be added to the violation, as values of the decision function are rounded: by a
        bound of float64 sums, or as seen in comparison with kernel values by other formulas.
    compared : float
        Samples whose values were compared or bounded; where not all, they are a random sample.
    """

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
    squared_norm: float
    margin: float
    support_fraction: float
    bound_fraction: float
    radius: float
    indefiniteness: float = 0.0
    rescaled_gap: float = np.inf
    outside_fraction: float = np.nan
    rounding: float = 0.0
    compared: float = 0.0


@certify.register
def _(problem: BoxQP, value: Dual, tol: float | None = None) -> Certificate:
    b = np.asarray(value.coef, dtype=np.float64)
    convex = convexity(problem)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by what comes of it
        Kb = np.asarray(exact(problem.gram) @ b)
        quantities = measure(problem, b, value.intercept, Kb, convex, tol=tol)
    return judged(quantities, tol, convex)


def convexity(*problems: BoxQP) -> Definiteness:
    """Return whether programmes on one Gram are convex on the differences of feasible points."""
    summed = all(p.group is None or bool((p.group >= 0).all()) for p in problems)
    return definiteness(problems[0].gram, sums_to_zero=summed)


def judged(quantities: BoxQPQuantities, tol: float | None, convex: Definiteness) -> Certificate:
    """Return the verdict on what was measured."""
    tol = _TOL if tol is None else tol
    ok = (
        quantities.violation <= tol
        and quantities.rounding <= tol
        and quantities.intercept_error <= tol
        and quantities.infeasibility <= _FEASIBLE
        and convex.shown
    )
    bound = bound_of_objective(quantities.relative_gap, convex, rescaled=quantities.rescaled_gap)
    met = "no pair of points violates the optimality conditions by more than "
    outside = ""
    if np.isfinite(quantities.outside_fraction):
        outside = f"; {quantities.outside_fraction:.2%} of the samples are outside"
    return Certificate(bool(ok), quantities, tol, f"{met}{_sizes(quantities)}; {bound}{outside}")


def _sizes(found: BoxQPQuantities | ManyQuantities) -> str:
    """Return the violation, and what rounding may add to it where that is not much less."""
    violation = max(found.violation, 0.0)
    if found.rounding <= _SLIGHT * violation or found.rounding <= _SLIGHT * _TOL:
        return f"{violation:.1e}"
    return f"{violation:.1e}, to which rounding may add {found.rounding:.1e}"


def bound_of_objective(
    relative_gap: float,
    convex: Definiteness,
    objective: str = "the objective",
    rescaled: float = np.inf,
) -> str:
    """Return how near the optimum the objective is, or that nothing is shown about that."""
    if not convex.shown:
        return f"{convex.obstacle}, so other points may be better by any amount"
    bounded, better = relative_gap < VACUOUS, rescaled < min(relative_gap, VACUOUS)
    found = f"{objective} is within {100 * relative_gap:.2g} % of the optimum"
    if not bounded and better:
        found = f"nothing is shown about {objective} as it is"
    elif not bounded:
        remedy = "; a smaller tol may bound it" if np.isfinite(relative_gap) else ""
        found = (
            "that makes the answer optimal for targets moved by as much, but nothing is shown "
            f"about {objective} for the given ones{remedy}"
        )
    if not better:
        return found
    return (
        f"{found}; multiplied by a constant that brings its margin to 1, which changes no "
        f"prediction, its objective is within {100 * rescaled:.2g} % of the optimum"
    )


def measure(
    problem: BoxQP,
    b: Array,
    intercept: float | Array,
    Kb: Array,
    convex: Definiteness,
    rounding: Array | None = None,
    tol: float | None = None,
    programmes: int = 1,
) -> BoxQPQuantities:
    """Measure an answer, given K b in float64 from the data, and what is known of K.

    `rounding` is what K b is known to, where K is not that of the programme's own Gram; `tol` says
    how small it has to be to be left as it is. One of
    several programmes is compared with other formulas by as many operations as all of them may
    take, divided by their number.
    """
    problem = problem.placed()
    b, Kb = problem.beside(b), problem.beside(Kb)
    offset = problem.spread(intercept)
    if rounding is None:
        compared = _compared(problem, b, Kb, programmes)
        Kb, rounding, error = _resolved(problem, b, Kb, offset, min(_CLEAR, _SLIGHT * (tol or 1.0)))
        error, seen = (error, len(b)) if compared is None else compared
    else:
        error, seen, rounding = rounding, len(b), _counted(problem, Kb, rounding, offset)
    F = problem.linear - Kb
    error = error + _added_up(problem, b, Kb, offset)
    shift = problem.shift
    lost = inner(problem.epsilons, np.abs(b))
    dual = inner(problem.linear, b) - 0.5 * inner(b, Kb) - lost
    squared = inner(b, Kb) - (0.0 if shift is None else inner(shift, b**2))
    gap = rescaled = np.inf
    if convex.shown:
        slope = _rounded(problem, Kb, F - offset - convex.shift * b)
        rounding = _beside(problem, rounding, gamma(3) * np.abs(convex.shift * b))
        gap = problem.gap(b, slope, rounding) + _lost_in_sums(problem, b, intercept)
        if gap > _TOL * abs(dual):
            rescaled = _rescaled_gap(problem, b, Kb, offset, dual, rounding)
        shifted = convex.shift * inner(b, b)  # what the shift takes from the dual, twice its half
        gap, rescaled = gap + shifted, rescaled + shifted
    if problem.margin_is_hidden(b, F):
        gap = rescaled = np.inf  # what rounding made of nothing is not near an optimum
    least = max(problem.least_objective(b), np.finfo(float).tiny)
    relative = _relative(gap, dual, least)
    slack = _slack(problem, b)
    zones = _zones(problem, b, slack)
    conditions = _conditions(problem, b, F, offset, slack, zones, error)
    return BoxQPQuantities(
        dual + gap,
        dual,
        gap,
        relative,
        *conditions[:-1],
        _infeasibility(problem, b),
        squared,
        1.0 / float(np.sqrt(squared)) if squared > 0 else np.inf,
        float(np.mean(~zones[0])) if len(b) else 0.0,
        float(np.mean(zones[2])) if len(b) else 0.0,
        _radius(problem, shift),
        convex.shift,
        min(relative, _relative(rescaled, dual, least)),
        _outside(problem, F - offset),
        conditions[-1],
        float(seen),
    )


def _relative(gap: float, dual: float, least: float) -> float:
    """Return a gap relative to the larger of the objectives that it lies between."""
    size = max(abs(dual), abs(dual + gap), least)
    return float(gap / size) if np.isfinite(gap) else np.inf


def _added_up(problem: BoxQP, b: Array, Kb: Array, offset: Array) -> Array:
    """Bound what decision values lose as K b and constants are added up: four roundings in a row.

    A ball adds k(x, x) and the squared norm of its center, and subtracts its squared radius, the
    square of a root. F is half of that.
    """
    terms = np.abs(Kb) + np.abs(offset)
    if problem.bordering and problem.linear.any():
        terms = terms + np.abs(problem.linear) + np.abs(inner(b, Kb)) + np.abs(offset)
    return np.asarray(gamma(4) * terms)


def _compared(problem: BoxQP, b: Array, Kb: Array, programmes: int) -> tuple[Array, int] | None:
    """Return how far K b is from that of other formulas, where K is evaluated by such."""
    if not isinstance(b, np.ndarray) or not np.isfinite(Kb).all():
        return None
    return problem.product_error(b, Kb, _OPERATIONS / programmes)


def _resolved(
    problem: BoxQP, b: Array, Kb: Array, offset: Array, clear: float
) -> tuple[Array, Array, Array]:
    """Return K b and what slopes are known to, by sums without rounding where that matters.

    The third is what values that come from plain sums, as predictions do, may be off by.
    """
    plain = problem.product_rounding(b)
    rounding = _counted(problem, Kb, plain, offset)
    if not np.isfinite(Kb).all() or _is_clear(problem, b, Kb, offset, rounding, clear):
        return Kb, rounding, plain
    found = problem.accurate_product(b)
    if found is None:
        return Kb, rounding, plain
    return found[0], _counted(problem, *found, offset), np.abs(found[0] - Kb) + found[1]


def _counted(problem: BoxQP, Kb: Array, rounding: Array, offset: Array) -> Array:
    """Return what slopes are known to, given K b and its rounding.

    Beside it, two differences are rounded, and by how much is known (Knuth's exact difference): of
    targets that are all met nothing is lost, and their objective of zero is one. None is counted
    where no slack is allowed: there an answer is one to a share of 1e-12 (`_rounded`), so that the
    gap is one of targets that may be moved by as much.
    """
    lost = np.abs(_lost(problem.linear, Kb)) + np.abs(_lost(problem.linear - Kb, offset))
    return _beside(problem, rounding, lost)


def _beside(problem: BoxQP, rounding: Array, more: Array) -> Array:
    """Add up what slopes are known to, but where no slack is allowed."""
    up, down = _hard(problem)
    return np.where(up | down, 0.0, rounding + more)


def _lost(first: Any, second: Any) -> Any:
    """Return what rounding takes from a difference, exactly (Knuth, 1969)."""
    difference = first - second
    back = difference - first
    return (first - (difference - back)) - (second + back)


def _is_clear(
    problem: BoxQP, b: Array, Kb: Array, offset: Array, rounding: Array, clear: float
) -> bool:
    """Return whether rounding of K b is next to nothing in conditions and gap."""
    F = problem.linear - Kb
    objective = abs(inner(b, problem.linear + F)) / 2
    hidden = problem.gap(b, F - offset, rounding) - problem.gap(b, F - offset)
    small = float(rounding.max(initial=0.0)) <= clear * problem.unit(b, F)
    return small and (np.isnan(hidden) or hidden <= clear * objective)


def _lost_in_sums(problem: BoxQP, b: Array, intercept: float | Array) -> float:
    """Bound what sums of b that are right to rounding only, times their multipliers, amount to.

    The sums are split (`transposed_product`), and what that leaves is counted.
    """
    off = []
    for m, total in zip(problem.members(), problem.totals, strict=True):
        part = np.asarray(to_host(b[m]), dtype=np.float64)
        found, rounding = transposed_product(np.ones((len(part), 1)), part)
        off.append(abs(float(found[0]) - total) + float(rounding[0]))
    multipliers = np.abs(np.atleast_1d(intercept))
    return (1.0 + gamma(len(off) + 2)) * float(multipliers @ np.array(off))


def _rounded(problem: BoxQP, Kb: Array, slope: Array) -> Array:
    """Return the slopes without what rounding of f leaves where no slack is allowed."""
    up, down = _hard(problem)
    if not (up.any() or down.any()):
        return slope
    size = 1.0 + np.abs(Kb).max(initial=0.0) + np.abs(problem.linear).max(initial=0.0)
    over, under = slope - problem.epsilons, -slope - problem.epsilons
    slope = np.where(up & (over > 0) & (over <= _ROUNDING * size), problem.epsilons, slope)
    return np.where(down & (under > 0) & (under <= _ROUNDING * size), -problem.epsilons, slope)


def _hard(problem: BoxQP) -> tuple[Array, Array]:
    """Return which variables nothing stops on their way up, and down: no slack is allowed."""
    shift = problem.shift
    up, down = np.isinf(problem.upper), np.isinf(problem.lower)
    return (up, down) if shift is None else (up & (shift == 0), down & (shift == 0))


def _rescaled_gap(
    problem: BoxQP, b: Array, Kb: Array, offset: Array, dual: float, rounding: Array
) -> float:
    """Return the gap of a classifier multiplied so that its margin is 1.

    Any w and offset bound the optimum. A slack of delta that the tolerance left is multiplied by
    C, which may be large or infinite; divided by 1 - delta, w and the offset have none, except in
    samples at their bound. Where slack is squared, either none is left or it is as it was.

    Unlike `BoxQP.gap` this is a difference of two objectives, which cancels: what each may be off
    by is added, |b|'r with r what K b is known to, and what sums of n products lose, Higham (3.5).
    """
    if np.any(problem.epsilons) or problem.totals.any() or (np.abs(problem.linear) != 1).any():
        return np.inf
    d = np.zeros_like(b) if problem.shift is None else problem.shift
    slope, near = problem.linear - (Kb - d * b) - offset, _slack(problem, b)
    up = (problem.upper > 0) & (b < problem.upper - near)
    down = (problem.lower < 0) & (b > problem.lower + near)
    squared = inner(b, Kb) - inner(d, b**2)
    size, most = np.abs(b), np.abs(problem.linear) + np.abs(Kb) + d * np.abs(b)
    lost = inner(size, rounding) + gamma(len(b) + 6) * inner(size, most)

    def bound(rows: Array) -> float:
        """Return the primal objective, scaled so that these rows have no slack, nor by rounding."""
        over, under = slope + 2 * rounding, slope - 2 * rounding
        most = [over[up & rows].max(initial=0.0), -under[down & rows].min(initial=0.0)]
        if not max(most) < 1:
            return np.inf
        scale = 1.0 / (1.0 - float(max(most)))
        scaled = scale * (Kb - d * b)
        left = _rounded(problem, scaled, problem.linear - scaled - scale * offset)
        norm = 0.5 * scale**2 * (squared + lost)
        return norm + problem.gap(np.zeros_like(b), left, scale * rounding)

    best = min(bound(d == 0), bound(np.ones_like(up)))
    return max(0.0, best - dual) + lost


def _outside(problem: BoxQP, slope: Array) -> float:
    """Return the fraction of the weight at which the decision of a novelty detector is negative."""
    if not problem.bordering:
        return np.nan
    weight = np.ones(len(slope)) if np.isinf(problem.upper).any() else problem.upper
    return float(weight[slope > 0].sum() / max(float(weight.sum()), np.finfo(float).tiny))


def _slack(problem: BoxQP, b: Array) -> Any:
    """Return how near a bound counts as being at it: other solvers do not assign bounds exactly.

    In a box much wider than b that is a share of b, or everything would count as being at zero.
    """
    width = problem.upper - problem.lower
    return _AT_BOUND * np.minimum(width, np.abs(b).max(initial=0.0))


def _zones(problem: BoxQP, b: Array, slack: Array) -> tuple[Array, Array, Array]:
    """Return which variables are at zero, free, and at a bound other than zero."""
    zero = np.abs(b) <= slack
    bound = ~zero & ((b >= problem.upper - slack) | (b <= problem.lower + slack))
    return zero, ~zero & ~bound, bound


def _conditions(
    problem: BoxQP,
    b: Array,
    F: Array,
    offset: Array,
    slack: Array,
    zones: tuple[Array, Array, Array],
    error: Array,
) -> tuple[float, float, float, float, float, float]:
    """Return the largest violation of pairs and of each zone, and the error of the offset.

    The last is what pairs may violate the conditions by in addition, as values are off by `error`.
    """
    finite = bool(np.isfinite(F).all() and np.isfinite(offset).all())
    if not finite or problem.margin_is_hidden(b, F):
        return np.inf, np.inf, np.inf, np.inf, np.inf, np.inf
    unit = problem.unit(b, F)
    apart = [problem.violation(b, F, slack), problem.violation(b, F, slack, error)]
    apart = [one if np.isfinite(one) else 0.0 for one in apart]
    apart, most = _in_units(np.array(apart), unit)
    rising, falling = problem.rising(b, F, slack), problem.falling(b, F, slack)
    excess = np.maximum(np.maximum(rising - offset, offset - falling), 0.0)
    excess = _in_units(excess, unit)
    zero, free, bound = (float(excess[zone].max(initial=0.0)) for zone in zones)
    more = max(0.0, float(most - max(apart, 0.0)))
    return float(apart), zero, free, bound, float(excess.max(initial=0.0)), more


def _in_units(violation: Array, unit: float) -> Array:
    """Return violations relative to the unit of the problem; without one, none is small."""
    return violation / unit if unit > 0 else np.where(violation > 0, np.inf, violation)


def _infeasibility(problem: BoxQP, b: Array) -> float:
    outside = np.maximum(np.maximum(problem.lower - b, b - problem.upper), 0.0).max(initial=0.0)
    largest = max(float(np.abs(b).max(initial=0.0)), 1e-300)
    tiny = np.finfo(float).tiny
    sums = [
        abs(float(b[m].sum()) - total) / max(float(np.abs(b[m]).sum()), abs(total), tiny)
        for m, total in zip(problem.members(), problem.totals, strict=True)
    ]
    return float(max([outside / largest, *sums]))


def _radius(problem: BoxQP, shift: Array | None) -> float:
    diagonal = problem.gram.diag() - (0.0 if shift is None else shift)
    return float(np.sqrt(max(0.0, diagonal.max(initial=0.0))))


# --- many ----------------------------------------------------------------------------------------
#
# Are all programmes of a family at their optimum? The worst of them decides.

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
    rescaled_gap, rounding : float
        The largest among the programmes.
    compared : int
        Samples whose values were compared or bounded, of all programmes.
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
    rescaled_gap: float = np.inf
    rounding: float = 0.0
    compared: int = 0


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
            measure(
                p,
                np.asarray(dual.coef, dtype=np.float64),
                dual.intercept,
                Kb,
                convex,
                tol=tol,
                programmes=len(value.parts),
            )
            for p, dual, Kb in pairs
        ]
        together = _together(found, [len(p.linear) for p in problem.problems])
    verdicts = [judged(quantities, tol, convex) for quantities in found]
    statement = (
        f"in {len(found)} programmes no pair of points violates the optimality conditions by more "
        f"than {_sizes(together)} (worst: number {together.worst}); "
    )
    statement += bound_of_objective(
        together.relative_gap, convex, "every objective", together.rescaled_gap
    )
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
        worst("rescaled_gap"),
        worst("rounding"),
        int(total("compared")),
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


# --- path ----------------------------------------------------------------------------------------
#
# Is every setting of a path at its optimum? Each is judged as if it had been solved alone.


@dataclass(frozen=True)
class MarginPathQuantities:
    """Measures of the answers along a regularization path.

    Attributes
    ----------
    settings, programmes : int
        How many settings there are, and programmes of each.
    worst : int
        The number, from 0, of the setting with the largest violation.
    violations, relative_gaps : tuple of float
        For each setting the largest among its programmes.
    violation, relative_gap, intercept_error, infeasibility : float
        The largest among all settings.
    value_error : float
        Largest error of a value at a row that was asked for, in units of f.
    indefiniteness : float
        What is added to the diagonal of K to make it positive semidefinite: zero by construction,
        rounding where K was factored, infinite where that is not shown.
    """

    settings: int
    programmes: int
    worst: int
    violations: tuple[float, ...]
    relative_gaps: tuple[float, ...]
    violation: float
    relative_gap: float
    intercept_error: float
    infeasibility: float
    value_error: float
    indefiniteness: float = 0.0


@certify.register
def _(problem: MarginPath, value: PathDuals, tol: float | None = None) -> Certificate:
    if len(problem.settings) != len(value.solved):
        raise ValueError(f"{len(problem.settings)} settings, but {len(value.solved)} answers")
    convex = convexity(*problem.problems)
    tol = _TOL if tol is None else tol
    found = [
        judged_together(problem.at(setting), value.at(s), tol, convex)
        for s, setting in enumerate(problem.settings)
    ]
    error = _value_error(problem, value)
    measured = [one.quantities for one in found]
    quantities = MarginPathQuantities(
        len(found),
        len(problem.problems),
        int(np.argmax([q.violation for q in measured])),
        tuple(float(q.violation) for q in measured),
        tuple(float(q.relative_gap) for q in measured),
        max(q.violation for q in measured),
        max(q.relative_gap for q in measured),
        max(q.intercept_error for q in measured),
        max(q.infeasibility for q in measured),
        error,
        convex.shift,
    )
    wrong = [s for s, one in enumerate(found) if not one.ok]
    statement = (
        f"at {len(found) - len(wrong)} of {len(found)} settings the answer is the optimum to the "
        f"tolerance (worst: number {quantities.worst}, violation {quantities.violation:.1e}); "
        f"values at the rows asked for are off by {error:.1e} at most"
    )
    return Certificate(not wrong and error <= tol, quantities, tol, statement)


def _value_error(problem: MarginPath, value: PathDuals) -> float:
    """Return the largest error of a value, from K in float64 and the coefficients alone."""
    if not len(problem.evaluation_rows):
        return 0.0
    true = [problem.values(k, b) for k, b in enumerate(value.coef)]
    return float(np.abs(np.stack(true, axis=1) - value.values).max(initial=0.0))
