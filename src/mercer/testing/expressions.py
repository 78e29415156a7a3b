"""Expressions that check backends: one or more for every node of the language."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, FrozenArray
from mercer.expression import (
    AbsDist,
    ChiSq,
    Columns,
    Constant,
    Dot,
    Exp,
    Expression,
    LinearMap,
    Mapped,
    MaternProfile,
    MinSum,
    Opaque,
    Ratio,
    RowFunction,
    RowProduct,
    RowSum,
    SelfValue,
    SqDist,
    Sqrt,
    Stretch,
    SubsetProduct,
    SymmetricSum,
    Tanh,
)
from mercer.points import is_sparse


def statistics() -> list[Expression]:
    """Return every statistic that two rows are compared by."""
    return [
        Dot(),
        SqDist(),
        AbsDist(),
        MinSum(),
        ChiSq(),
        SubsetProduct(),
        *(SymmetricSum(degree=degree) for degree in (0, 1, 2, 5)),
    ]


def _norm(rows: Any) -> Array:
    squares = rows.multiply(rows) if is_sparse(rows) else np.square(rows)
    return np.asarray(np.sqrt(squares.sum(axis=1)), dtype=np.float64)


def _linear(rows: Any, columns: Any) -> Any:
    return rows @ columns.T


def _shift(rows: Any) -> Any:
    return np.asarray((rows.toarray() if is_sparse(rows) else rows) + 0.25)


def expressions(features: int) -> list[Expression]:
    """Return one expression or more for every node of the language."""
    dot, far = Dot(), SqDist()
    r = Sqrt(0.7 * far)
    rng = np.random.default_rng(5)
    factors = FrozenArray(rng.uniform(0.5, 2.0, features))
    matrix = FrozenArray(rng.standard_normal((features, 3)))
    some = Columns(tuple(range(0, features, 2)))
    own = SelfValue(dot + 1.0, -0.5)
    return [
        *statistics(),
        Constant(2.5),
        Exp(-0.5 * far),
        Exp(-0.5 * far) + Exp(-2.0 * far) + 0.25 * Exp(-0.5 * far) + 1.0,
        (0.3 * dot + 1.0) ** 3,
        (0.3 * dot + 1.0) ** 3 * dot + Exp(-1.0 * far),
        2.0 * (dot + 1.0) * (far + 2.0) * Constant(0.5),
        *((far + 1.0) ** power for power in (-1.0, -2.0, -0.7, 0.5, 0.0, 7.0)),
        Tanh(0.5 * dot - 1.0),
        Tanh(1e-3 * dot),
        Ratio(dot, dot + 1.0),
        Ratio(MinSum(), RowSum(SelfValue(MinSum())) - MinSum()),
        Ratio(Constant(0.0) * far, Constant(0.0) * dot),
        *(MaternProfile(r, nu) for nu in (0.5, 1.5, 2.5, 3.5, 0.8)),
        RowProduct(own) * (dot + 1.0),
        RowSum(RowFunction(_norm)) - 2.0 * Exp(-1.0 * far),
        Opaque(_linear) + Exp(-1.0 * far),
        Opaque(_linear),
        Exp(-1.0 * SqDist(steps=(Stretch(factors),))) + SqDist(steps=(some,)),
        Dot(steps=(LinearMap(matrix),)) * AbsDist(steps=(Mapped(_shift),)),
        RowProduct(SelfValue(Dot(steps=(some,)) + 1.0)),
    ]
