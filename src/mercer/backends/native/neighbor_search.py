"""Nearest neighbors by the compiled core: float32 tiles guess within a bound, float64 decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering import Code, FlatProgram, Op, lower
from mercer.backends.native.pairs import Exact, NativePairs
from mercer.backends.neighbor_order import closeness
from mercer.backends.operands import operand, stays_sparse
from mercer.backends.row_values import row_values
from mercer.expression import (
    Dot,
    Expression,
    RowSum,
    SelfValue,
    SqDist,
    Statistic,
    add,
    multiply,
    walk,
)
from mercer.rows.points import row_count, take, to_dense

# --- neighbours ----------------------------------------------------------------------------------
#
# Nearest neighbours by the compiled core: tiles go by, each row keeps its best.
#
# Distances of dense rows are guessed in float32 tiles; a pair that a bound of their rounding
# cannot rule out is measured in float64 from the rows themselves, so the answer is that of
# float64. Keys made of dot products and distances are guessed as well, and decided
# below; any other key is taken from float64 tiles as it is.

_FLOAT32_RANGE = 1e-30, 1e30  # of squared lengths: tiles neither overflow nor lose small numbers


def neighbours(
    expression: Expression, X: Points, Y: Points | None, count: int
) -> tuple[Array, Array]:
    """Find the nearest rows of Y for each row of X."""
    order = closeness(expression)
    if isinstance(order.key, SqDist):
        index, key = _nearest_rows(order.key, X, Y, count)
    elif (search := guesses(order.key, X, Y, count)) is not None:
        index, key = search.find(count)
    else:
        index, key = NativePairs(order.key, X, Y, np.float64).nearest(count, None)
    return index, order.squared(key)


def _nearest_rows(key: SqDist, X: Points, Y: Points | None, count: int) -> tuple[Array, Array]:
    rows, others = operand(key, X), None if Y is None else operand(key, Y)
    if row_count(rows) == 0 or stays_sparse(rows, others, np.float64):
        return NativePairs(key, X, Y, np.float64).nearest(count, None)
    dense = np.ascontiguousarray(to_dense(rows))
    columns = dense if others is None else np.ascontiguousarray(to_dense(others))
    lengths, most = squared_lengths(dense, columns)
    low, high = _FLOAT32_RANGE
    dtype = np.float32 if low < lengths.max() < high and most < high else np.float64
    exact: Exact = dense, columns, lengths
    index, squared = NativePairs(key, X, Y, dtype).nearest(count, exact)
    return index, squared


# --- guesses -------------------------------------------------------------------------------------
#
# Neighbours by a key that is no distance of rows: float32 tiles guess, float64 decides.
#
# Some more columns than asked for are found by float32 tiles and ordered by their keys in
# float64. A row is done if all other columns are farther even when its bound of the rounding is
# taken off; the few that are not are searched again in float64 tiles.

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
    key : Expression
        Small for close pairs.
    guessed : Expression
        The same in a form that compares rows once.
    X, Y : Points
        Rows and columns (None: the rows).
    pairs : PairedRows
        The key at chosen pairs.
    """

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
            found: tuple[Array, Array] = NativePairs(key, self.X, self.Y, dtype).nearest(
                count, None
            )
            return found
        some = take(self.X, rows)
        if self.Y is not None:
            index, value = NativePairs(key, some, self.Y, dtype).nearest(count, None)
            return index, value
        index, value = NativePairs(key, some, self.X, dtype).nearest(count + 1, None)
        own = index == rows[:, None]
        own[~own.any(axis=1), -1] = True  # one entry of each row goes
        shape = (len(rows), count)
        return index[~own].reshape(shape), value[~own].reshape(shape)


def guesses(key: Expression, X: Points, Y: Points | None, count: int) -> Guesses | None:
    """Return the search, or None where the key has no bound of its rounding or it does not pay."""
    columns = X if Y is None else Y
    program = lower(key)
    if row_count(columns) < max(_FEW_COLUMNS, 8 * count) or not is_bounded(program):
        return None
    for leaf in program.leaves:
        if stays_sparse(operand(leaf, X), None if Y is None else operand(leaf, Y), np.float64):
            return None
    return Guesses(key, compared_once(key), X, Y, PairedRows.of(program, X, columns))


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


