"""Kernel values of single rows and of chosen pairs, and bounds on float32 rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends.lowering import Code, FlatProgram, Op, lower
from mercer.backends.operands import operand
from mercer.backends.reference import evaluate
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Expression,
    MaternProfile,
    MinSum,
    RowTerm,
    SelfValue,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
    mapped_width,
)
from mercer.rows.chunks import in_pieces
from mercer.rows.points import is_sparse, row_count, to_dense

# --- diagonal ------------------------------------------------------------------------------------
#
# e(x, x) for every row, without comparing different rows: the flat program on vectors.


def diagonal(expression: Expression, X: Points) -> Array:
    """Return e(x_i, x_i) for every row, in float64; features of a few rows at a time."""
    width = mapped_width(expression)
    if not width:
        return _diagonal(expression, X)
    return in_pieces(lambda rows: _diagonal(expression, rows), X, width)


def _diagonal(expression: Expression, X: Points) -> Array:
    program = lower(expression)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by those who use the values
        registers = [self_statistic(leaf, operand(leaf, X)) for leaf in program.leaves]
        registers += [np.zeros(row_count(X))] * (program.registers - len(registers))
        for op in program.ops:
            registers[op.out] = _DIAGONAL_VERBS[Code(op.code)](op, registers, program, X)
    return registers[0]


def row_values(row: RowTerm, X: Points) -> Array:
    """Return the row term u(x_i) for every row, in float64."""
    if not isinstance(row, SelfValue):
        return evaluate.row_values(row, X)
    return evaluate.self_power(row, diagonal(row.expression, X))


# --- a statistic of a row with itself --------------------------------------------------------


@singledispatch
def self_statistic(statistic: Statistic, X: Points) -> Array:
    """Return the statistic of every row with itself."""
    raise TypeError(f"unknown statistic {statistic!r}")


@self_statistic.register(SqDist)
@self_statistic.register(AbsDist)
@self_statistic.register(ChiSq)
def _(statistic: Statistic, X: Points) -> Array:
    return np.zeros(row_count(X))


@self_statistic.register
def _(statistic: Dot, X: Points) -> Array:
    return _row_sums(X, np.square)


@self_statistic.register
def _(statistic: MinSum, X: Points) -> Array:
    return _row_sums(X, np.asarray)


@self_statistic.register
def _(statistic: SubsetProduct, X: Points) -> Array:
    if is_sparse(X):
        return np.exp(_row_sums(X, lambda x: np.log1p(np.square(x))))
    product: Array = np.prod(1.0 + np.square(X, dtype=np.float64), axis=1)
    return product


@self_statistic.register
def _(statistic: SymmetricSum, X: Points) -> Array:
    if statistic.degree > X.shape[1]:
        return np.zeros(row_count(X))  # there are no such sets
    sums: Array = np.zeros((statistic.degree + 1, row_count(X)))
    sums[0] = 1.0
    columns = X.tocsc() if is_sparse(X) else X.T
    for j in range(X.shape[1]):
        if is_sparse(X):
            own = slice(columns.indptr[j], columns.indptr[j + 1])
            rows, x = columns.indices[own], columns.data[own]
        else:
            rows, x = slice(None), columns[j]
        sums[1:, rows] += np.square(x, dtype=np.float64) * sums[:-1, rows]
    return np.asarray(sums[-1])


def _row_sums(X: Points, of: Callable[[Any], Any]) -> Array:
    """Sum `of` the entries along rows in float64; `of` maps zero to zero."""
    if not is_sparse(X):
        return np.asarray(of(X.astype(np.float64, copy=False)).sum(axis=1))
    values = of(X.data.astype(np.float64))
    return np.asarray(sparse.csr_array((values, X.indices, X.indptr), shape=X.shape).sum(axis=1))


# --- operations on vectors -------------------------------------------------------------------

_Verb = Callable[[Op, list[Array], FlatProgram, Points], Array]


def _unary(function: Callable[[Op, Array], Array]) -> _Verb:
    return lambda op, r, program, X: function(op, op.c0 * r[op.a] + op.c1)


def _ratio(op: Op, r: list[Array], program: FlatProgram, X: Points) -> Array:
    both_zero = (r[op.a] == 0) & (r[op.b] == 0)
    return np.where(both_zero, 1.0, r[op.a] / np.where(both_zero, 1.0, r[op.b]))


def _polynomial(op: Op, r: list[Array], program: FlatProgram, X: Points) -> Array:
    coefficients = program.coefficients[op.item : op.item + op.items]
    return np.polynomial.polynomial.polyval(op.c0 * r[op.a] + op.c1, coefficients)


def _external(op: Op, r: list[Array], program: FlatProgram, X: Points) -> Array:
    expression = program.externals[op.item]
    if isinstance(expression, MaternProfile):
        return evaluate.matern_profile(diagonal(expression.of, X), expression.nu)
    return evaluate.diagonal(expression, X)


_DIAGONAL_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, r, program, X: np.full(row_count(X), op.c0),
    Code.AFFINE: _unary(lambda op, x: x),
    Code.SUM: lambda op, r, program, X: op.c0 * r[op.a] + op.c1 * r[op.b] + op.c2,
    Code.PRODUCT: lambda op, r, program, X: op.c0 * r[op.a] * r[op.b],
    Code.RATIO: _ratio,
    Code.EXP: _unary(lambda op, x: np.exp(x)),
    Code.SQRT: _unary(lambda op, x: np.sqrt(x)),
    Code.TANH: _unary(lambda op, x: np.tanh(x)),
    Code.POWER: _unary(lambda op, x: x**op.c2),
    Code.WHOLE_POWER: _unary(lambda op, x: x**op.item),
    Code.POLYNOMIAL: _polynomial,
    Code.ROW_PRODUCT: lambda op, r, program, X: row_values(program.row_terms[op.item], X) ** 2,
    Code.ROW_SUM: lambda op, r, program, X: 2.0 * row_values(program.row_terms[op.item], X),
    Code.EXTERNAL: _external,
}


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

    Tiles compare rows around the mean of Y. Rows that look like levels of a common step (images)
    may be compared as these, and then what is rounded are the values themselves.

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
    middle = Y.mean(axis=0)
    rows, columns = _squares(X - middle), _squares(Y - middle)
    if _like_levels(X) and _like_levels(Y):
        rows, columns = np.maximum(rows, _squares(X)), np.maximum(columns, _squares(Y))
    return rows, float(columns.max(initial=0.0))


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
