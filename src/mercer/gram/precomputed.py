"""Precomputed kernel matrices, and weighted sums of Grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends import choose_backend
from mercer.backends.contract import Factor, StoredMatrix
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.resources import rows_at_once

# --- precomputed ---------------------------------------------------------------------------------
#
# The user's own matrix.

ASYMMETRY = {8: 1e-10, 4: 1e-5}  # relative, by bytes; below, rounding of the caller's products

_ROWS_AT_ONCE = 256  # in float64, so that no copy of all of the matrix is made


def _taken(K: Array, rows: Array) -> Array:
    taken = np.empty((len(rows), len(rows)), dtype=K.dtype)
    for some in deadline.row_slices(len(taken), len(taken)):
        taken[some] = K[rows[some]][:, rows]
    return taken


class PrecomputedGram(Gram):
    """A given kernel matrix.

    Parameters
    ----------
    K : (n, n) array
        Symmetric; differences up to 1e-10 (float32: 1e-5) of the largest entry are averaged away,
        larger ones are refused.
    rows : (m,) int array, optional
        Train on these points only; new points are still compared with all n.
    """

    def __init__(self, K: Array, rows: Array | None = None) -> None:
        matrix = symmetrised(np.asarray(K))
        self._given = len(matrix)
        self._rows = np.arange(self._given) if rows is None else rows
        self._matrix = matrix if rows is None else _taken(matrix, rows)
        self._matrix.setflags(write=False)
        self.shape = (len(self._rows), len(self._rows))
        self.dtype = self._matrix.dtype

    @cached_property
    def stored(self) -> StoredMatrix:
        """The matrix, where the backend works with it."""
        return choose_backend().stored(self._matrix)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix."""
        return int(self._matrix.nbytes)

    def diag(self) -> Array:
        """Read the diagonal."""
        return self._matrix.diagonal().astype(np.float64)

    def rows(self, index: Index) -> Array:
        """Read rows."""
        return self._matrix[index]

    def __matmul__(self, V: Array) -> Array:
        product = self.stored.product(columns_of(V))
        return product[:, 0] if V.ndim == 1 else product

    def cholesky(self, shift: Array, scale: Array | None = None) -> Factor | None:
        """Factor where the matrix lies."""
        return self.stored.cholesky(shift, scale)

    def exact(self) -> PrecomputedGram:
        """Return the same matrix with products in float64, whatever it is stored in."""
        if self._matrix.dtype == np.float64:
            return self
        gram = object.__new__(_Precise)
        gram.__dict__.update(self.__dict__, dtype=np.dtype(np.float64))
        return gram

    def dense(self) -> Array:
        """Return the matrix, read-only."""
        return self._matrix

    def cross(self, Z: Points) -> Cross:
        """Take Z as the matrix of new points against training points."""
        return MatrixCross(rectangle(Z, self._given)[:, self._rows])

    def expand(self, coef: Array) -> Expansion:
        """Expand over the columns of matrices to come."""
        coef = columns_of(coef)
        full = np.zeros((self._given, coef.shape[1]))
        full[self._rows] = coef
        return MatrixExpansion(full, np.zeros(coef.shape[1]))


class _Precise(PrecomputedGram):
    """A matrix in float32 whose entries are taken for what they are."""

    def __matmul__(self, V: Array) -> Array:
        V = np.asarray(V, dtype=np.float64)
        product = np.empty((len(self._matrix), *V.shape[1:]))
        for first in range(0, len(product), _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            product[rows] = self._matrix[rows].astype(np.float64) @ V
        return product


class MatrixCross(Cross):
    """A given rectangle."""

    def __init__(self, K: Array) -> None:
        self._matrix = K
        self.shape = K.shape

    def rows(self, index: Index) -> Array:
        """Read rows."""
        return self._matrix[index]

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._matrix, dtype=np.float64) @ V


@dataclass(frozen=True, eq=False)
class MatrixExpansion(Expansion):
    """An expansion over the training points of a given matrix."""

    coef: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Multiply the matrix of new points against training points."""
        return np.asarray(rectangle(Z, len(self.coef)) @ self.coef + self.offset)

    def plus(self, offset: Array) -> MatrixExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)


def rectangle(Z: Points, n: int) -> Array:
    """Check that Z is a matrix of new points (rows) against n training points (columns)."""
    Z = np.asarray(Z)
    if Z.ndim != 2 or Z.shape[1] != n:
        raise ValueError(
            "precomputed kernel: pass the matrix of new points (rows) against training points "
            f"(columns), shape (n_new, {n}); got {Z.shape}"
            + (". It looks transposed." if Z.ndim == 2 and Z.shape[0] == n else "")
        )
    return np.asarray(Z)


def symmetrised(K: Array) -> Array:
    """Check that K is square, finite and symmetric; average rounding differences away."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            "precomputed kernel: fit needs the square matrix of training points against "
            f"themselves; got shape {K.shape}"
        )
    if K.dtype not in (np.float32, np.float64):
        K = K.astype(np.float64)
    symmetric, largest, widest, where = np.empty_like(K), 0.0, 0.0, (0, 0)
    for first in range(0, len(K), _ROWS_AT_ONCE):
        deadline.check()
        some = slice(first, first + _ROWS_AT_ONCE)
        part, mirrored = K[some], K[:, some].T
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(
                f"precomputed kernel: entry ({first + row}, {column}) is {part[row, column]}"
            )
        gap = np.abs(part - mirrored)
        if gap.max() > widest:
            row, column = np.unravel_index(int(gap.argmax()), gap.shape)
            widest, where = float(gap[row, column]), (first + int(row), int(column))
        largest = max(largest, float(np.abs(part).max()))
        symmetric[some] = 0.5 * part + 0.5 * mirrored  # a sum may be out of range, no entry is
    if widest > ASYMMETRY[K.itemsize] * largest:
        row, column = where
        raise ValueError(
            f"precomputed kernel: the matrix is not symmetric: entries ({row}, {column}) and "
            f"({column}, {row}) differ by {widest:.2g}. Pass (K + K.T) / 2 if meant."
        )
    return symmetric


# --- weighted sum --------------------------------------------------------------------------------
#
# A weighted sum of Grams, multiplied out.

_SUMMED_AT_ONCE = 512  # so that no second matrix is made on the way


class WeightedSumGram(PrecomputedGram):
    """K = sum_m weight_m K_m as one stored matrix; Grams of weight zero are not looked at.

    Parameters
    ----------
    grams : sequence of Gram
        On the same rows.
    weights : (m,) array
        Nonnegative.
    dtype : numpy dtype
        Type of the matrix.
    """

    def __init__(self, grams: Sequence[Gram], weights: Array, dtype: Any = np.float64) -> None:
        n = grams[0].shape[0]
        self._given, self._rows = n, np.arange(n)
        self._matrix = np.zeros((n, n), dtype=dtype)
        used = [(float(w), gram) for w, gram in zip(weights, grams, strict=True) if w > 0]
        step = rows_at_once(n, _SUMMED_AT_ONCE, arrays=3)
        for first in range(0, n, step):
            deadline.check()
            rows = slice(first, min(first + step, n))
            for weight, gram in used:
                self._matrix[rows] += np.asarray(weight * gram.rows(rows), dtype=dtype)
        self._matrix.setflags(write=False)
        self.shape, self.dtype = (n, n), self._matrix.dtype
        self.valid = all(gram.valid for gram in grams)
