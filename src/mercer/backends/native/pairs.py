"""Kernel matrices by the compiled core: expressions bound to rows, evaluated tile by tile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import _native, deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.contract import Pairs, StoredMatrix
from mercer.backends.host import HostMatrix
from mercer.backends.lowering import FlatProgram, lower
from mercer.backends.operands import operand, stays_sparse
from mercer.backends.reference.evaluate import evaluate, matern_profile
from mercer.backends.row_values import row_values
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Expression,
    MaternProfile,
    MinSum,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)
from mercer.resources import call_threads, rows_at_once
from mercer.rows.points import is_sparse, row_count, take

# --- pairs ---------------------------------------------------------------------------------------
#
# Expressions bound to points, evaluated tile by tile by the compiled core.

_TILE = 192  # rows of a tile; blocks of symmetric matrices begin at multiples of it
_LINE = 16  # entries: rows so far apart begin at cache lines, and are written past the cache
_BLOCK_ENTRIES = 1 << 22  # entries that Python evaluates at a time, where it must
_ARRAYS = 3  # of such a block
Exact = tuple[Array, Array, Array]  # X, Y, and the squared lengths of X as tiles compare them


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


# --- binding -------------------------------------------------------------------------------------
#
# Bind an expression to points: its flat program and its operands in the compiled core.

_STATISTICS: dict[type[Statistic], int] = {
    Dot: 0,
    SqDist: 1,
    AbsDist: 2,
    MinSum: 3,
    ChiSq: 4,
    SubsetProduct: 5,
    SymmetricSum: 6,
}
_ENTRY_COST = 16  # operations on a pair besides its features: exp and the like


class Core(NamedTuple):
    """A bound program and what each entry costs."""

    native: _native.PairsFloat | _native.PairsDouble
    program: FlatProgram
    cost: int


def bind(expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Core:
    """Give the core the program of an expression, and the operands of its leaves."""
    if dtype not in (np.float32, np.float64):
        raise TypeError(f"kernel matrices are float32 or float64, not {dtype}")
    program = lower(expression)
    kind = _native.PairsFloat if dtype == np.float32 else _native.PairsDouble
    native = kind(row_count(X), row_count(X if Y is None else Y))
    cost = _ENTRY_COST
    for leaf in program.leaves:
        rows = operand(leaf, X)
        _add_leaf(native, leaf, rows, None if Y is None else operand(leaf, Y), dtype)
        cost += int(rows.shape[1])
    for term in program.row_terms:
        u = row_values(term, X)
        native.add_row_term(u, u if Y is None else row_values(term, Y))
    native.set_program(list(program.ops), list(program.coefficients), program.registers)
    return Core(native, program, cost)


def _add_leaf(
    native: _native.PairsFloat | _native.PairsDouble,
    leaf: Statistic,
    X: Points,
    Y: Points | None,
    dtype: Any,
) -> None:
    if Y is not None and X.shape[1] != Y.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, Y has {Y.shape[1]}")
    number, degree = _STATISTICS[type(leaf)], getattr(leaf, "degree", 1)
    threads = call_threads(32.0 * X.shape[0] * X.shape[1])
    if stays_sparse(X, Y, dtype):
        columns = None if Y is None else _csr(Y, dtype)
        native.add_sparse(number, degree, X.shape[1], _csr(X, dtype), columns)
        return
    common = np.float32 if X.dtype == (X if Y is None else Y).dtype == np.float32 else np.float64
    native.add_dense(
        number, degree, _dense(X, common), None if Y is None else _dense(Y, common), threads
    )


def _csr(X: Points, dtype: Any) -> tuple[Array, Array, Array]:
    if X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"X has {X.shape[1]} columns; sparse rows may have up to 2147483647")
    rows = sparse.csr_array(X)
    return (
        np.ascontiguousarray(rows.indptr, dtype=np.int64),
        np.ascontiguousarray(rows.indices, dtype=np.int32),
        np.ascontiguousarray(rows.data, dtype=dtype),
    )


def _dense(X: Points, dtype: Any) -> Array:
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else X, dtype=dtype)
