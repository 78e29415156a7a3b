"""Nearest neighbours by the compiled core: tiles go by, each row keeps its best.

Distances of dense rows are guessed in float32 tiles; a pair that a bound of their rounding
cannot rule out is measured in float64 from the rows themselves, so the answer is that of float64.
Keys made of dot products and distances are guessed as well, and decided by `native_guesses`; any
other key is taken from float64 tiles as it is.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends.lowering.inputs import operand, stays_sparse
from mercer.backends.lowering.rounding import squared_lengths
from mercer.backends.native.guesses import Bind, guesses
from mercer.backends.reference.closeness import closeness
from mercer.expression import Expression, SqDist
from mercer.points import row_count, to_dense

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
