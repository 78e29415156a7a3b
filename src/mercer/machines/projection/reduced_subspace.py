"""Directions and mean of a compressed machine: few vectors stand for the training points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Source, exact
from mercer.machines.projection.subspace import Subspace, left_of


@dataclass(frozen=True, eq=False)
class ReducedSubspace(Subspace):
    """Directions, and the mean of the training points, as coefficients of a few vectors.

    Attributes
    ----------
    source : Source
        The kernel and the vectors.
    coef : (m, k) array
        Coefficients of the directions.
    mean : (m,) array
        Coefficients of the mean.
    spread : float
        The sum of squared distances of the training points from their mean.
    """

    source: Source
    coef: Array
    mean: Array
    spread: float

    @cached_property
    def centre(self) -> Array:
        """The inner products of the mean with all directions; with itself last."""
        if not len(self.mean):
            return np.zeros(self.coef.shape[1] + 1)
        return np.asarray(self.mean @ (exact(self.source) @ self._table))

    def scores(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, vectors)."""
        return np.asarray(self._values(Z)[:, :-1] - self.centre[:-1])

    def squared_distances(self, Z: Points) -> Array:
        """Return k(z, z) centred, less the squared scores."""
        values = self._values(Z)
        own = Source(self.source.expression, Z).diag()
        with np.errstate(over="ignore", invalid="ignore"):
            squared = own - 2.0 * values[:, -1] + self.centre[-1]
            return left_of(squared, values[:, :-1] - self.centre[:-1])

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread

    @property
    def _table(self) -> Array:
        return np.column_stack([self.coef, self.mean])

    def _values(self, Z: Points) -> Array:
        if not len(self.mean):
            return np.zeros((Z.shape[0], self.coef.shape[1] + 1))
        return np.asarray(self.source.in_float64().cross(Z) @ self._table)
