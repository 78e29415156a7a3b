"""A few eigenpairs of a sparse graph by ARPACK, every copy of repeated ones.

ARPACK grows one vector at a time, restarts implicitly, and never factors the matrix: the factors of
a neighbor graph fill up. Eigenvectors that are known are moved below all others. One vector shows
one copy of a repeated eigenvalue only; so the pairs found are moved away as well, and the search
goes on until it finds none above the last of them.

On a long path or a tree the largest eigenvalues lie so close together that no number of products
tells them apart. Such a matrix factors without fill, and ARPACK then works on its inverse beyond
the largest eigenvalue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, splu

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram import Gram, ShiftedGram
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.dense import ordered
from mercer.solvers.eigen.problem import Eigenproblem, Modes

_RESERVE, _FEW = 24, 6  # vectors of the basis beyond twice the wanted ones; of an inverse
_TOLD = 25  # products between two looks at the clock
_ANGLE = 0.01  # residual over gap: the sine by which the space of the wanted vectors may be off
_ROUNDING = 1e-13  # of the norm; no residual need be below
_SAME = 1e-10  # of the norm: values nearer to one another are copies
_CYCLES = 0.05  # of the points: how many edges beyond a tree factor without filling up
_BEYOND = 1e-12  # of the largest eigenvalue: how far above it the inverse is taken
_FINEST = 1e-8  # residuals on an inverse, over its largest eigenvalue


@dataclass(frozen=True)
class ARPACK(Solver):
    """Implicitly restarted Lanczos (ARPACK) for the largest eigenpairs of a sparse matrix.

    Parameters
    ----------
    tol : float
        Stop when every wanted residual is below tol times the largest eigenvalue, and small beside
        the gap to the next eigenvalue.
    max_iter : int
        Largest number of products.
    random_state : int
        Seed of the starting vectors.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 10_000
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take sparse eigenproblems that want few of many pairs."""
        if sparse_matrix(problem.gram) is None:
            return "ARPACK is for sparse matrices, such as graphs; use solver=Lanczos()"
        if 2 * problem.count + problem.known_count + 4 > problem.gram.shape[0]:
            return "ARPACK is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Find pairs, then copies, until there are none."""
        matrix, n = sparse_matrix(problem.gram), problem.gram.shape[0]
        known = np.zeros((n, 0)) if problem.known is None else problem.known
        rng = np.random.default_rng(self.random_state)
        first = rng.standard_normal(n)
        if start is not None:
            first = start.vectors.sum(axis=1) + 1e-6 * first / np.sqrt(n)
        apply, norm = _times(matrix), float(abs(matrix).sum(axis=1).max())
        tol, reserve = self.tol, _RESERVE
        if known.shape[1] and nearly_a_tree(matrix):
            apply, norm = _inverse(matrix, known)
            tol = min(tol, _FINEST)
            reserve = _FEW
        search = _Search(apply, norm, problem.count, reserve, tol, self.max_iter, watch)
        with one_blas_thread():  # products with single vectors, which a second thread only delays
            status = search.run(first, known, rng)
            V = np.linalg.qr(search.V - known @ (known.T @ search.V))[0]
            values, turn = np.linalg.eigh(V.T @ (matrix @ V))
        modes: Modes = ordered(values, V @ turn, problem.count)
        return report(self, modes, status, search.products, watch)


def sparse_matrix(gram: Gram) -> Any:
    """Return a sparse Gram, perhaps with a diagonal added, as a CSR array; None for others."""
    base, shift = (gram.base, gram.shift) if isinstance(gram, ShiftedGram) else (gram, None)
    if base.csr is None:
        return None
    return base.csr if shift is None else sparse.csr_array(base.csr + sparse.diags_array(shift))


def nearly_a_tree(matrix: Any) -> bool:
    """Return whether a sparse matrix has hardly more edges than points."""
    edges = (matrix.nnz - int(np.count_nonzero(matrix.diagonal()))) / 2
    return bool(edges <= (1 + _CYCLES) * matrix.shape[0])


def _times(matrix: Any) -> Callable[[Array], Array]:
    return lambda V: np.asarray(matrix @ V)


