"""Thick-restart Lanczos for sparse matrices, also on the inverse for nearly tree-like graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram import SparseGram
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.dense import ordered
from mercer.solvers.eigen.lobpcg import LOBPCG
from mercer.solvers.eigen.problem import Eigenproblem

# --- restarted lanczos ---------------------------------------------------------------------------
#
# A few eigenpairs of a sparse matrix: single-vector Lanczos, restarted, largest first.
#
# The matrix is never factored: the factors of a neighbour graph fill up. Only a graph that is
# nearly a tree factors without fill, and `InverseLanczos` is for those.


@dataclass(frozen=True)
class RestartedLanczos(Solver):
    """Thick-restart Lanczos for the largest eigenpairs, for matrices that are cheap to multiply.

    Where it does not converge, `LOBPCG` goes on from what it found, and the solution says so.

    Parameters
    ----------
    tol : float
        Stop when every wanted residual is below tol times the largest eigenvalue, and small beside
        the gap to the next eigenvalue.
    max_iter : int
        Largest number of products.
    random_state : int
        Seed of the starting vector.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 10_000
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        locked = 0 if problem.known is None else problem.known.shape[1]
        if 2 * problem.count + locked + 4 > problem.gram.shape[0]:
            return "RestartedLanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Iterate; hand over to LOBPCG where that does not end well."""
        gram, n = problem.gram, problem.gram.shape[0]
        first = np.random.default_rng(self.random_state).standard_normal(n)
        if start is not None:
            first = start.vectors.sum(axis=1) + 1e-6 * first / np.sqrt(n)
        found = thick_restart(
            lambda v: np.asarray(gram @ v, dtype=np.float64),
            first,
            problem.count,
            tol=self.tol,
            max_products=self.max_iter,
            watch=watch,
            known=problem.known,
        )
        modes = ordered(found.values, found.vectors, problem.count)
        if found.status is not Status.ITERATION_LIMIT:
            return report(self, modes, found.status, found.products, watch)
        return _rescued(self, problem, watch, modes, found.products)


def _rescued(
    solver: RestartedLanczos, problem: Eigenproblem, watch: Watch, modes: Any, products: int
) -> Solution:
    other = LOBPCG(tol=solver.tol)
    again = other.run(problem, watch, modes)
    detail = (
        f"RestartedLanczos did not reach the tolerance in {products} products; LOBPCG went on from "
        f"there, and {again.status.value}"
    )
    return report(other, again.value, again.status, products + again.iterations, watch, detail)


# --- inverse lanczos -----------------------------------------------------------------------------
#
# Eigenpairs of graphs that are nearly trees: Lanczos on the inverse.
#
# On a long path or a tree the eigenvalues at the top lie so close that no number of products
# tells them apart; but such a matrix factors without fill, and its inverse spreads them wide.

_CYCLES = 0.05  # of the points: how many edges beyond a tree factor without filling up
_BEYOND = 1e-12  # of the largest eigenvalue: how far above it the shift is


def nearly_a_tree(gram: Any) -> bool:
    """Return whether a sparse Gram has hardly more edges than points."""
    if not isinstance(gram, SparseGram):
        return False
    n = gram.shape[0]
    edges = (gram.csr.nnz - int(np.count_nonzero(gram.csr.diagonal()))) / 2
    return bool(edges <= (1 + _CYCLES) * n)


@dataclass(frozen=True)
class InverseLanczos(Solver):
    """Largest eigenpairs of a graph that is nearly a tree, by Lanczos on (s I - K)^-1.

    Parameters
    ----------
    tol : float
        Stop when residuals on the inverse are below tol times its largest eigenvalue.
    max_iter : int
        Largest number of solves.
    random_state : int
        Seed of the starting vector.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 2000
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take sparse eigenproblems, with the eigenvectors of the largest value known."""
        if not nearly_a_tree(problem.gram) or problem.known is None:
            return (
                "InverseLanczos is for sparse graphs that are nearly trees, whose first vector is "
                "known; use solver=RestartedLanczos()"
            )
        if 2 * problem.count + problem.known.shape[1] + 4 > problem.gram.shape[0]:
            return "InverseLanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Factor once, and iterate on the inverse."""
        gram, known, n = problem.gram, problem.known, problem.gram.shape[0]
        first = np.random.default_rng(self.random_state).standard_normal(n)
        found = thick_restart(
            _inverse(gram, known),
            first,
            problem.count,
            tol=self.tol,
            max_products=self.max_iter,
            watch=watch,
            known=known,
            reserve=6,
        )
        products = np.asarray(gram @ found.vectors)
        values = np.einsum("ij,ij->j", found.vectors, products)
        modes = ordered(values, found.vectors, problem.count)
        return report(self, modes, found.status, found.products, watch)


