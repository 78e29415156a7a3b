"""Programmes answered on one weighted sum of kernels: value, slope and curvature in the weights.

With b the answer at weights d, the optimal value J has the slope -f_m b'K_m b/2 in d_m. While no
variable reaches or leaves a bound, the free variables move by -A^-1 (K_m b) (A is K(d) among them,
bordered by the equality), and J has the curvature (K_k b)' A^-1 (K_l b).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.gram.policy import DECOMPOSED_ROWS, STIFF
from mercer.gram.transformed.weighted_sum import WeightedSumGram
from mercer.points import to_dense
from mercer.problems import BoxQP, Dual, Duals, Many
from mercer.problems.kernel_learning.kernel_combination import (
    KernelCombination,
    on_all_rows,
    on_own_rows,
)
from mercer.solvers.base import Progress, Solver, Status, Watch
from mercer.solvers.linear_margin.interior_point import InteriorPoint
from mercer.solvers.many import Each
from mercer.solvers.margin.descent import Gap
from mercer.solvers.margin.smo import SMO
from mercer.solvers.spd import factor_spd

_RANK = 1e-15  # of the largest eigenvalue: below, rounding
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
    kept = values > _RANK * values[-1]
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
