"""The NumPy backend: blocks by `evaluate`, algebra by NumPy and SciPy. Always there.

Other backends are tested against this one (`mercer.testing.check_backend`). Rows are handled in
blocks, so that a product never holds the whole matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import (
    Band,
    Features,
    GroupAnswer,
    Groups,
    Pairs,
    Poll,
    RowParts,
)
from mercer.backends.host_backend import HostBackend
from mercer.backends.host_matrix import HostMatrix
from mercer.backends.perceptron_state import LinearFunctions, PassCounts
from mercer.backends.reference.box_paths import solve_path
from mercer.backends.reference.cholesky import cholesky_in_place
from mercer.backends.reference.closeness import closeness
from mercer.backends.reference.evaluate import diagonal, evaluate
from mercer.backends.reference.features import ReferenceFeatures
from mercer.backends.reference.partition import partition
from mercer.backends.reference.perceptron import perceptron_pass
from mercer.backends.reference.smo import on_stored
from mercer.backends.stored import StoredMatrix
from mercer.expression import Expression
from mercer.points import row_count, take
from mercer.resources import rows_at_once

_BLOCK_ENTRIES = 1 << 22  # entries of one block of K held at a time by products
_ARRAYS = 3  # of a block: what a formula holds at once


class ReferencePairs(Pairs):
    """An expression bound to points, evaluated by NumPy."""

    def __init__(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> None:
        self._expression, self._X, self._Y = expression, X, X if Y is None else Y
        self._symmetric = Y is None
        self.shape = (row_count(X), row_count(self._Y))
        self.dtype = np.dtype(dtype)

    def rows(self, index: Index) -> Array:
        """Evaluate rows; overflow gives infinity, silently, as compiled code does."""
        with np.errstate(all="ignore"):
            block = evaluate(self._expression, take(self._X, index), self._Y)
            return block.astype(self.dtype, copy=False)

    def dense(self, *, padded: bool = False) -> Array:
        """Evaluate everything; one triangle is copied to the other, so symmetry is exact."""
        out = np.empty(self.shape, dtype=self.dtype)
        for part in self.blocks():
            out[part] = self.rows(part)
        if self._symmetric:
            _mirror(out)
        return out

    def stored(self) -> StoredMatrix:
        """Keep the matrix in memory."""
        return HostMatrix(self.dense())

    def matmul(self, V: Array) -> Array:
        """Multiply block by block."""
        V = np.asarray(V, dtype=np.float64)
        out = np.empty((self.shape[0], *V.shape[1:]))
        for part in self.blocks():
            with np.errstate(all="ignore"):
                out[part] = evaluate(self._expression, take(self._X, part), self._Y) @ V
        return out

    def blocks(self) -> list[slice]:
        """Cover all rows by parts small enough to hold."""
        n, m = self.shape
        height = rows_at_once(m, max(1, _BLOCK_ENTRIES // max(1, m)), arrays=_ARRAYS)
        return [slice(i, min(n, i + height)) for i in range(0, n, height)]


def _mirror(K: Array, height: int = 256) -> None:
    """Copy the upper triangle to the lower one, block by block."""
    for i in range(0, len(K), height):
        j = min(i + height, len(K))
        K[i:j, :i] = K[:i, i:j].T
        K[i:j, i:j] = np.triu(K[i:j, i:j]) + np.triu(K[i:j, i:j], 1).T


class Reference(HostBackend):
    """NumPy and SciPy, on the host."""

    name = "reference"

    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points."""
        return ReferencePairs(expression, X, Y, dtype)

    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i)."""
        with np.errstate(all="ignore"):
            return diagonal(expression, X).astype(dtype, copy=False)

    def neighbours(
        self, expression: Expression, X: Points, Y: Points | None, count: int
    ) -> tuple[Array, Array]:
        """Sort blocks of rows; a stable sort leaves ties in the order of their numbers."""
        order = closeness(expression)
        pairs = ReferencePairs(order.key, X, Y, np.float64)
        index = np.empty((pairs.shape[0], count), dtype=np.int64)
        key = np.empty(index.shape)
        for part in pairs.blocks():
            block = pairs.rows(part)
            if Y is None:
                block[np.arange(len(block)), np.arange(part.start, part.stop)] = np.inf
            block[np.isnan(block)] = np.inf
            index[part] = np.argsort(block, axis=1, kind="stable")[:, :count]
            key[part] = np.take_along_axis(block, index[part], axis=1)
        index[~(key < np.inf)] = -1
        return index, order.squared(key)

    def empty(self, n: int, m: int) -> Array:
        """Leave it to NumPy."""
        return np.empty((n, m))

    def symmetric_product(self, K: Array, V: Array, parts: RowParts | None = None) -> Array:
        """Multiply block by block, so that no float64 copy of K is made."""
        if parts is not None:
            sizes = np.diff(parts.ends, prepend=0)
            read = np.where(np.repeat(parts.reads, sizes, axis=0), V, 0.0)
            product = self.symmetric_product(K, read)
            return np.where(np.repeat(parts.writes, sizes, axis=0), product, 0.0)
        out = np.empty((len(K), V.shape[1]))
        height = max(1, _BLOCK_ENTRIES // max(1, len(K)))
        with np.errstate(all="ignore"):
            for i in range(0, len(K), height):
                deadline.check()
                out[i : i + height] = K[i : i + height] @ V
        return out

    def cholesky(self, A: Array) -> int:
        """Factor panel by panel."""
        return cholesky_in_place(A)

    def band_reduce(self, A: Array, width: int) -> Band:
        """Householder steps on panels of `width` columns."""
        return band_reduce(A, width)

    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Solve with each shifted band."""
        out = np.full((len(shifts), len(band.Qt)), np.nan)
        for row, shift in zip(out, shifts, strict=True):
            deadline.check()
            try:
                factor = linalg.cholesky_banded(_shifted_lower(band, shift), lower=True)
            except linalg.LinAlgError:
                continue
            Y = linalg.solve_banded((band.width, 0), factor, band.Qt)
            row[:] = np.einsum("ij,ij->j", Y, Y)
        return out

    def box_qps(
        self, K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Run the loop of `smo`, one box after the other."""
        return [on_stored(K, box, tol, max_iter, poll) for box in boxes]

    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve one path after the other."""
        return [solve_path(K, path, tol, max_iter, poll) for path in paths]

    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the steps of `partition`, one start after the other."""
        return partition(K, groups, poll)

    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk row by row."""
        return perceptron_pass(X, codes, order, rules, step, interruptible)

    def features(self, F: Any, index: Array | None) -> Features:
        """Bind rows."""
        return ReferenceFeatures(F, index)


def _shifted_lower(band: Band, shift: float) -> Array:
    lower = band.lower.T.copy()
    lower[0] += shift
    return lower


def band_reduce(A: Array, width: int) -> Band:
    """Reduce A to band form: QR of each panel below the band, applied from both sides."""
    n = len(A)
    Qt = np.eye(n)
    for j in range(0, n - width - 1, width):
        deadline.check()
        below, panel = slice(j + width, n), slice(j, j + width)
        Q, R = np.linalg.qr(A[below, panel], mode="complete")
        A[below, panel], A[panel, below] = R, R.T
        A[below, below] = Q.T @ A[below, below] @ Q
        Qt[below] = Q.T @ Qt[below]
    lower = np.zeros((n, width + 1))
    for k in range(min(width + 1, n)):
        lower[: n - k, k] = np.diagonal(A, -k)
    return Band(Qt, lower, width)
