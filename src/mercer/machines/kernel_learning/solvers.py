"""Kernel learning solvers: nonnegative least squares, simplex Newton, scale descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mercer.array_types import Array
from mercer.expression import Expression, Statistic
from mercer.gram import FactoredGram, PrecomputedGram, Source
from mercer.gram.policy import DECOMPOSED_ROWS, STIFF, stored_dtype
from mercer.gram.precomputed import WeightedSumGram
from mercer.kernels.derivatives import columns_of_distance, slope
from mercer.machines.gaussian_process.marginal_likelihood import by_scales, finite_slopes, inverted
from mercer.machines.kernel_learning.problem import (
    KernelAlignment,
    KernelCombination,
    KernelWeights,
    Relevance,
    Scaled,
    WeightedDuals,
    on_all_rows,
    on_own_rows,
)
from mercer.machines.svm.descent import Gap
from mercer.machines.svm.path import Each
from mercer.machines.svm.primal.interior_point import InteriorPoint
from mercer.machines.svm.problem import BoxQP, Dual, Duals, Many
from mercer.machines.svm.smo import SMO
from mercer.rows.points import to_dense
from mercer.solvers.base import Progress, Solution, Solver, Status, Watch, report
from mercer.solvers.bounded_descent import bounded_descent
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import factor_spd

# --- weights by a loss ---------------------------------------------------------------------------
#
# Multiple kernel learning: Newton steps over the simplex of weights.

_FINER = 0.1  # of tol: how well programmes are answered, so that their errors do not decide
_FINEST = 1e-14
_ENOUGH = 0.1  # of the predicted gain that a step must bring
_SHRUNK = 0.7  # of the gap, where the gain of a step cannot be seen
_FAR = 0.1  # relative gap: above, the quadratic model misleads
_ROUGH = 3.0  # times what was asked: a gap of machines that rounding of float32 leaves
_STALLED = 1e6  # damping, in units of the slope
_LEAST_SHARE = 1e-8  # of weights off the border of the simplex
_QUADRATIC = SMO(tol=1e-10, max_iter=1_000_000)


@dataclass(frozen=True)
class SimplexNewton(Solver):
    """Damped Newton steps on the optimal value as a function of the weights.

    Each step minimises a quadratic model over the simplex, itself a small box programme, and is
    taken if it brings a share of what the model promised; else the model is made stiffer. Weights
    that are zero at the optimum become exactly zero. The programmes start from their last answers.

    Parameters
    ----------
    tol : float
        What the duality gap may be, relative to the objective.
    max_iter : int
        Largest number of steps.
    """

    answers = KernelCombination

    tol: float = 1e-4
    max_iter: int = 200

    def _obstacle(self, problem: KernelCombination) -> str | None:
        """Take combinations of kernels."""
        if not problem.grams:
            return "there is no kernel to give a weight to"
        return None

    def run(self, problem: KernelCombination, watch: Watch, start: Any = None) -> Solution:
        """Step until the gap is below the tolerance, nothing is gained, or a limit is reached."""
        count = len(problem.grams)
        weights = np.full(count, 1.0 / count) if start is None else _on_simplex(start.weights)
        search = _SimplexRun(problem, watch, max(_FINER * self.tol, _FINEST))
        point = search.at(weights, None)
        iteration, status = 0, Status.ITERATION_LIMIT
        while iteration < self.max_iter:
            stop = watch.tick(iteration, point.relative_gap)
            if point.relative_gap <= self.tol or stop or point.status is Status.NOT_CONVEX:
                status = Status.SOLVED
                break
            iteration += 1
            further = search.step(point) or search.inward(point)
            if further is None:
                status = Status.INACCURATE
                break
            point = further
        point = search.best or point
        if point.relative_gap <= self.tol:
            status = Status.SOLVED
        value = WeightedDuals(point.weights, point.duals)
        status = Status.NOT_CONVEX if point.status is Status.NOT_CONVEX else status
        if point.relative_gap > self.tol:
            status = watch.stopped or status
        return report(self, value, status, iteration, watch)


@dataclass
class _SimplexRun:
    """What is remembered from step to step.

    Attributes
    ----------
    problem : KernelCombination
        What is asked.
    watch : Watch
        The clock.
    precision : float
        How well programmes are answered.
    damping : float
        What is added to the curvature, in units of the slope.
    balancings : int
        How many steps of the other kind, good from afar, are left.
    share : float
        What the last step off the border gave to all kernels together.
    dtype : numpy dtype
        Type of the weighted sum of matrices.
    best : Point or None
        The answer with the smallest gap so far.
    """

    problem: KernelCombination
    watch: Watch
    precision: float
    damping: float = 1e-3
    balancings: int = 8
    share: float = 0.1
    dtype: Any = field(init=False)
    best: Point | None = None

    def __post_init__(self) -> None:
        self.dtype = stored_dtype(self.problem.grams[0].shape[0])

    def step(self, point: Point) -> Point | None:
        """Return a better point, or the same answered better; None where neither can be had."""
        if self._needs_digits(point):
            self.dtype = np.dtype(np.float64)
            return self.at(point.weights, point)
        if self.balancings and point.relative_gap > _FAR:
            self.balancings -= 1
            return self.at(_balanced(point), point)
        self.balancings = 0  # what a Newton step set to zero would stay zero
        H = point.curvature()
        while self.damping <= _STALLED:
            target, gain = _model_minimum(point, H, self.damping)
            noise = self._noise(point)
            if gain <= noise:
                return self._last(target, point)
            trial = self.at(target, point)
            if self.watch.stopped:
                return trial if trial.upper < point.upper else point
            if trial.upper <= point.upper - _ENOUGH * gain + noise + trial.machine_gap:
                self.damping = max(self.damping / 10.0, 1e-9)
                return trial
            self.damping = 10.0 * max(self.damping, 1e-7)
        return None

    def inward(self, point: Point) -> Point | None:
        """Step off the border of the simplex, where no step along it helps; None where it is tried.

        With few kernels left their sum may be singular. Then many b are best, slopes jump, and the
        b at hand bounds nothing; close by it is the one that other kernels like best.
        """
        if point.weights.all() or self.share <= _LEAST_SHARE or self.watch.stopped:
            return None
        self.share, self.damping = self.share / 10.0, 1e-3
        equal = self.share / len(point.weights)
        return self.at((1.0 - self.share) * point.weights + equal, point)

    def _noise(self, point: Point) -> float:
        """Return what values are uncertain by."""
        return max(point.machine_gap, 1e-14 * abs(point.upper))

    def _last(self, target: Array, point: Point) -> Point | None:
        """Step where the gain is too small to be seen: what is seen is whether the gap shrinks.

        Where it does not, the slopes were those of a rough answer, which is made finer.
        """
        finest = self.precision <= _FINEST
        self.precision = max(self.precision / 100.0, _FINEST)
        trial = self.at(target, point)
        if trial.relative_gap < _SHRUNK * point.relative_gap:
            return trial
        return None if finest or self.watch.stopped else self.at(point.weights, point)

    def at(self, weights: Array, earlier: Point | None) -> Point:
        """Answer the programmes at some weights."""
        found = answered(
            self.problem, weights, self.precision, self.watch, earlier, dtype=self.dtype
        )
        if self.best is None or found.relative_gap < self.best.relative_gap:
            self.best = found
        return found

    def _needs_digits(self, point: Point) -> bool:
        rough = point.machine_gap > _ROUGH * self.precision * abs(point.upper)
        return rough and point.relative_gap < _FAR and self.dtype == np.float32


def _balanced(point: Point) -> Array:
    """Return the best weights for the parts of f as they are: proportional to their norms."""
    return _on_simplex(point.weights * np.sqrt(np.maximum(point.halves, 0.0)))


def _model_minimum(point: Point, H: Array, damping: float) -> tuple[Array, float]:
    """Minimise s'(t - d) + (t - d)'(H + damping)(t - d)/2 over the simplex; give t, and gain."""
    d, unit = point.weights, float(point.halves.max())
    if not unit > 0:
        return d, 0.0
    bent = H / unit + damping * np.eye(len(d))
    slope = -point.halves / unit
    nothing = np.zeros(len(d))
    model = BoxQP(PrecomputedGram(bent), bent @ d - slope, nothing, nothing + 1.0, 1.0)
    found = _QUADRATIC.run(model, Watch(), None).value.coef
    target = _on_simplex(found)
    move = target - d
    return target, -unit * float(slope @ move + 0.5 * move @ bent @ move)


def _on_simplex(weights: Array) -> Array:
    kept = np.maximum(np.asarray(weights, dtype=np.float64), 0.0)
    return np.asarray(kept / kept.sum())


# --- loss at given weights -----------------------------------------------------------------------
#
# Quadratic programs solved on one weighted sum of kernels: value, gradient and Hessian.
#
# With b the answer at weights d, the optimal value J has the slope -f_m b'K_m b/2 in d_m. While
# no variable reaches or leaves a bound, the free variables move by -A^-1 (K_m b) (A is K(d) among
# them, bordered by the equality), and J has the curvature (K_k b)' A^-1 (K_l b).

_COMBINATION_POINT_RANK = 1e-15  # of the largest eigenvalue: below, rounding
_SINGULAR = 1e-10  # of the diagonal, added where A may have no inverse: a model needs few digits
_AT_BOUND = 1e-9  # of the width of the box, or of the largest coefficient


@dataclass(frozen=True, eq=False)
class Point:
    """Where a search for weights stands.

    Attributes
    ----------
    weights : (m,) array
        d.
    duals : Duals
        The answers to the programmes on the sum.
    value : float
        The sum of their objectives, p'b - b'K(d)b/2 - epsilon'|b|.
    machine_gap : float
        How far that is from J(d) at most.
    halves : (m,) array
        f_m b'K_m b/2, summed over the programmes: minus the slope of J.
    curvature : callable
        Returns the second derivatives of J, (m, m).
    status : Status
        How the programmes ended.
    """

    weights: Array
    duals: Duals
    value: float
    machine_gap: float
    halves: Array
    curvature: Callable[[], Array]
    status: Status

    @property
    def upper(self) -> float:
        """Bound J(d) from above."""
        return self.value + self.machine_gap

    @property
    def kernel_gap(self) -> float:
        """Bound what other weights could gain, were b the answer at d."""
        return float(self.halves.max() - self.weights @ self.halves)

    @property
    def relative_gap(self) -> float:
        """Bound the distance to the optimum, in units of it; infinite where values overflowed."""
        if not np.isfinite(self.upper):  # a share of infinity is no gap
            return np.inf
        size = max(abs(self.upper), float(np.finfo(float).tiny))
        return (self.machine_gap + self.kernel_gap) / size


def answered(
    problem: KernelCombination,
    weights: Array,
    tol: float,
    watch: Watch,
    earlier: Point | None = None,
    dtype: Any = np.float64,
) -> Point:
    """Answer the programmes on the sum of kernels with these weights.

    Parameters
    ----------
    problem : KernelCombination
        What is asked.
    weights : (m,) array
        On the simplex.
    tol : float
        What the duality gap of each programme may be, relative to its objective.
    watch : Watch
        The clock of the search; asked while programmes are answered, too.
    earlier : Point or None
        An answer at other weights, to start from.
    dtype : numpy dtype
        Type of the weighted sum of matrices, where pairs of variables are moved.
    """
    n = problem.grams[0].shape[0]
    direct = is_linear(_first(problem.question(problem.grams[0])))
    kind = np.float64 if direct else dtype
    gram = WeightedSumGram(problem.grams, weights * problem.factors, kind)
    programmes = problem.programmes(gram)
    if direct:
        duals, status = Duals(tuple(map(_solved, programmes))), Status.SOLVED
    else:
        duals, status = _descended(_written(problem, gram), tol, watch, earlier)
    coefs = [np.asarray(dual.coef, dtype=np.float64) for dual in duals.parts]
    products = problem.products(on_all_rows(programmes, coefs, n))
    value, gap, halves = 0.0, 0.0, np.zeros(len(weights))
    for k, (programme, b, dual) in enumerate(zip(programmes, coefs, duals.parts, strict=True)):
        own = np.stack([on_own_rows(programme, column) for column in products[:, :, k]])
        shift = programme.unwrapped.shift
        Kb = weights @ own + (0.0 if shift is None else shift * b)
        F = programme.linear - Kb
        lost = float(programme.epsilons @ np.abs(b))
        value += float(b @ programme.linear - 0.5 * b @ Kb) - lost
        gap += programme.gap(b, F - programme.spread(dual.intercept))
        halves += 0.5 * own @ b

    def curvature() -> Array:
        parts = zip(programmes, coefs, np.moveaxis(products, 2, 0), strict=True)
        return np.asarray(np.sum([_curvature(*part) for part in parts], axis=0))

    return Point(weights, duals, value, gap, halves, curvature, status)


def is_linear(problem: BoxQP) -> bool:
    """Return whether there is neither a bound nor an epsilon: the answer solves a linear system."""
    free = np.isinf(problem.lower).all() and np.isinf(problem.upper).all()
    return bool(free and not np.any(problem.epsilon) and not np.any(problem.totals))


def _descended(
    asked: BoxQP | Many, tol: float, watch: Watch, earlier: Point | None
) -> tuple[Duals, Status]:
    start: Any = None if earlier is None else earlier.duals
    if start is not None and isinstance(asked, BoxQP):
        start = start.parts[0]
    left = None if watch.time_limit is None else max(watch.time_limit - watch.seconds, 1e-9)
    inner = Watch(_polled(watch), left)
    solver: Solver = SMO(tol=tol, criterion=Gap())
    if isinstance(_first(asked).unwrapped.base, FactoredGram):
        solver = InteriorPoint(tol=tol, criterion=Gap())
        solver = Each(solver) if isinstance(asked, Many) else solver
    solution = solver.run(asked, inner, start)
    watch.stopped = inner.stopped or watch.stopped
    value = solution.value
    return value if isinstance(value, Duals) else Duals((value,)), solution.status


def _first(asked: BoxQP | Many) -> BoxQP:
    return asked.problems[0] if isinstance(asked, Many) else asked


def _written(problem: KernelCombination, gram: WeightedSumGram) -> BoxQP | Many:
    """Write the programmes; by features where pair steps would crawl and the matrix is small."""
    asked = problem.question(gram)
    if gram.shape[0] > DECOMPOSED_ROWS or not any(map(_is_stiff, problem.programmes(gram))):
        return asked
    values, vectors = np.linalg.eigh(gram.dense())
    kept = values > _COMBINATION_POINT_RANK * values[-1]
    return problem.question(FactoredGram.of(to_dense, vectors[:, kept] * np.sqrt(values[kept])))


def _is_stiff(problem: BoxQP) -> bool:
    """Return whether a coefficient at its bound, or where slack holds it, moves f by thousands."""
    shift = problem.unwrapped.shift
    wide = np.maximum(problem.upper, -problem.lower)
    reach = wide if shift is None else np.minimum(wide, 0.5 / np.maximum(shift, 1e-300))
    own = 0.0 if shift is None else shift
    return bool(np.max(reach * (problem.gram.diag() - own)) > STIFF)


def _polled(watch: Watch) -> Callable[[Progress], bool | None]:
    """Ask the user's callback while programmes run, with the progress of the search itself."""

    def ask(_: Progress) -> bool | None:
        if watch.callback is None or not watch.trace:
            return None
        last = watch.trace[-1]
        return watch.callback(Progress(last.iteration, watch.seconds, last.measure))

    return ask


