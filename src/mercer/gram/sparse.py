"""Grams that are sparse symmetric matrices, such as the weights of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.gram.precomputed import ASYMMETRY
from mercer.gram.transformed import scaled, with_diagonal
from mercer.resources import require_memory
from mercer.rows.points import to_dense


class SparseGram(Gram):
    """A given sparse matrix, such as the weights of a graph's edges.

    Parameters
    ----------
    K : (n, n) sparse array or matrix
        Symmetric; differences up to 1e-10 (float32: 1e-5) of the largest entry are averaged away,
        larger ones are refused. Kept in float64: a product reads more indices than numbers.
    """

    def __init__(self, K: Any) -> None:
        self._take(symmetric_csr(K))

    def _take(self, matrix: Any) -> None:
        self.csr = matrix
        self.shape = matrix.shape
        self.dtype = np.dtype(np.float64)

    @classmethod
    def of(cls, matrix: Any) -> SparseGram:
        """Return a Gram of a canonical float64 CSR array that is known to be symmetric."""
        gram = cls.__new__(cls)
        gram._take(matrix)
        return gram

    def diag(self) -> Array:
        """Read the diagonal."""
        return np.asarray(self.csr.diagonal(), dtype=np.float64)

    def rows(self, index: Index) -> Array:
        """Write out rows."""
        return to_dense(self.csr[index])

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.csr @ np.asarray(V, dtype=np.float64))

    def dense(self) -> Array:
        """Write out everything, if the memory budget allows it."""
        n = self.shape[0]
        require_memory(
            8 * n * n,
            f"a sparse matrix of {n} points written out",
            "Use a solver that asks for products only, such as ARPACK().",
        )
        return to_dense(self.csr)

    def cross(self, Z: Points) -> Cross:
        """Take Z as the matrix of new points against training points, dense or sparse."""
        return SparseCross(sparse_rectangle(Z, self.shape[0]))

    def expand(self, coef: Array) -> Expansion:
        """Expand over the columns of matrices to come."""
        coef = columns_of(coef)
        return SparseExpansion(coef, np.zeros(coef.shape[1]))


class SparseCross(Cross):
    """A rectangle, dense or sparse."""

    def __init__(self, K: Any) -> None:
        self._matrix = K
        self.shape = K.shape

    def rows(self, index: Index) -> Array:
        """Write out rows."""
        return to_dense(self._matrix[index])

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._matrix @ np.asarray(V, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class SparseExpansion(Expansion):
    """An expansion over the training points of a given matrix; new rows dense or sparse."""

    coef: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Multiply the matrix of new points against training points."""
        return np.asarray(sparse_rectangle(Z, len(self.coef)) @ self.coef + self.offset)

    def plus(self, offset: Array) -> SparseExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


@scaled.register
def _(gram: SparseGram, scale: Array) -> Gram:
    scale = np.asarray(scale, dtype=np.float64)
    matrix = gram.csr.tocoo()
    # one factor for a pair, so that both orders round alike
    both = scale[matrix.row] * scale[matrix.col]
    data = np.asarray(matrix.data * both)
    csr = gram.csr
    return SparseGram.of(sparse.csr_array((data, csr.indices, csr.indptr), shape=csr.shape))


@with_diagonal.register
def _(gram: SparseGram, shift: Array) -> Gram:
    if not np.any(shift):
        return gram
    return SparseGram.of(sparse.csr_array(gram.csr + sparse.diags_array(shift)))


def sparse_rectangle(Z: Points, n: int) -> Any:
    """Check that Z is a matrix of new points (rows) against n training points (columns)."""
    Z = Z if sparse.issparse(Z) else np.asarray(Z)
    if Z.ndim != 2 or Z.shape[1] != n:
        raise ValueError(
            "precomputed affinity: pass the matrix of new points (rows) against training points "
            f"(columns), shape (n_new, {n}); got {Z.shape}"
        )
    return Z


def symmetric_csr(K: Any) -> Any:
    """Check that K is square, finite and symmetric; average rounding differences away."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            "precomputed affinity: fit needs the square matrix of training points against "
            f"themselves; got shape {K.shape}"
        )
    tolerance = ASYMMETRY[4 if K.dtype == np.float32 else 8]
    matrix = sparse.csr_array(K, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row, column = _place(matrix, int(bad[0]))
        value = matrix.data[bad[0]]
        raise ValueError(f"precomputed affinity: entry ({row}, {column}) is {value}")
    gap = abs(matrix - matrix.T).tocsr()
    if gap.nnz and gap.data.max() > tolerance * np.abs(matrix.data).max():
        worst = int(gap.data.argmax())
        row, column = _place(gap, worst)
        raise ValueError(
            f"precomputed affinity: the matrix is not symmetric: entries ({row}, {column}) and "
            f"({column}, {row}) differ by {gap.data[worst]:.2g}. Pass (K + K.T) / 2 if meant."
        )
    if gap.nnz:
        half = 0.5 * matrix  # the sum may be out of range where no entry is
        matrix = sparse.csr_array(half + half.T)
        matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _place(matrix: Any, entry: int) -> tuple[int, int]:
    """Return row and column of a stored entry."""
    row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
    return row, int(matrix.indices[entry])
