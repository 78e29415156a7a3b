"""Base of the backends on the CPU: stored matrices, products and Cholesky factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Index
from mercer.backends import choose_backend, factorizations
from mercer.backends.box_programs import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import Backend, Factor, GroupAnswer, Groups, Poll, StoredMatrix
from mercer.backends.factorizations import parts

# --- host matrix ---------------------------------------------------------------------------------
#
# Stored matrices and factors in the memory of the processor.

_ROWS_AT_ONCE = 256  # summed in the type of K before float64 takes over
_BASE = 256  # rows; below, halving costs more than it saves
_SHORT = 1500  # rows; LAPACK is done with them before anyone could press a key


class HostMatrix(StoredMatrix):
    """An array, which is made read-only.

    Parameters
    ----------
    K : (n, n) array
        float32 or float64, symmetric.
    """

    def __init__(self, K: Array) -> None:
        K.setflags(write=False)
        self._K, self.shape, self.dtype = K, (len(K), len(K)), K.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return int(self._K.nbytes)

    def dense(self) -> Array:
        """Return the array."""
        return self._K

    def diagonal(self) -> Array:
        """Read the diagonal."""
        return self._K.diagonal().astype(np.float64)

    def rows(self, index: Index) -> Array:
        """Read rows."""
        return self._K[index]

    def product(self, V: Array) -> Array:
        """Leave it to the backend."""
        return choose_backend().symmetric_product(self._K, V)

    def combination(self, points: Array, coef: Array) -> Array:
        """Add row by row, so that none is copied.

        By NumPy's own loops, because the threads of a BLAS wait for one another longer than such
        a sum takes when other work runs beside.
        """
        K = self._K
        total, term = np.zeros(K.shape[1]), np.empty(K.shape[1], dtype=K.dtype)
        for first in range(0, len(points), _ROWS_AT_ONCE):
            deadline.check()
            few = slice(first, first + _ROWS_AT_ONCE)
            part = np.zeros(K.shape[1], dtype=K.dtype)
            for i, c in zip(points[few].tolist(), coef[few].astype(K.dtype), strict=True):
                np.multiply(K[i], c, out=term)
                np.add(part, term, out=part)
            total += part
        return total

    def cholesky(
        self,
        shift: Array,
        scale: Array | None = None,
        less: tuple[Array, Array] | None = None,
    ) -> Factor | None:
        """Factor a copy."""
        A = choose_backend().empty(*self.shape)
        scaled = scale is not None and not (scale == 1.0).all()
        for part in deadline.row_slices(len(A), len(A)):
            A[part] = self._K[part]
            if scale is not None and scaled:
                A[part] *= scale[part, None]
                A[part] *= scale
            if less is not None:
                U, E = less
                A[part] -= U[part] @ (U if E is None else E).T
                if E is not None:
                    A[part] -= E[part] @ U.T
        A.flat[:: len(A) + 1] += shift
        return choose_backend().cholesky_factor(A)

    def box_qps(
        self, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Leave it to the backend."""
        return choose_backend().box_qps(self._K, boxes, tol, max_iter, poll)

    def box_paths(
        self, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Leave it to the backend."""
        return choose_backend().box_paths(self._K, paths, tol, max_iter, poll)

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Leave it to the backend."""
        return choose_backend().partition(self._K, groups, poll)


class HostFactor(Factor):
    """The lower triangle of an array.

    Parameters
    ----------
    L : (n, n) C-ordered float64 array
        What is above its diagonal means nothing.
    """

    def __init__(self, L: Array) -> None:
        self._L = L

    def solve(self, right: Array) -> Array:
        """Solve with both triangles; small ones in one call of LAPACK."""
        if len(self._L) <= _SHORT:
            # the lower triangle by rows is the upper one by columns, as LAPACK counts
            found, _ = linalg.lapack.dpotrs(self._L.T, right, lower=0)
            return np.asarray(found)
        return self.half_solve(self.half_solve(right), transposed=True)

    def half_solve(self, right: Array, transposed: bool = False) -> Array:
        """Solve with one triangle."""
        return factorizations.solve_triangular(self._L, right, transposed=transposed)

    def diagonal(self) -> Array:
        """Read the diagonal."""
        return self._L.diagonal().copy()

    def lower(self) -> Array:
        """Put zeros above the diagonal, where the matrix itself was left."""
        for i in range(len(self._L) - 1):
            self._L[i, i + 1 :] = 0.0
        return self._L

    def inverse(self) -> Array:
        """Multiply L^-1 by itself, panel by panel; small ones by LAPACK."""
        L = self._L
        if len(L) <= _SHORT:
            # the lower triangle by rows is the upper one by columns, as LAPACK counts
            half, _ = linalg.lapack.dpotri(L.T, lower=0, overwrite_c=1)
            G = np.triu(half)
            return np.asarray(G + np.triu(G, 1).T)
        _invert_triangle(L)
        G = np.empty_like(L)
        for some in parts(len(L), 2.0 * L.size):
            np.matmul(L[some.start :, some].T, L[some.start :], out=G[some])
        return G

    def inverse_diagonal(self) -> Array:
        """Add up the squares of L^-1, column by column."""
        _invert_triangle(self._L)
        return np.asarray(np.einsum("ij,ij->j", self._L, self._L))


def _invert_triangle(L: Array) -> None:
    """Replace the lower triangle by its inverse and the rest by zeros, by halves.

    [[A, 0], [B, C]] has the inverse [[A^-1, 0], [-C^-1 B A^-1, C^-1]]: all work is in products,
    which are as fast as LAPACK's inverse of a triangle but let Ctrl-C be heard in between.
    """
    if len(L) <= _BASE:
        L[:] = np.tril(linalg.solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False))
        return
    deadline.check()
    half = len(L) // 2
    first, below, last = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert_triangle(first)
    _invert_triangle(last)
    for some in parts(len(below), 2.0 * first.size):
        below[some] = below[some] @ first
    for some in parts(half, 2.0 * last.size):
        below[:, some] = -(last @ below[:, some])
    L[:half, half:] = 0.0


# --- host backend --------------------------------------------------------------------------------
#
# What backends have in common whose matrices lie in memory of the processor.


class HostBackend(Backend):
    """A backend on the processor: matrices are arrays, and LAPACK decomposes them."""

    def stored(self, K: Array) -> StoredMatrix:
        """Keep the array."""
        return HostMatrix(K)

    def cholesky_factor(self, A: Array) -> Factor | None:
        """Factor in place."""
        return HostFactor(A) if self.cholesky(A) == 0 else None

    def eigh(self, A: Array) -> tuple[Array, Array]:
        """Leave it to LAPACK."""
        return factorizations.eigh(A)
