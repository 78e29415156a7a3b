"""The matrix of a kernel, with rows in any order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.gram import Source
from mercer.gram.storage.precomputed import symmetrised
from mercer.selection.running.rows import take_rows
from mercer.selection.sharing.parts import Parts


def matrix_of(expression: Expression, rows: Points, parts: Parts) -> Callable[[Array], Array]:
    """Evaluate a kernel when its matrix is asked for; common parts are of rows as they are."""

    def make(order: Array) -> Array:
        if parts.count:
            return _finite(_sorted(parts.dense(_source(expression, rows)), order))
        return _finite(parts.dense(_source(expression, take_rows(rows, order))))

    return make


def given_matrix(K: Points) -> Callable[[Array], Array]:
    """Take a precomputed matrix."""
    return lambda order: _finite(_sorted(symmetrised(np.asarray(K, dtype=np.float64)), order))


def _source(expression: Expression, rows: Points) -> Source:
    return Source(expression, rows, np.dtype(np.float64))


def _sorted(K: Array, order: Array) -> Array:
    as_is = np.array_equal(order, np.arange(len(K)))
    return np.ascontiguousarray(K if as_is else K[np.ix_(order, order)])


def _finite(K: Array) -> Array:
    if not np.isfinite(K).all():
        raise ValueError("the kernel is not finite on all rows")
    return K
