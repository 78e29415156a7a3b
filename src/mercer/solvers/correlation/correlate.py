"""Singular pairs of H_x H_y: directly where a view has few directions, else by block Lanczos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends.interruptible import interruptible
from mercer.problems import CanonicalPairs, Correlation
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.correlation.views import BasisView, View
from mercer.solvers.spectral.krylov import block_width, largest_pairs
from mercer.solvers.spectral.signs import signs_of

_FEW = 400  # directions: up to here all singular pairs cost less than an iteration


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Unit vectors of both views, their correlations, and how they were found."""

    left: Array
    values: Array
    right: Array
    status: Status = Status.SOLVED
    iterations: int = 1

    def swapped(self) -> _Pairs:
        return _Pairs(self.right, self.values, self.left, self.status, self.iterations)


def correlate(
    solver: Solver, problem: Correlation, x: View, y: View, watch: Watch, tol: float = 1e-10
) -> Solution:
    """Return the answer from both views: pairs, coefficients, ranks and the bound."""
    found = _pairs(x, y, min(problem.count, problem.gram_x.shape[0]), watch, tol)
    turn = signs_of(x.shrink(found.left))
    left, right = found.left * turn, found.right * turn
    value = CanonicalPairs(
        _padded(np.clip(found.values, 0.0, 1.0), problem.count),
        _padded(x.coef(left), problem.count),
        _padded(y.coef(right), problem.count),
        x.rank,
        y.rank,
        _bound(problem, x, y),
        _maybe_padded(x.weights(left), problem.count),
        _maybe_padded(y.weights(right), problem.count),
    )
    return report(solver, value, found.status, found.iterations, watch)


def _pairs(x: View, y: View, count: int, watch: Watch, tol: float) -> _Pairs:
    if isinstance(x, BasisView) and isinstance(y, BasisView):
        few = min(x.rank, y.rank)
        if few <= _FEW or 3 * (count + block_width(count)) > few:
            return _small(x, y, count)
    if isinstance(y, BasisView) and y.rank <= _FEW:
        return _direct(x, y, count)
    if isinstance(x, BasisView) and x.rank <= _FEW:
        return _direct(y, x, count).swapped()
    return _iterated(x, y, count, watch, tol)


def _small(x: BasisView, y: BasisView, count: int) -> _Pairs:
    """Take the singular pairs of the matrix between two bases."""
    M = x.factors[:, None] * (x.vectors.T @ y.vectors) * y.factors
    P, rho, Qt = interruptible(np.linalg.svd, M, full_matrices=False)
    return _Pairs(x.vectors @ P[:, :count], rho[:count], y.vectors @ Qt[:count].T)


def _direct(x: View, y: BasisView, count: int) -> _Pairs:
    """Take all singular pairs of H_x U_y diag(factors), a matrix of few columns."""
    P, rho, Qt = np.linalg.svd(x.shrink(y.vectors * y.factors), full_matrices=False)
    return _Pairs(P[:, :count], rho[:count], y.vectors @ Qt[:count].T)


def _iterated(x: View, y: View, count: int, watch: Watch, tol: float) -> _Pairs:
    """Find the largest eigenpairs of H_y H_x H_x H_y; one half of it splits them into pairs."""

    def apply(V: Array) -> Array:
        return y.shrink(x.shrink(x.shrink(y.shrink(V))))

    found = largest_pairs(apply, x.n, count, tol=tol, watch=watch)
    half = x.shrink(y.shrink(found.vectors))
    P, rho, Vt = np.linalg.svd(half, full_matrices=False)
    return _Pairs(P, rho, found.vectors @ Vt.T, found.status, found.iterations)


def _padded(values: Array, count: int) -> Array:
    """Put zeros where the views have no more directions."""
    missing = count - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])


def _maybe_padded(values: Array | None, count: int) -> Array | None:
    return None if values is None else _padded(values, count)


def _bound(problem: Correlation, x: View, y: View) -> float:
    """Bound the change of H by the trace left over the penalty, in both views together."""
    total = 0.0
    for view, penalty in zip((x, y), problem.penalties, strict=True):
        if view.left > 0:
            with np.errstate(over="ignore"):  # more than any number: no bound is known
                total += float(np.divide(view.left, max(penalty, np.finfo(float).tiny)))
    return float(min(total, np.finfo(float).max))
