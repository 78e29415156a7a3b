"""Kernel matrices and nearest neighbors by the compiled core, for expressions bound to rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import _native, deadline
from mercer.array_types import Array, Index, Points
from mercer.backends.contract import Pairs, StoredMatrix
from mercer.backends.host import HostMatrix
from mercer.backends.lowering import FlatProgram, lower
from mercer.backends.operands import operand, stays_sparse
from mercer.backends.reference.evaluate import closeness, evaluate, matern_profile
from mercer.backends.row_values import (
    PairedRows,
    is_bounded,
    row_values,
    squared_lengths,
    tile_error,
)
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Expression,
    MaternProfile,
    MinSum,
    RowSum,
    SelfValue,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
    add,
    multiply,
    walk,
)
from mercer.resources import call_threads, rows_at_once
from mercer.rows.points import is_sparse, row_count, take, to_dense

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


# --- pairs ---------------------------------------------------------------------------------------
#
# Expressions bound to points, evaluated tile by tile by the compiled core.

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


# --- neighbours ----------------------------------------------------------------------------------
#
# Nearest neighbours by the compiled core: tiles go by, each row keeps its best.
#
# Distances of dense rows are guessed in float32 tiles; a pair that a bound of their rounding
# cannot rule out is measured in float64 from the rows themselves, so the answer is that of
# float64. Keys made of dot products and distances are guessed as well, and decided by
# `native_guesses`; any other key is taken from float64 tiles as it is.

Exact = tuple[Array, Array, Array]  # X, Y, and the squared lengths of X as tiles compare them
_FLOAT32_RANGE = 1e-30, 1e30  # of squared lengths: tiles neither overflow nor lose small numbers


def neighbours(
    bind: Bind, expression: Expression, X: Points, Y: Points | None, count: int
) -> tuple[Array, Array]:
    """Find the nearest rows of Y for each row of X; `bind(key, X, Y, dtype)` gives native pairs."""
    order = closeness(expression)
    if isinstance(order.key, SqDist):
        index, key = _nearest_rows(bind, order.key, X, Y, count)
    elif (search := guesses(bind, order.key, X, Y, count)) is not None:
        index, key = search.find(count)
    else:
        index, key = bind(order.key, X, Y, np.float64).nearest(count, None)
    return index, order.squared(key)


def _nearest_rows(
    bind: Bind, key: SqDist, X: Points, Y: Points | None, count: int
) -> tuple[Array, Array]:
    rows, others = operand(key, X), None if Y is None else operand(key, Y)
    if row_count(rows) == 0 or stays_sparse(rows, others, np.float64):
        found: tuple[Array, Array] = bind(key, X, Y, np.float64).nearest(count, None)
        return found
    dense = np.ascontiguousarray(to_dense(rows))
    columns = dense if others is None else np.ascontiguousarray(to_dense(others))
    lengths, most = squared_lengths(dense, columns)
    low, high = _FLOAT32_RANGE
    dtype = np.float32 if low < lengths.max() < high and most < high else np.float64
    exact: Exact = dense, columns, lengths
    index, squared = bind(key, X, Y, dtype).nearest(count, exact)
    return index, squared


# --- guesses -------------------------------------------------------------------------------------
#
# Neighbours by a key that is no distance of rows: float32 tiles guess, float64 decides.
#
# Some more columns than asked for are found by float32 tiles and ordered by their keys in
# float64. A row is done if all other columns are farther even when its bound of the rounding is
# taken off; the few that are not are searched again in float64 tiles.

Bind = Callable[[Expression, Points, Points | None, Any], Any]
_FEW_COLUMNS = 1024  # float64 tiles are as quick
_FEW_ROWS = 64
_TRIED = 128  # rows that show whether guesses are any good
_GOOD = 0.8  # share of rows that must be done by guesses


@dataclass(frozen=True, eq=False)
class Guess:
    """The nearest columns of each row, and whether they are known to be these."""

    index: Array
    key: Array
    sure: Array


@dataclass(frozen=True, eq=False)
class Guesses:
    """A search by guesses.

    Attributes
    ----------
    bind : callable
        Returns native pairs of an expression, rows, columns (None: the rows) and a type.
    key : Expression
        Small for close pairs.
    guessed : Expression
        The same in a form that compares rows once.
    X, Y : Points
        Rows and columns (None: the rows).
    pairs : PairedRows
        The key at chosen pairs.
    """

    bind: Bind
    key: Expression
    guessed: Expression
    X: Points
    Y: Points | None
    pairs: PairedRows

    def find(self, count: int) -> tuple[Array, Array]:
        """Find the nearest columns of each row, by ascending key, then by number."""
        m = row_count(self.X)
        every = np.arange(m)
        if m <= _FEW_ROWS:
            return self._exactly(every, count)
        error = tile_error(lower(self.guessed), self.X, self._columns)
        error *= 1 + 1e-6  # that of float64, too
        if m > 4 * _TRIED:
            some = np.linspace(0, m - 1, _TRIED).astype(np.int64)
            if self._guess(some, count, error).sure.mean() < _GOOD:
                return self._exactly(every, count)
        found = self._guess(every, count, error)
        again = np.flatnonzero(~found.sure)
        if len(again):
            found.index[again], found.key[again] = self._exactly(again, count)
        return found.index, found.key

    @property
    def _columns(self) -> Points:
        return self.X if self.Y is None else self.Y

    def _guess(self, rows: Array, count: int, error: Array) -> Guess:
        there = row_count(self._columns) - int(self.Y is None)
        more = min(there, count + count // 4 + 3)
        index, rough = self._nearest(self.guessed, rows, more, np.float32)
        found, key = self._decided(index, rows, count)
        beyond = np.inf if more == there else rough[:, -1] - error[rows]
        return Guess(found, key, (index >= 0).all(axis=1) & (beyond > key[:, -1]))

    def _exactly(self, rows: Array, count: int) -> tuple[Array, Array]:
        there = row_count(self._columns) - int(self.Y is None)
        index, _ = self._nearest(self.key, rows, min(there, count + count // 4 + 3), np.float64)
        return self._decided(index, rows, count)

    def _decided(self, index: Array, rows: Array, count: int) -> tuple[Array, Array]:
        """Order candidates by their keys in float64 and keep the first ones."""
        key = self.pairs.at(index, rows)
        missing = (index < 0) | ~(key < np.inf)
        index, key = np.where(missing, -1, index), np.where(missing, np.inf, key)
        order = np.lexsort((index, key), axis=1)[:, :count]
        return np.take_along_axis(index, order, axis=1), np.take_along_axis(key, order, axis=1)

    def _nearest(self, key: Expression, rows: Array, count: int, dtype: Any) -> tuple[Array, Array]:
        """Find candidates by tiles; where Y is X, without the row itself."""
        if len(rows) == row_count(self.X):
            found: tuple[Array, Array] = self.bind(key, self.X, self.Y, dtype).nearest(count, None)
            return found
        some = take(self.X, rows)
        if self.Y is not None:
            index, value = self.bind(key, some, self.Y, dtype).nearest(count, None)
            return index, value
        index, value = self.bind(key, some, self.X, dtype).nearest(count + 1, None)
        own = index == rows[:, None]
        own[~own.any(axis=1), -1] = True  # one entry of each row goes
        shape = (len(rows), count)
        return index[~own].reshape(shape), value[~own].reshape(shape)


def guesses(bind: Bind, key: Expression, X: Points, Y: Points | None, count: int) -> Guesses | None:
    """Return the search, or None where the key has no bound of its rounding or it does not pay."""
    columns = X if Y is None else Y
    program = lower(key)
    if row_count(columns) < max(_FEW_COLUMNS, 8 * count) or not is_bounded(program):
        return None
    for leaf in program.leaves:
        if stays_sparse(operand(leaf, X), None if Y is None else operand(leaf, Y), np.float64):
            return None
    return Guesses(bind, key, compared_once(key), X, Y, PairedRows.of(program, X, columns))


def compared_once(key: Expression) -> Expression:
    """Write x'y as (|x|^2 + |y|^2 - |x - y|^2) / 2 where the distance is there anyway.

    Examples
    --------
    >>> len(lower(compared_once(Dot() * SqDist())).leaves)
    1
    """
    steps = {leaf.steps for leaf in walk(key) if isinstance(leaf, SqDist)}

    def rewrite(value: Any) -> Any:
        if isinstance(value, Dot) and value.steps in steps:
            lengths = RowSum(SelfValue(value))
            return add(multiply(0.5, lengths), multiply(-0.5, SqDist(value.steps)))
        if isinstance(value, Expression):
            return type(value)(**{f.name: rewrite(getattr(value, f.name)) for f in fields(value)})
        return tuple(map(rewrite, value)) if isinstance(value, tuple) else value

    rewritten: Expression = rewrite(key)
    return rewritten
