"""Bind an expression to points: its flat program and its operands in the compiled core."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mercer import _native
from mercer.array_types import Array, Points
from mercer.backends.lowering.diagonal import row_values
from mercer.backends.lowering.inputs import operand, stays_sparse
from mercer.backends.lowering.lower import lower
from mercer.backends.lowering.program import Program
from mercer.expression import (
    AbsDist,
    ChiSq,
    Dot,
    Expression,
    MinSum,
    SqDist,
    Statistic,
    SubsetProduct,
    SymmetricSum,
)
from mercer.points import is_sparse, row_count
from mercer.resources import call_threads

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
    program: Program
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