def _solved(problem: BoxQP) -> Dual:
    """Answer a programme without bounds: (K + D) b + intercept = p, sum b = 0."""
    solve = factor_spd(problem.gram.dense())
    b = solve(problem.linear)
    if not _has_sum(problem):
        return Dual(b, np.empty(0))
    u = solve(np.ones(len(b)))
    intercept = float(b.sum() / u.sum())
    return Dual(b - intercept * u, intercept)


def _curvature(problem: BoxQP, b: Array, products: Array) -> Array:
    """Return (K_k b)' A^-1 (K_l b) over the free variables of a programme."""
    slack = _AT_BOUND * np.minimum(problem.upper - problem.lower, np.abs(b).max(initial=0.0))
    inside = (b > problem.lower + slack) & (b < problem.upper - slack)
    free = np.flatnonzero(inside & ((problem.epsilons == 0) | (np.abs(b) > slack)))
    count = len(products)
    if len(free) < 2:
        return np.zeros((count, count))
    unwrapped = problem.unwrapped
    rows = free if unwrapped.index is None else unwrapped.index[free]
    A = np.asarray(unwrapped.base.rows(rows)[:, rows], dtype=np.float64)
    if unwrapped.shift is not None:
        A.flat[:: len(A) + 1] += unwrapped.shift[free]
    A.flat[:: len(A) + 1] += _SINGULAR * A.diagonal().mean()
    solve = factor_spd(A)
    Q = products[:, rows].T
    answer = np.column_stack([solve(q) for q in Q.T])
    if _has_sum(problem):
        u = solve(np.ones(len(free)))
        answer = answer - np.outer(u, answer.sum(axis=0) / u.sum())
    H = Q.T @ answer
    return np.asarray((H + H.T) / 2)