def _inverse(matrix: Any, known: Array) -> tuple[Callable[[Array], Array], float]:
    """Return products with (s I - A)^-1 beside the known vectors, and a bound of its norm."""
    top = float(np.einsum("ij,ij->j", known, np.asarray(matrix @ known)).max())
    above = _BEYOND * max(abs(top), np.finfo(float).tiny)
    factor = splu(
        sparse.csc_array((top + above) * sparse.eye_array(matrix.shape[0]) - matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )

    def solve(V: Array) -> Array:
        X = np.asarray(factor.solve(V))
        # what rounding left along the known vectors grew most: out before it drowns the rest
        return np.asarray(X - known @ (known.T @ X))

    return solve, 1.0 / above


class _EndedError(Exception):
    """Leaves ARPACK, which has no other way out."""


class _Search:
    """The search for the largest pairs of an operator; `V` has the best vectors so far."""

    def __init__(
        self,
        apply: Callable[[Array], Array],
        norm: float,
        count: int,
        reserve: int,
        tol: float,
        max_products: int,
        watch: Watch,
    ) -> None:
        self._apply, self._norm, self._count, self._tol = apply, norm, count, tol
        self._reserve, self._most, self._watch = reserve, max_products, watch
        self._seen: deque[Array] = deque(maxlen=2 * count + reserve)
        self.products = 0
        self.V = np.empty((0, 0))

    def run(self, first: Array, known: Array, rng: np.random.Generator) -> Status:
        """Search, then search beside what was found for values above the last of it."""
        n, found = len(first), False
        try:
            values, V = self._pairs(first, known)
            self.V, found = V, True
            while known.shape[1] + V.shape[1] < n:
                bar = float(values[-1])
                other = self._above(bar, rng.standard_normal(n), np.hstack([known, V]))
                if other is None:
                    break
                order = np.argsort(-np.append(values, other[0]), kind="stable")[: len(values)]
                values = np.append(values, other[0])[order]
                self.V = V = np.hstack([V, other[1]])[:, order]
        except _EndedError as ended:
            if not found:
                self.V = self._so_far(known, rng)
            status: Status = ended.args[0]
            return status
        return Status.SOLVED

    def _pairs(self, first: Array, known: Array) -> tuple[Array, Array]:
        """Find the wanted pairs, and the next value, beside which residuals must be small."""
        free = len(first) - known.shape[1]
        count, accuracy = min(self._count, free), self._tol
        wanted = min(count + 1, free)
        while True:
            values, V, residuals = self._arpack(wanted, first, known, accuracy)
            top = float(np.abs(values).max(initial=np.finfo(float).tiny))
            gap = float(values[count - 1] - values[count]) if wanted > count else top
            enough = self._tol * top
            if gap > _SAME * top:
                enough = min(enough, max(_ANGLE * gap, _ROUNDING * top))
            if residuals[:count].max(initial=0.0) <= enough or accuracy <= _ROUNDING:
                return values[:count], V[:, :count]
            accuracy, first = max(0.1 * enough / top, _ROUNDING), V.sum(axis=1)

    def _above(self, bar: float, first: Array, around: Array) -> tuple[Array, Array] | None:
        """Return a pair above the bar that lies outside of some vectors; None without one."""
        slack, accuracy = self._tol * abs(bar), 0.1
        while True:
            values, V, residuals = self._arpack(1, first, around, accuracy)
            if values[0] + residuals[0] <= bar + slack:
                return None
            # what is above the bar is merged, and must not blur what was found before
            if accuracy <= _ANGLE * self._tol:
                return (values, V) if values[0] > bar + slack else None
            accuracy, first = max(1e-2 * accuracy, _ANGLE * self._tol), V[:, 0]

    def _arpack(
        self, count: int, first: Array, known: Array, accuracy: float
    ) -> tuple[Array, Array, Array]:
        """Return the largest pairs outside of known vectors, and their residuals."""
        n, low = len(first), -2.0 * self._norm
        K = self._apply(known) if known.shape[1] else known
        drop = np.einsum("ij,ij->j", known, K) - low

        def product(v: Array) -> Array:
            v = v.ravel()
            self._count_product(v)
            return np.asarray(self._apply(v) - known @ (drop * (known.T @ v)))

        try:
            values, V = eigsh(
                LinearOperator((n, n), matvec=product, dtype=np.float64),
                count,
                which="LA",
                v0=first - known @ (known.T @ first),
                ncv=min(n, 2 * count + self._reserve),
                maxiter=self._most,
                tol=accuracy,
            )
        except ArpackError as error:
            solved = Status.SOLVED if not self._norm else Status.INACCURATE  # any vectors of zeros
            raise _EndedError(solved) from error
        values, V = values[::-1], V[:, ::-1]
        V = V - known @ (known.T @ V)
        left = self._apply(V) - V * values
        left -= known @ (known.T @ left)
        return values, V, np.asarray(np.linalg.norm(left, axis=0))

    def _count_product(self, v: Array) -> None:
        self._seen.append(v.copy())  # ARPACK writes over it
        self.products += 1
        if self.products > self._most:
            raise _EndedError(Status.ITERATION_LIMIT)
        if self.products % _TOLD == 0 and self._watch.tick(self.products, np.nan):
            raise _EndedError(self._watch.stopped or Status.STOPPED)

    def _so_far(self, known: Array, rng: np.random.Generator) -> Array:
        """Return the best vectors in the space of the last products."""
        n = len(self._seen[0])
        S = np.column_stack([*self._seen, rng.standard_normal((n, self._count)) / np.sqrt(n)])
        S = np.linalg.qr(S - known @ (known.T @ S))[0]
        _, turn = np.linalg.eigh(S.T @ self._apply(S))
        return np.asarray(S @ turn[:, ::-1][:, : self._count])