def _inverse(gram: Any, known: Any) -> Any:
    matrix = gram.csr
    top = float(np.einsum("ij,ij->j", known, np.asarray(matrix @ known)).max())
    shift = top + _BEYOND * max(abs(top), np.finfo(float).tiny)
    shifted = sparse.csc_array(shift * sparse.eye_array(matrix.shape[0]) - matrix)
    factor = splu(
        shifted,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(v: Array) -> Array:
        x = np.asarray(factor.solve(v))
        # what rounding left along the known vectors grew most: out before it drowns the rest
        return np.asarray(x - known @ (known.T @ x))

    return solve


# --- thick restart -------------------------------------------------------------------------------
#
# Lanczos with one vector and thick restarts, for operators that cost next to nothing to apply.
#
# A product with a sparse matrix is cheaper than keeping its vectors orthogonal, so blocks do not
# pay; what counts is how deep the Krylov space is. When the basis is full, it shrinks to its best
# Ritz vectors and grows again from the same residual.

_ANGLE = 0.01  # residual over gap: the sine by which the space of the wanted vectors may be off
_LITTLE = 0.3  # where less of a product is left outside the basis, it is taken out once more
_ROUNDING = 1e-13  # of the largest value; no residual need be below


@dataclass(frozen=True, eq=False)
class RitzPairs:
    """Ritz pairs, largest first, and how the iteration ended.

    Attributes
    ----------
    values : (k,) array
    vectors : (n, k) array
        Orthonormal columns.
    residual : float
        The largest residual, relative to the largest value.
    status : Status
        Why it ended.
    products : int
        Products with the operator.
    """

    values: Array
    vectors: Array
    residual: float
    status: Status
    products: int


def thick_restart(
    apply: Callable[[Array], Array],
    start: Array,
    count: int,
    *,
    tol: float,
    max_products: int,
    watch: Watch,
    known: Array | None = None,
    reserve: int = 24,
) -> RitzPairs:
    """Find the largest eigenpairs of a symmetric operator, every copy of repeated ones.

    They are good when residuals are below `tol` of the largest value *and* small beside the gap to
    the next one: without that a residual says nothing about the vectors.

    Parameters
    ----------
    apply : callable
        Multiplies a vector (n,) by the operator.
    start : (n,) array
        The first vector.
    count : int
        How many pairs.
    tol : float
        Largest residual, relative to the largest value.
    max_products : int
        Where to stop.
    watch : Watch
        The clock.
    known : (n, c) array, optional
        Orthonormal eigenvectors to stay orthogonal to.
    reserve : int
        How many vectors the basis has beyond twice the wanted ones.

    Returns
    -------
    Pairs
        The pairs found.
    """
    locked = np.zeros((len(start), 0)) if known is None else known
    goal = _Goal(count, tol, max_products, reserve)
    found = _search(apply, start, goal, locked, watch)
    rng = np.random.default_rng(1)
    while found.status is Status.SOLVED and found.vectors.shape[1] == count:
        # a vector knows one copy of a repeated value: is there another, outside what was found?
        around = np.hstack([locked, found.vectors])
        if around.shape[1] >= len(start):
            break
        bar = float(found.values[-1])
        left = replace(goal, count=1, bar=bar, max_products=max_products - found.products)
        other = _search(apply, rng.standard_normal(len(start)), left, around, watch)
        found = replace(found, products=found.products + other.products)
        if other.status is not Status.SOLVED:
            return replace(found, status=other.status)
        if other.values[0] <= bar + tol * abs(bar):
            break
        found = _merged(found, other)
    return found


def _merged(found: RitzPairs, other: RitzPairs) -> RitzPairs:
    values = np.append(found.values, other.values)
    order = np.argsort(-values, kind="stable")[: len(found.values)]
    vectors = np.hstack([found.vectors, other.vectors])[:, order]
    return replace(found, values=values[order], vectors=vectors)


@dataclass(frozen=True)
class _Goal:
    """When a search is over.

    With a `bar`, it only has to tell whether some value is above it.
    """

    count: int
    tol: float
    max_products: int
    reserve: int
    bar: float | None = None

    def met(self, values: Array, residuals: Array, top: float) -> bool:
        """Return whether these Ritz values and residuals are good enough."""
        worst = float(residuals[: self.count].max())
        if self.bar is not None:
            # what is above the bar will be merged, and must not blur what was found before
            return bool(values[0] + worst <= self.bar or worst <= _ANGLE * self.tol * top)
        gap = (
            float(values[self.count - 1] - values[self.count]) if len(values) > self.count else top
        )
        return worst <= min(self.tol * top, max(_ANGLE * gap, _ROUNDING * top))


def _search(
    apply: Callable[[Array], Array], start: Array, goal: _Goal, known: Array, watch: Watch
) -> RitzPairs:
    count = goal.count
    free = len(start) - known.shape[1]
    basis = _Basis(apply, start, min(2 * count + goal.reserve, free), known)
    status = Status.ITERATION_LIMIT
    while True:
        with one_blas_thread():  # products with single vectors, which a second thread only delays
            basis.grow(watch)
        values, Y, residuals = basis.ritz()
        top = max(float(np.abs(values).max()), np.finfo(float).tiny)
        worst = float(residuals[:count].max()) / top
        if basis.exhausted or goal.met(values, residuals, top):
            status = Status.SOLVED
            break
        if watch.stopped is not None or watch.tick(basis.products, worst):
            status = watch.stopped or Status.STOPPED
            break
        if basis.products >= goal.max_products:
            break
        basis.restart(Y, values, _kept(count, basis.width))
    vectors = basis.vectors(Y[:, :count])
    return RitzPairs(values[:count], vectors, worst, status, basis.products)


def _kept(count: int, width: int) -> int:
    return min(count + (width - count) // 3 + 1, width - 2)


class _Basis:
    """Orthonormal rows Q and the projection T of the operator on them."""

    def __init__(
        self, apply: Callable[[Array], Array], start: Array, width: int, known: Array
    ) -> None:
        self._apply, self._known, self.width = apply, known, width
        self._Q = np.empty((width + 1, len(start)))
        self._T = np.zeros((width, width))
        self._size, self._beta, self.products = 0, 0.0, 0
        self._rng = np.random.default_rng(0)
        self._Q[0] = self._outside(np.asarray(start, dtype=np.float64), 0)
        self.exhausted = False

    def grow(self, watch: Watch) -> None:
        """Fill the basis."""
        while self._size < self.width and watch.stopped is None:
            j = self._size
            w = self._apply(self._Q[j])
            self.products += 1
            before = float(np.linalg.norm(w))
            h = self._project(w, j + 1)
            self._beta = float(np.linalg.norm(w))
            if self._beta < _LITTLE * before:
                h += self._project(w, j + 1)
                self._beta = float(np.linalg.norm(w))
            self._T[: j + 1, j] = self._T[j, : j + 1] = h
            self._size += 1
            small = self._beta <= _ROUNDING * max(float(np.abs(self._T).max()), 1e-300)
            if self._size == len(w) - self._known.shape[1]:
                self._beta, self.exhausted = 0.0, True
                return
            if small:
                self._Q[j + 1], self._beta = self._outside(self._random(), j + 1), 0.0
            else:
                self._Q[j + 1] = w / self._beta
            if self.products % 50 == 0 and watch.tick(self.products, self._beta):
                return

    def ritz(self) -> tuple[Array, Array, Array]:
        """Return Ritz values, largest first, their coordinates, and their residuals."""
        values, Y = np.linalg.eigh(self._T[: self._size, : self._size])
        values, Y = values[::-1], Y[:, ::-1]
        return values, Y, np.abs(self._beta * Y[-1])

    def vectors(self, Y: Array) -> Array:
        """Return Ritz vectors as columns."""
        return np.ascontiguousarray((Y.T @ self._Q[: self._size]).T)

    def restart(self, Y: Array, values: Array, keep: int) -> None:
        """Shrink to the best Ritz vectors, and go on from the same residual."""
        size, keep = self._size, min(keep, self._size)
        kept = Y[:, :keep].T @ self._Q[:size]
        last = self._Q[size].copy()
        self._Q[:keep] = kept
        self._T[:] = 0.0
        self._T[np.arange(keep), np.arange(keep)] = values[:keep]
        self._size = keep
        self._Q[keep] = last

    def _random(self) -> Array:
        return self._rng.standard_normal(self._Q.shape[1])

    def _project(self, w: Array, size: int) -> Array:
        """Take known vectors and the basis out of w, in place; return the coordinates there."""
        if self._known.shape[1]:
            w -= self._known @ (self._known.T @ w)
        h = self._Q[:size] @ w
        w -= h @ self._Q[:size]
        return np.asarray(h)

    def _outside(self, w: Array, size: int) -> Array:
        w = w.copy()
        for _ in range(2):
            self._project(w, size)
            w /= max(float(np.linalg.norm(w)), np.finfo(float).tiny)
        return w