def _has_sum(problem: BoxQP) -> bool:
    return problem.group is None


# --- weights by alignment ------------------------------------------------------------------------
#
# Nonnegative least squares.

_NOTHING = 1e-12  # of the largest part: a weight that is rounding
_NONNEGATIVE_RANK = 1e-13  # of the largest eigenvalue: below, kernels that are sums of others


@dataclass(frozen=True)
class Nonnegative(Solver):
    """Write d'Md - 2 a'd as |A d - c|^2 by eigenvalues of M, and let an active set solve it."""

    answers = KernelAlignment

    def _obstacle(self, problem: KernelAlignment) -> str | None:
        """Take alignments, of at least one kernel that has one."""
        if not problem.grams:
            return "there is no kernel to give a weight to"
        return None

    def run(self, problem: KernelAlignment, watch: Watch, start: Any = None) -> Solution:
        """Measure the inner products, and solve."""
        if watch.tick(0, np.inf):
            equal = np.full(len(problem.grams), 1.0 / len(problem.grams))
            status = watch.stopped or Status.STOPPED
            return report(self, KernelWeights(equal), status, 0, watch)
        moments = problem.moments
        weights = aligned(moments.kernels, moments.target)
        watch.tick(1, 0.0)
        return report(self, KernelWeights(weights), Status.SOLVED, 1, watch)


