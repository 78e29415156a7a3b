"""Values e(x, x) and row terms, without comparing different rows: flat programs on vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

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
from mercer.rows.points import is_sparse, row_count


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
