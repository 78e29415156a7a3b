"""Nearest neighbours by the compiled core: tiles go by, each row keeps its best.

Distances of dense rows are guessed in float32 tiles; a pair that a bound of their rounding
cannot rule out is measured in float64 from the rows themselves, so the answer is that of float64.
Any other key is taken from float64 tiles as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer._points import row_count, to_dense
from mercer._types import Array, Points
from mercer.backends.closeness import closeness
from mercer.backends.inputs import operand
from mercer.backends.packing import stays_sparse
from mercer.expression import Expression, SqDist

Exact = tuple[Array, Array, Array]  # X, Y, and the squared lengths of X around the mean of Y
_FLOAT32_RANGE = 1e-30, 1e30  # of squared lengths: tiles neither overflow nor lose small numbers


def neighbours(
    bind: Callable[[Expression, Any], Any],
    expression: Expression,
    X: Points,
    Y: Points | None,
    count: int,
) -> tuple[Array, Array]:
    """Find the nearest rows of Y for each row of X; `bind(key, dtype)` gives native pairs."""
    order = closeness(expression)
    exact = _exact_rows(order.key, X, Y)
    dtype = np.float32 if exact is not None and _in_range(exact) else np.float64
    index, key = bind(order.key, dtype).nearest(count, exact)
    return index, order.squared(key)


def _exact_rows(key: Expression, X: Points, Y: Points | None) -> Exact | None:
    """Give the rows themselves where the key is their squared distance."""
    if not isinstance(key, SqDist):
        return None
    rows, others = operand(key, X), None if Y is None else operand(key, Y)
    if row_count(rows) == 0 or stays_sparse(rows, others, np.float64):
        return None
    dense = np.ascontiguousarray(to_dense(rows))
    columns = dense if others is None else np.ascontiguousarray(to_dense(others))
    away = dense - columns.mean(axis=0)
    return dense, columns, _no_nan(np.einsum("ij,ij->i", away, away))


def _no_nan(lengths: Array) -> Array:
    """Make an unknown length infinite: then nothing is ruled out."""
    return np.where(np.isnan(lengths), np.inf, lengths)


def _in_range(exact: Exact) -> bool:
    _, columns, lengths = exact
    low, high = _FLOAT32_RANGE
    largest = float(lengths.max())
    other = float(np.square(columns - columns.mean(axis=0)).sum(axis=1).max())
    return low < largest < high and other < high
