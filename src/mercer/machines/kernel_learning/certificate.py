"""Certificates of weights by a loss, weights by alignment, and scales of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from mercer.array_types import Array
from mercer.backends.factorizations import solve_with_determinant
from mercer.gram import Definiteness, Gram, Source, definiteness, exact
from mercer.gram.accurate_products import gamma, product_rounding
from mercer.gram.build import matrix_gram
from mercer.gram.definite import BY_CONSTRUCTION
from mercer.machines.kernel_learning.problem import (
    KernelAlignment,
    KernelCombination,
    KernelWeights,
    LeaveOneOut,
    Likelihood,
    Relevance,
    RidgeMeasure,
    Scaled,
    WeightedDuals,
    on_all_rows,
    on_own_rows,
)
from mercer.machines.kernel_learning.solvers import measured
from mercer.machines.ridge.direct import CholeskyPath
from mercer.machines.ridge.problem import RidgePath
from mercer.machines.svm.certificate import measure
from mercer.solvers.base import Watch
from mercer.solvers.certificate import Certificate, certify

# --- weights by a loss ---------------------------------------------------------------------------
#
# The duality gap of multiple kernel learning.
#
# With S_m = f_m b'K_m b, recomputed in float64 and summed over the programmes, the optimum lies
# between p'b - epsilon'|b| - max_m S_m/2 and the primal objective at the weights d. The
# difference has two parts, both sums of nonnegative terms: what the machines leave at their
# weighted kernel, and (max_m S_m - sum_m d_m S_m)/2, what other weights could gain. The first is
# a bound only if the kernels that are used are positive semidefinite.

_KERNEL_COMBINATION_TOL = 1e-4


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
    tol = _KERNEL_COMBINATION_TOL if tol is None else tol
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


# --- weights by alignment ------------------------------------------------------------------------
#
# Optimality conditions of the best aligned nonnegative sum, in float64.
#
# With d scaled to s = (a'd / d'Md) d, the slope a - M s must be zero where d > 0 and not positive
# elsewhere. In cosines: with K the sum, k its alignment with the target and c_m that of kernel m
# with K, the alignment of kernel m with the target is at most k c_m.

_KERNEL_ALIGNMENT_TOL = 1e-6
_FEASIBLE = 1e-9


@dataclass(frozen=True)
class KernelAlignmentQuantities:
    """Measures of weights of kernels.

    Attributes
    ----------
    alignment : float
        Of the weighted sum with the target.
    best_single : float
        The largest among the kernels on their own.
    violation : float
        Largest violation of the optimality conditions, in cosines.
    infeasibility : float
        Distance of the weights from the simplex.
    kernels, used : int
        How many kernels there are, and how many of them have a weight above zero.
    """

    alignment: float
    best_single: float
    violation: float
    infeasibility: float
    kernels: int
    used: int


@certify.register
def _(problem: KernelAlignment, value: KernelWeights, tol: float | None = None) -> Certificate:
    tol = _KERNEL_ALIGNMENT_TOL if tol is None else tol
    d, moments = np.asarray(value.weights, dtype=np.float64), problem.measured_anew()
    if len(d) != len(problem.grams):
        raise ValueError(f"{len(problem.grams)} kernels, but {len(d)} weights")
    reached = moments.alignment(d)
    tiny = float(np.finfo(float).tiny)
    lengths = np.sqrt(np.maximum(moments.kernels.diagonal(), tiny))
    length = np.sqrt(max(float(d @ moments.kernels @ d), tiny))
    alone = moments.target / lengths / np.sqrt(max(moments.size, tiny))
    slope = alone - reached * (moments.kernels @ d) / lengths / length
    used = d > 0
    violation = max(float(slope.max()), float(np.abs(slope[used]).max(initial=0.0)))
    outside = max(abs(float(d.sum()) - 1.0), float(-d.min()))
    quantities = KernelAlignmentQuantities(
        reached, float(alone.max()), violation, outside, len(d), int(np.count_nonzero(used))
    )
    ok = violation <= tol and outside <= _FEASIBLE
    statement = (
        f"the alignment is {reached:.4f} (best single kernel: {quantities.best_single:.4f}); no "
        f"weight violates the optimality conditions by more than {violation:.1e}"
    )
    return Certificate(bool(ok), quantities, tol, statement)


# --- scales of features --------------------------------------------------------------------------
#
# Slopes, and the objective computed another way.

_RELEVANCE_TOL = 1e-3
_AGREE = 1e-6


@dataclass(frozen=True)
class RelevanceQuantities:
    """Measures of learnt scales.

    Attributes
    ----------
    value : float
        The mean squared leave-one-out error, or the log-likelihood of all rows.
    stationarity : float
        Largest slope, by the logarithm of a scale or of the penalty, that does not point out of the
        bounds: of the logarithm of the error, or of the log-likelihood of one row.
    value_error : float
        Difference of the value, as it is minimised, to one computed another way.
    at_lower, at_upper : int
        How many scales, the penalty included, are at a bound.
    """

    value: float
    stationarity: float
    value_error: float
    at_lower: int
    at_upper: int


@certify.register
def _(problem: Relevance, value: Scaled, tol: float | None = None) -> Certificate:
    tol = _RELEVANCE_TOL if tol is None else tol
    reached, gradient = measured(problem, value)
    expression, _ = problem.family(np.asarray(value.scales, dtype=np.float64))
    K = exact(Source(expression, problem.X)).dense()
    error = float(abs(another_way(problem.measure, problem, K, value.penalty) - reached))
    logs = value.logs
    near = problem.at_bounds(logs)
    steepest = float(np.abs(problem.uphill(near, gradient)).max())
    free = problem.lower < problem.upper
    quantities = RelevanceQuantities(
        problem.measure.reported(problem, reached),
        steepest,
        error,
        int(np.sum(free & (near <= problem.lower))),
        int(np.sum(free & (near >= problem.upper))),
    )
    ok = steepest <= tol and error <= _AGREE
    statement = (
        f"no scale has a slope above {steepest:.1e}; {quantities.at_upper} of {len(logs)} "
        "parameters are at their upper bound"
    )
    return Certificate(bool(ok), quantities, tol, statement)


@singledispatch
def another_way(measure: RidgeMeasure, problem: Relevance, K: Array, penalty: float) -> float:
    """Compute what is minimised without the code that minimised it."""
    raise TypeError(f"no other way to compute {type(measure).__name__}")


@another_way.register
def _(measure: LeaveOneOut, problem: Relevance, K: Array, penalty: float) -> float:
    path = RidgePath(
        matrix_gram(K), problem.targets, problem.row_weights, np.array([penalty]), problem.bias
    )
    value = CholeskyPath().run(path, Watch()).value
    return float(np.log(value.scores.sum()))


@another_way.register
def _(measure: Likelihood, problem: Relevance, K: Array, penalty: float) -> float:
    s, Y, n = problem.row_weights, problem.targets, len(problem.row_weights)
    C = K + np.diag(penalty / s)
    total, targets = float(s.sum()), Y.shape[1]
    ones = np.ones((n, 1))
    solved, _, logarithm = solve_with_determinant(C, np.column_stack([Y, ones]))
    log_determinant = logarithm + float(np.log(s).sum())
    squares = np.sum(Y * solved[:, :-1], axis=0)
    if problem.bias:
        inverse_sum = float(solved[:, -1].sum())
        squares = squares - solved[:, :-1].sum(axis=0) ** 2 / inverse_sum
        log_determinant += float(np.log(inverse_sum))
    free = total - problem.bias
    log_determinant += (total - n) * float(np.log(penalty))
    fit = float(np.sum(free * (np.log(squares / free) + 1.0 + np.log(2.0 * np.pi))))
    return float(0.5 * (targets * log_determinant + fit) / (total * targets))