# --- paired --------------------------------------------------------------------------------------
#
# An expression at chosen pairs of rows, in float64: the flat program on a few entries a row.

_ENTRIES = 1 << 17  # numbers of rows copied at a time, which stay in the cache


@dataclass(frozen=True, eq=False)
class PairedRows:
    """A program with leaves `Dot` and `SqDist` of dense rows, and the rows.

    Squared distances are sums of squared differences, so equal rows give equal entries, and close
    ones keep their digits.

    Attributes
    ----------
    program : Program
        What is evaluated.
    rows, columns : lists of arrays
        For each leaf, what it compares.
    row_terms : list of pairs of arrays
        For each row term, its values for rows and for columns.
    """

    program: FlatProgram
    rows: list[Array]
    columns: list[Array]
    row_terms: list[tuple[Array, Array]]

    @classmethod
    def of(cls, program: FlatProgram, X: Points, Y: Points) -> Self:
        """Bind a program to points."""
        rows = [to_dense(operand(leaf, X)) for leaf in program.leaves]
        columns = [to_dense(operand(leaf, Y)) for leaf in program.leaves]
        terms = [(row_values(term, X), row_values(term, Y)) for term in program.row_terms]
        return cls(program, rows, columns, terms)

    def at(self, index: Array, rows: Array) -> Array:
        """Evaluate row rows[i] with the columns index[i]: (m, count) numbers."""
        out = np.empty(index.shape)
        widest = max((part.shape[1] for part in self.columns), default=1)
        height = max(1, _ENTRIES // max(1, index.shape[1] * widest))
        for start in range(0, len(index), height):
            part = slice(start, start + height)
            out[part] = self._block(rows[part], index[part])
        return out

    def _block(self, rows: Array, index: Array) -> Array:
        leaves = zip(self.program.leaves, self.rows, self.columns, strict=True)
        registers = [_compared(leaf, x[rows], y, index) for leaf, x, y in leaves]
        registers += [np.zeros(index.shape)] * (self.program.registers - len(registers))
        for op in self.program.ops:
            if op.code in (Code.ROW_PRODUCT, Code.ROW_SUM):
                u, w = self.row_terms[op.item]
                join = np.add if op.code == Code.ROW_SUM else np.multiply
                registers[op.out] = join(u[rows, None], w[index])
            else:
                registers[op.out] = _PAIRED_VERBS[Code(op.code)](op, registers)
        return registers[0]


def _compared(leaf: Statistic, x: Array, y: Array, index: Array) -> Array:
    near = y[index]
    if not isinstance(leaf, SqDist):
        return np.asarray(np.einsum("id,icd->ic", x, near))
    near -= x[:, None, :]
    return np.asarray(np.einsum("icd,icd->ic", near, near))


_PAIRED_VERBS: dict[Code, Callable[[Op, list[Array]], Array]] = {
    Code.FILL: lambda op, r: np.full_like(r[0], op.c0),
    Code.AFFINE: lambda op, r: op.c0 * r[op.a] + op.c1,
    Code.SUM: lambda op, r: op.c0 * r[op.a] + (op.c1 * r[op.b] + op.c2),
    Code.PRODUCT: lambda op, r: op.c0 * r[op.a] * r[op.b],
    Code.EXP: lambda op, r: np.exp(op.c0 * r[op.a] + op.c1),
    Code.TANH: lambda op, r: np.tanh(op.c0 * r[op.a] + op.c1),
    Code.WHOLE_POWER: lambda op, r: (op.c0 * r[op.a] + op.c1) ** float(op.item),
}


# --- rounding ------------------------------------------------------------------------------------
#
# How far float32 tiles can be from the numbers they stand for: a bound for each row.
#
# The flat program is run once more on ranges: for each row the least and the largest value that
# any column can give, and the most that rounding can have moved it. Rounding bounds are first-
# order ones with room to spare (a small multiple of the unit for each operation, also for the
# exponential).

UNIT = 2.0**-24  # half the distance from 1 to the next float32 number
_STEP = 8 * UNIT  # of one operation, its constants rounded too
_SMALLEST = 1e-37  # below this float32 numbers lose digits, or are flushed to zero
_LARGEST = 1e36  # beyond this they might overflow
_LOOKED_AT = 64  # rows in which levels would show
_MEDIAN_ROWS, _MOVED = 63, 4.0  # as in leaf_dense.cpp


class RegisterRange(NamedTuple):
    """What a register may hold, for each row: (m,) arrays."""

    low: Array
    high: Array
    error: Array

    @property
    def size(self) -> Array:
        """The largest magnitude."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def tile_error(program: FlatProgram, X: Points, Y: Points) -> Array:
    """Bound |float32 entry - exact entry| over all columns, for each row; infinite if unknown.

    Parameters
    ----------
    program : Program
        Its leaves are `Dot` and `SqDist` of dense rows; see `is_bounded`.
    X, Y : Points
        Rows and columns.

    Returns
    -------
    (m,) array
        The bounds.
    """
    registers = [_leaf_range(leaf, X, Y) for leaf in program.leaves]
    nothing = np.zeros(X.shape[0])
    registers += [RegisterRange(nothing, nothing, nothing)] * (program.registers - len(registers))
    beyond = np.zeros(X.shape[0], dtype=bool)
    for op in program.ops:
        if op.code in (Code.ROW_PRODUCT, Code.ROW_SUM):
            term = program.row_terms[op.item]
            found = _row_range(op, row_values(term, X), row_values(term, Y))
        else:
            found = _RULES[Code(op.code)](op, registers)
        beyond |= ~(found.size < _LARGEST)
        registers[op.out] = found
    return np.where(beyond, np.inf, registers[0].error)


def is_bounded(program: FlatProgram) -> bool:
    """Return whether there is a rule for all that the program does."""
    known = all(isinstance(leaf, Dot | SqDist) for leaf in program.leaves)
    rules = {*_RULES, Code.ROW_PRODUCT, Code.ROW_SUM}
    return known and not program.externals and all(Code(op.code) in rules for op in program.ops)


def squared_lengths(X: Array, Y: Array) -> tuple[Array, float]:
    """Return what the rounding of squared distances in tiles is a multiple of.

    Tiles compare rows around the mean of Y, or the medians of some of its rows. Rows that look like
    levels of a common step (images) may be compared as these, and then what is rounded are the
    values themselves.

    Parameters
    ----------
    X, Y : (m, d) and (n, d) float64 arrays
        Rows and columns.

    Returns
    -------
    rows : (m,) array
        Squared lengths of the rows of X; infinite where they are not known.
    most : float
        The largest one of the rows of Y.
    """
    origins = _origins(Y)
    rows = np.max([_squares(X - origin) for origin in origins], axis=0)
    columns = np.max([_squares(Y - origin) for origin in origins], axis=0)
    if _like_levels(X) and _like_levels(Y):
        rows, columns = np.maximum(rows, _squares(X)), np.maximum(columns, _squares(Y))
    return rows, float(columns.max(initial=0.0))


def _origins(Y: Array) -> list[Array]:
    """Return what tiles may compare rows about, as `origin` of leaf_dense.cpp chooses it.

    Where rounding could decide between the mean and the medians, both.
    """
    mean = Y.mean(axis=0)
    count = min(len(Y), _MEDIAN_ROWS)
    some = Y[np.arange(count) * len(Y) // max(1, count)]
    medians = np.sort(some, axis=0)[count // 2] if count else mean
    about = [np.sort(_squares(some - origin))[count // 2] for origin in (mean, medians) if count]
    if not count or not _MOVED * about[1] < 2.0 * about[0]:
        return [mean]
    return [medians] if _MOVED * about[1] < 0.5 * about[0] else [mean, medians]


def squared_distance_slack(features: int) -> float:
    """Return the multiple of |x|^2 + |y|^2 by which a tile of squared distances may be off."""
    return (2 * features + 16) * UNIT


# --- leaves and row terms --------------------------------------------------------------------


def _leaf_range(leaf: Statistic, X: Points, Y: Points) -> RegisterRange:
    rows, columns = to_dense(operand(leaf, X)), to_dense(operand(leaf, Y))
    if isinstance(leaf, Dot):
        most = np.sqrt(_squares(rows) * _squares(columns).max(initial=0.0))
        return RegisterRange(-most, most, (rows.shape[1] + 16) * UNIT * most + _SMALLEST)
    own, other = squared_lengths(rows, columns)
    near, far = np.sqrt(own) - np.sqrt(other), np.sqrt(own) + np.sqrt(other)
    error = squared_distance_slack(rows.shape[1]) * (own + other) + _SMALLEST
    return RegisterRange(np.maximum(near, 0.0) ** 2, far**2, error)


def _row_range(op: Op, u: Array, w: Array) -> RegisterRange:
    ends = (w.min(initial=np.inf), w.max(initial=-np.inf))
    join = np.add if op.code == Code.ROW_SUM else np.multiply
    low, high = np.sort([join(u, end) for end in ends], axis=0)
    most = join(np.abs(u), max(map(abs, ends)))
    return RegisterRange(low, high, _STEP * most + _SMALLEST)


def _squares(rows: Array) -> Array:
    lengths = np.einsum("ij,ij->i", rows, rows)
    return np.where(np.isnan(lengths), np.inf, lengths)


def _like_levels(rows: Array) -> bool:
    some = rows[:_LOOKED_AT]
    whole = np.array_equal(some.astype(np.float32), some)
    return bool(whole and (some >= 0).all() and len(np.unique(some)) <= 256)


# --- operations ------------------------------------------------------------------------------

_Rule = Callable[[Op, list[RegisterRange]], RegisterRange]


def _affine(x: RegisterRange, scale: float, shift: float) -> RegisterRange:
    low, high = np.sort([scale * x.low + shift, scale * x.high + shift], axis=0)
    rounding = _STEP * (abs(scale) * (x.size + x.error) + abs(shift)) + _SMALLEST
    return RegisterRange(low, high, abs(scale) * x.error + rounding)


def _sum(op: Op, r: list[RegisterRange]) -> RegisterRange:
    a, b = _affine(r[op.a], op.c0, 0.0), _affine(r[op.b], op.c1, op.c2)
    error = (a.error + b.error) * (1 + _STEP) + _STEP * (a.size + b.size)
    return RegisterRange(a.low + b.low, a.high + b.high, error)


def _product(op: Op, r: list[RegisterRange]) -> RegisterRange:
    a, b = _affine(r[op.a], op.c0, 0.0), r[op.b]
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    moved = a.error * b.size + a.size * b.error + a.error * b.error
    error = moved * (1 + _STEP) + _STEP * a.size * b.size + _SMALLEST
    return RegisterRange(np.min(ends, axis=0), np.max(ends, axis=0), error)


def _exp(op: Op, r: list[RegisterRange]) -> RegisterRange:
    x = _affine(r[op.a], op.c0, op.c1)
    high = np.exp(x.high)
    error = high * (np.expm1(x.error) + 2 * _STEP * np.exp(x.error)) + _SMALLEST
    return RegisterRange(np.exp(x.low), high, error)


def _tanh(op: Op, r: list[RegisterRange]) -> RegisterRange:
    x = _affine(r[op.a], op.c0, op.c1)
    return RegisterRange(np.tanh(x.low), np.tanh(x.high), x.error + 2 * _STEP)


def _whole_power(op: Op, r: list[RegisterRange]) -> RegisterRange:
    x, p = _affine(r[op.a], op.c0, op.c1), op.item
    if p < 0:  # rises without limit at zero: known only for what stays away from it
        most = np.where(x.low > x.error, x.low - x.error, 0.0)
        error = -p * x.error * most ** (p - 1) + (2 - p) * _STEP * most**p + _SMALLEST
        return RegisterRange(x.high**p, x.low**p, np.where(most > 0, error, np.inf))
    most = x.size + x.error
    error = p * x.error * most ** (p - 1) + (2 + p) * _STEP * most**p + _SMALLEST
    ends = np.sort([x.low**p, x.high**p], axis=0)
    crosses = (x.low < 0) & (x.high > 0) & (p % 2 == 0)
    return RegisterRange(np.where(crosses, 0.0, ends[0]), ends[1], error)


def _fill(op: Op, r: list[RegisterRange]) -> RegisterRange:
    value = np.full_like(r[0].low, op.c0)
    return RegisterRange(value, value, _STEP * np.abs(value))


_RULES: dict[Code, _Rule] = {
    Code.FILL: _fill,
    Code.AFFINE: lambda op, r: _affine(r[op.a], op.c0, op.c1),
    Code.SUM: _sum,
    Code.PRODUCT: _product,
    Code.EXP: _exp,
    Code.TANH: _tanh,
    Code.WHOLE_POWER: _whole_power,
}
