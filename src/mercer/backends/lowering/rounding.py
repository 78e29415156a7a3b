"""How far float32 tiles can be from the numbers they stand for: a bound for each row.

The flat program is run once more on ranges: for each row the least and the largest value that any
column can give, and the most that rounding can have moved it. Rounding bounds are first-order ones
with room to spare (a small multiple of the unit for each operation, also for the exponential).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering.diagonal import row_values
from mercer.backends.lowering.inputs import operand
from mercer.backends.lowering.program import Code, Op, Program
from mercer.expression import Dot, SqDist, Statistic
from mercer.points import to_dense

UNIT = 2.0**-24  # half the distance from 1 to the next float32 number
_STEP = 8 * UNIT  # of one operation, its constants rounded too
_SMALLEST = 1e-37  # below this float32 numbers lose digits, or are flushed to zero
_LARGEST = 1e36  # beyond this they might overflow
_LOOKED_AT = 64  # rows in which levels would show


class Range(NamedTuple):
    """What a register may hold, for each row: (m,) arrays."""

    low: Array
    high: Array
    error: Array

    @property
    def size(self) -> Array:
        """The largest magnitude."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def tile_error(program: Program, X: Points, Y: Points) -> Array:
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
    registers += [Range(nothing, nothing, nothing)] * (program.registers - len(registers))
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


def is_bounded(program: Program) -> bool:
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


def _leaf_range(leaf: Statistic, X: Points, Y: Points) -> Range:
    rows, columns = to_dense(operand(leaf, X)), to_dense(operand(leaf, Y))
    if isinstance(leaf, Dot):
        most = np.sqrt(_squares(rows) * _squares(columns).max(initial=0.0))
        return Range(-most, most, (rows.shape[1] + 16) * UNIT * most + _SMALLEST)
    own, other = squared_lengths(rows, columns)
    near, far = np.sqrt(own) - np.sqrt(other), np.sqrt(own) + np.sqrt(other)
    error = squared_distance_slack(rows.shape[1]) * (own + other) + _SMALLEST
    return Range(np.maximum(near, 0.0) ** 2, far**2, error)


def _row_range(op: Op, u: Array, w: Array) -> Range:
    ends = (w.min(initial=np.inf), w.max(initial=-np.inf))
    join = np.add if op.code == Code.ROW_SUM else np.multiply
    low, high = np.sort([join(u, end) for end in ends], axis=0)
    most = join(np.abs(u), max(map(abs, ends)))
    return Range(low, high, _STEP * most + _SMALLEST)


def _squares(rows: Array) -> Array:
    lengths = np.einsum("ij,ij->i", rows, rows)
    return np.where(np.isnan(lengths), np.inf, lengths)


def _like_levels(rows: Array) -> bool:
    some = rows[:_LOOKED_AT]
    whole = np.array_equal(some.astype(np.float32), some)
    return bool(whole and (some >= 0).all() and len(np.unique(some)) <= 256)


# --- operations ------------------------------------------------------------------------------

_Rule = Callable[[Op, list[Range]], Range]


def _affine(x: Range, scale: float, shift: float) -> Range:
    low, high = np.sort([scale * x.low + shift, scale * x.high + shift], axis=0)
    rounding = _STEP * (abs(scale) * (x.size + x.error) + abs(shift)) + _SMALLEST
    return Range(low, high, abs(scale) * x.error + rounding)


def _sum(op: Op, r: list[Range]) -> Range:
    a, b = _affine(r[op.a], op.c0, 0.0), _affine(r[op.b], op.c1, op.c2)
    error = (a.error + b.error) * (1 + _STEP) + _STEP * (a.size + b.size)
    return Range(a.low + b.low, a.high + b.high, error)


def _product(op: Op, r: list[Range]) -> Range:
    a, b = _affine(r[op.a], op.c0, 0.0), r[op.b]
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    moved = a.error * b.size + a.size * b.error + a.error * b.error
    error = moved * (1 + _STEP) + _STEP * a.size * b.size + _SMALLEST
    return Range(np.min(ends, axis=0), np.max(ends, axis=0), error)


def _exp(op: Op, r: list[Range]) -> Range:
    x = _affine(r[op.a], op.c0, op.c1)
    high = np.exp(x.high)
    error = high * (np.expm1(x.error) + 2 * _STEP * np.exp(x.error)) + _SMALLEST
    return Range(np.exp(x.low), high, error)


def _tanh(op: Op, r: list[Range]) -> Range:
    x = _affine(r[op.a], op.c0, op.c1)
    return Range(np.tanh(x.low), np.tanh(x.high), x.error + 2 * _STEP)


def _whole_power(op: Op, r: list[Range]) -> Range:
    x, p = _affine(r[op.a], op.c0, op.c1), op.item
    if p < 0:  # rises without limit at zero: known only for what stays away from it
        most = np.where(x.low > x.error, x.low - x.error, 0.0)
        error = -p * x.error * most ** (p - 1) + (2 - p) * _STEP * most**p + _SMALLEST
        return Range(x.high**p, x.low**p, np.where(most > 0, error, np.inf))
    most = x.size + x.error
    error = p * x.error * most ** (p - 1) + (2 + p) * _STEP * most**p + _SMALLEST
    ends = np.sort([x.low**p, x.high**p], axis=0)
    crosses = (x.low < 0) & (x.high > 0) & (p % 2 == 0)
    return Range(np.where(crosses, 0.0, ends[0]), ends[1], error)


def _fill(op: Op, r: list[Range]) -> Range:
    value = np.full_like(r[0].low, op.c0)
    return Range(value, value, _STEP * np.abs(value))


_RULES: dict[Code, _Rule] = {
    Code.FILL: _fill,
    Code.AFFINE: lambda op, r: _affine(r[op.a], op.c0, op.c1),
    Code.SUM: _sum,
    Code.PRODUCT: _product,
    Code.EXP: _exp,
    Code.TANH: _tanh,
    Code.WHOLE_POWER: _whole_power,
}
