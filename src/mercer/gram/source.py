"""A kernel bound to its training points: what dense, cached and lazy Grams are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import Pairs, choose_backend
from mercer.expression import Expression
from mercer.gram.base import Cross, Expansion, columns_of
from mercer.points import row_count, take


@dataclass(frozen=True, eq=False)
class Source:
    """A kernel bound to rows.

    Attributes
    ----------
    expression : Expression
        The kernel, names of columns already numbers.
    X : Points
        The rows it compares.
    dtype : numpy dtype
        Type of K.
    valid : bool
        Whether K is known to be positive semidefinite, by the rules of the algebra.
    """

    expression: Expression
    X: Points
    dtype: Any = np.float64
    valid: bool = False

    @property
    def n(self) -> int:
        """Count the training points."""
        return row_count(self.X)

    def pairs(self) -> Pairs:
        """Bind the training points against themselves."""
        return choose_backend().pairs(self.expression, self.X, None, self.dtype)

    def against(self, index: Index) -> Pairs:
        """Bind all training points against some of them."""
        columns = take(self.X, index)
        return choose_backend().pairs(self.expression, self.X, columns, self.dtype)

    def diag(self) -> Array:
        """Return k(x_i, x_i) in float64."""
        return choose_backend().diagonal(self.expression, self.X, np.float64)

    def cross(self, Z: Points) -> Cross:
        """Bind new points against the training points."""
        return PairsCross(choose_backend().pairs(self.expression, Z, self.X, self.dtype))

    def expand(self, coef: Array) -> Expansion:
        """Keep only the points with a coefficient: a support vector machine keeps few."""
        coef = columns_of(coef)
        kept = np.flatnonzero(np.any(coef != 0, axis=1))
        offset = np.zeros(coef.shape[1])
        return KernelExpansion(self.expression, take(self.X, kept), coef[kept], offset)

    def only(self, index: Index) -> Source:
        """Return the same kernel on some of the points."""
        return replace(self, X=take(self.X, index))

    def in_float64(self) -> Source:
        """Return the same kernel and points with K in float64."""
        return replace(self, dtype=np.float64)


class PairsCross(Cross):
    """New points against training points, evaluated by a backend on demand."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self.shape = pairs.shape

    def rows(self, index: Index) -> Array:
        """Evaluate rows."""
        return self._pairs.rows(index)

    def __matmul__(self, V: Array) -> Array:
        return self._pairs.matmul(V)


@dataclass(frozen=True, eq=False)
class KernelExpansion(Expansion):
    """An expansion over points.

    Attributes
    ----------
    expression : Expression
        The kernel.
    points : Points
        The points with a coefficient.
    coef : (points, k) array
        Their coefficients.
    offset : (k,) array
        The constant b.
    """

    expression: Expression
    points: Points
    coef: Array
    offset: Array

    def __call__(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, points)."""
        if len(self.coef) == 0:
            return np.tile(self.offset, (row_count(Z), 1))
        # in float64 whatever the rows are: large coefficients would blow up float32 rounding
        pairs = choose_backend().pairs(self.expression, Z, self.points, np.float64)
        return pairs.matmul(self.coef) + self.offset

    def plus(self, offset: Array) -> KernelExpansion:
        """Add to the constant."""
        return replace(self, offset=self.offset + offset)