def aligned(M: Array, a: Array) -> Array:
    """Return the weights, of sum 1; equal ones where no kernel is aligned at all."""
    size = np.sqrt(np.maximum(M.diagonal(), np.finfo(float).tiny))
    unit, right = M / size / size[:, None], a / size  # cosines: kernels of any size alike
    right = right / max(float(np.abs(right).max(initial=0.0)), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(unit)
    kept = values > _NONNEGATIVE_RANK * values[-1]
    root = np.sqrt(values[kept])
    d = nnls(root[:, None] * vectors[:, kept].T, vectors[:, kept].T @ right / root)[0] / size
    d[d * size < _NOTHING * (d * size).max(initial=0.0)] = 0.0
    total = float(d.sum())
    return np.asarray(d / total) if total > 0 else np.full(len(a), 1.0 / len(a))


# --- scales of features --------------------------------------------------------------------------
#
# A quasi-Newton descent within bounds, from several starts.


@dataclass(frozen=True)
class ScaleDescent(Solver):
    """L-BFGS-B on the logarithms of scales and penalty; the best of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be; slopes are those of
        the logarithm of the error, or of the log-likelihood of a row, by logarithms of scales.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = Relevance

    tol: float = 1e-4
    max_iter: int = 200

    def run(self, problem: Relevance, watch: Watch, start: Any = None) -> Solution:
        """Descend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        found = bounded_descent(
            problem,
            lambda logs: measured(problem, problem.at(logs)),
            watch,
            self.tol,
            self.max_iter,
            starts,
        )
        return report(self, problem.at(found.best), found.status, found.steps, watch, found.detail)


def measured(problem: Relevance, value: Scaled, slopes: bool = True) -> tuple[float, Array]:
    """Return what is minimised, and its slopes in the logarithms of scales and penalty.

    Infinite, with slopes of zero, where K + penalty is not positive definite to working precision.

    Parameters
    ----------
    problem : Relevance
        What is asked.
    value : Scaled
        Scales and penalty.
    slopes : bool
        Whether slopes are wanted; zeros otherwise.
    """
    flat = np.zeros(len(value.scales) + 1)
    expression, leaf = problem.family(value.scales)
    found = inverted(problem, Source(expression, problem.X).pairs().dense(), value.penalty)
    if found is None:
        return np.inf, flat
    judged = problem.measure(problem, found)
    if not np.isfinite(judged.value):
        return np.inf, flat
    if not slopes:
        return judged.value, flat
    M = judged.M
    by_penalty = float(np.sum(M.diagonal() / problem.row_weights)) + judged.direct
    M *= slopes_by_distance(problem, expression, leaf)
    raw = columns_of_distance(leaf, problem.X)
    return judged.value, np.append(
        by_scales(M, raw, value.scales, leaf), value.penalty * by_penalty
    )


def slopes_by_distance(problem: Relevance, expression: Expression, leaf: Statistic) -> Array:
    """Return dk/dD for all pairs of rows; zero where D is, since that is multiplied by it."""
    return finite_slopes(slope(expression, leaf), problem.X)


# --- choice --------------------------------------------------------------------------------------

choose.register(KernelAlignment)(lambda problem: Nonnegative())
choose.register(KernelCombination)(lambda problem: SimplexNewton())
choose.register(Relevance)(lambda problem: ScaleDescent())
