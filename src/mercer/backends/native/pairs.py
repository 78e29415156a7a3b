"""Expressions bound to points, evaluated tile by tile by the compiled core."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import _native, deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.contract import (
    Pairs,
)
from mercer.backends.host_matrix import HostMatrix
from mercer.backends.native.binding import bind
from mercer.backends.native.neighbours import Exact
from mercer.backends.reference.evaluate import evaluate, matern_profile
from mercer.backends.stored import StoredMatrix
from mercer.expression import (
    Expression,
    MaternProfile,
)
from mercer.points import row_count, take
from mercer.resources import call_threads, rows_at_once

_TILE = 192  # rows of a tile; blocks of symmetric matrices begin at multiples of it
_LINE = 16  # entries: rows so far apart begin at cache lines, and are written past the cache
_BLOCK_ENTRIES = 1 << 22  # entries that Python evaluates at a time, where it must
_ARRAYS = 3  # of such a block


class NativePairs(Pairs):
    """An expression bound to points, evaluated by the compiled core.

    Parameters
    ----------
    expression : Expression
        What is evaluated.
    X, Y : Points
        Rows and columns; Y is None when it is X.
    dtype : numpy dtype
        float32 or float64, whatever the type of the points.
    """

    def __init__(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> None:
        self._X, self._Y = X, X if Y is None else Y
        self._symmetric = Y is None
        self.shape = (row_count(X), row_count(self._Y))
        self.dtype = np.dtype(dtype)
        self._core = bind(expression, X, Y, self.dtype)
        self._externals = [_External(e, X, Y, self.dtype) for e in self._core.program.externals]

    def rows(self, index: Index) -> Array:
        """Evaluate the rows `index` against all columns."""
        deadline.check()
        native, threads = self._core.native, self._threads
        if isinstance(index, slice) and index.step in (None, 1):
            begin, end, _ = index.indices(self.shape[0])
            end = max(begin, end)
            return native.range(begin, end, self._blocks(index), threads(end - begin))
        numbers = _row_numbers(index, self.shape[0])
        return native.gather(numbers, self._blocks(numbers), threads(len(numbers)))

    def dense(self, *, padded: bool = False) -> Array:
        """Evaluate the whole matrix; a symmetric one from half of its tiles."""
        n = self.shape[0]
        if self._symmetric:
            empty = _native.empty_float if self.dtype == np.float32 else _native.empty_double
            out = empty(n, -(-n // _LINE) * _LINE if padded else n)
            for part in self._parts():
                blocks = self._blocks(part, part.start)
                self._core.native.symmetric(out, part.start, part.stop, blocks, self._threads(n))
            return out[:, :n]
        if not self._externals:
            return self.rows(slice(0, n))
        out = np.empty(self.shape, dtype=self.dtype)
        for part in self._parts():
            out[part] = self.rows(part)
        return out

    def stored(self) -> StoredMatrix:
        """Keep the matrix in memory."""
        return HostMatrix(self.dense())

    def matmul(self, V: Array) -> Array:
        """Multiply by V, each tile dropped after use; sums over tiles in float64."""
        deadline.check()
        V = np.asarray(V, dtype=np.float64)
        columns = np.ascontiguousarray(V.reshape(self.shape[1], math.prod(V.shape[1:])))
        if self._symmetric and not self._externals:
            threads = self._threads(self.shape[0], columns.shape[1])
            product = self._core.native.multiply_symmetric(columns, threads)
            return np.asarray(product.reshape(self.shape[0], *V.shape[1:]))
        scales = np.ones(columns.shape[1])
        if self.dtype == np.float32:
            columns, scales = _into_float32_range(columns)
        out = np.empty((self.shape[0], columns.shape[1]))
        for part in self._parts():
            threads = self._threads(part.stop - part.start, columns.shape[1])
            blocks = self._blocks(part)
            product = self._core.native.multiply(columns, part.start, part.stop, blocks, threads)
            np.multiply(product, scales, out=out[part])
        return out.reshape(self.shape[0], *V.shape[1:])

    def nearest(self, count: int, exact: Exact | None) -> tuple[Array, Array]:
        """Find the columns with the smallest entries of each row, each tile dropped after use."""
        n = self.shape[0]
        index, key = np.empty((n, count), dtype=np.int64), np.empty((n, count))
        upper = self._symmetric and not self._externals
        for part in self._parts():
            _native.nearest(
                self._core.native,
                index[part],
                key[part],
                part.start,
                part.stop,
                self._symmetric,
                upper,
                self._blocks(part),
                exact,
                self._threads(part.stop - part.start),
            )
        return index, key

    def _threads(self, rows: int, vectors: int = 0) -> int:
        return call_threads(float(rows) * self.shape[1] * (self._core.cost + vectors))

    def _blocks(self, index: Index, first_column: int = 0) -> list[Array]:
        return [external.block(index, first_column) for external in self._externals]

    def _parts(self) -> Iterator[slice]:
        """Cover all rows: at once, or in blocks when Python evaluates a part of them."""
        n, m = self.shape
        height = n
        if self._externals:
            most = rows_at_once(m, max(1, _BLOCK_ENTRIES // max(1, m)), arrays=_ARRAYS)
            height = max(1, most // _TILE) * _TILE
        for start in range(0, n, max(1, height)):
            deadline.check()
            yield slice(start, min(n, start + height))


class _External:
    """A part of an expression that Python evaluates, block by block."""

    def __init__(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> None:
        self._expression, self._dtype = expression, dtype
        self._X, self._Y = X, X if Y is None else Y
        self._inner: NativePairs | None = None
        if isinstance(expression, MaternProfile):
            self._inner = NativePairs(expression.of, X, Y, np.float64)

    def block(self, index: Index, first_column: int) -> Array:
        """Evaluate some rows, from a column on."""
        return np.ascontiguousarray(self._values(index, first_column), dtype=self._dtype)

    def _values(self, index: Index, first_column: int) -> Array:
        if self._inner is not None and isinstance(self._expression, MaternProfile):
            r = self._inner.rows(index)[:, first_column:]
            return matern_profile(r, self._expression.nu)
        columns = take(self._Y, slice(first_column, None))
        return evaluate(self._expression, take(self._X, index), columns)


def _row_numbers(index: Index, n: int) -> Array:
    """Return row numbers as the core wants them: int64, counted from the front."""
    numbers = np.arange(n)[index] if isinstance(index, slice) else np.asarray(index)
    if numbers.dtype == bool:
        numbers = np.flatnonzero(numbers)
    numbers = np.ascontiguousarray(numbers, dtype=np.int64)
    return np.where(numbers < 0, numbers + n, numbers) if (numbers < 0).any() else numbers


def _into_float32_range(V: Array) -> tuple[Array, Array]:
    """Scale columns by powers of two so that their largest entries are near 1."""
    largest = np.abs(V).max(axis=0, initial=0.0)
    finite = (largest > 0) & np.isfinite(largest)
    scales = np.ldexp(1.0, np.frexp(np.where(finite, largest, 1.0))[1])
    return V / scales, scales
