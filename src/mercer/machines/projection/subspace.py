"""A mean and a few directions in feature space: scores of new points, and their distance from it.

Where the directions are held as weights of features, everything is done there. Where they are held
as coefficients of training points, what centres new points, w'K, is one pass over the kernel: it is
made when the first new point comes, since many fits never see one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.gram import Source, exact
from mercer.gram.storage.factored import over_features
from mercer.gram.storage.precomputed import MatrixExpansion
from mercer.points import is_sparse, row_count

_ARRAYS = 5  # of features: as they are, centred, projected, what is left, and its squares
HEAVY = 32  # columns of sparse rows that may be filled in


class Subspace(ABC):
    """Orthonormal directions v_1..v_k from a mean; some may be zero."""

    @abstractmethod
    def scores(self, Z: Points) -> Array:
        """Return v_j'(phi(z) - mean): (len(Z), k)."""

    @abstractmethod
    def squared_distances(self, Z: Points) -> Array:
        """Return the squared distance of phi(z) from the subspace: (len(Z),), never negative."""

    @property
    @abstractmethod
    def total(self) -> float:
        """Return the sum of squared distances of the training points from their mean."""


@dataclass(frozen=True, eq=False)
class FeatureSubspace(Subspace):
    """Directions as weights of features.

    Attributes
    ----------
    features : callable
        The feature map.
    mean : (D,) array
        The mean of the features.
    directions : (D, k) array
        Orthonormal columns, or zero ones.
    spread : float
        The sum of squared distances of the training points from their mean.
    """

    features: Callable[[Any], Any]
    mean: Array
    directions: Array
    spread: float

    def scores(self, Z: Points) -> Array:
        """Project features less their mean."""
        return over_features(self._projected, self.features, Z, len(self.mean))

    def squared_distances(self, Z: Points) -> Array:
        """Measure what the projection leaves."""
        return over_features(self._left, self.features, Z, len(self.mean), _ARRAYS)

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread

    def _projected(self, F: Any) -> Array:
        if is_sparse(F):
            return np.asarray(F @ self.directions - self.mean @ self.directions)
        return np.asarray((F - self.mean) @ self.directions)

    def _left(self, F: Any) -> Array:
        if is_sparse(F):
            return left_of(_from_mean(F, self.mean), self._projected(F))
        centred = F - self.mean
        left = centred - (centred @ self.directions) @ self.directions.T
        return np.asarray(np.einsum("ij,ij->i", left, left))


@dataclass(frozen=True, eq=False)
class PointSubspace(Subspace):
    """Directions as coefficients of training points.

    Attributes
    ----------
    source : Source
        The kernel and the training points.
    coef : (n, k) array
        Coefficients; each column sums to zero.
    weights : (n,) array
        How often each point counts.
    """

    source: Source
    coef: Array
    weights: Array

    @cached_property
    def shares(self) -> Array:
        """The weight of each point in the mean."""
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def centre(self) -> Array:
        """The mean of all functions over the training points; of the mean function last."""
        table = np.column_stack([self.coef, self.shares])
        return np.asarray(self.shares @ (exact(self.source) @ table))

    def scores(self, Z: Points) -> Array:
        """Evaluate without storing K(Z, points)."""
        pairs = self._pairs(Z)
        return np.asarray(pairs @ self.coef - self.centre[:-1])

    def squared_distances(self, Z: Points) -> Array:
        """Return k(z, z) centred, less the squared scores."""
        values = np.asarray(self._pairs(Z) @ np.column_stack([self.coef, self.shares]))
        own = Source(self.source.expression, Z).diag()
        with np.errstate(over="ignore", invalid="ignore"):
            squared = own - 2.0 * values[:, -1] + self.centre[-1]
            return left_of(squared, values[:, :-1] - self.centre[:-1])

    @property
    def total(self) -> float:
        """Return the trace of the centred, weighted kernel matrix."""
        own = self.source.diag()
        return float(self.weights @ own - self.weights.sum() * self.centre[-1])

    def _pairs(self, Z: Points) -> Any:
        # in float64 whatever the rows are: coefficients may be large
        return self.source.in_float64().cross(Z)


@dataclass(frozen=True, eq=False)
class MatrixSubspace(Subspace):
    """Directions as coefficients of the columns of matrices to come.

    Attributes
    ----------
    expansion : MatrixExpansion
        The scores.
    spread : float
        The trace of the centred, weighted kernel matrix.
    """

    expansion: MatrixExpansion
    spread: float

    def scores(self, Z: Points) -> Array:
        """Multiply the matrix of new points against training points."""
        return self.expansion(Z)

    def squared_distances(self, Z: Points) -> Array:
        """Refuse: k(z, z) is not in the matrix."""
        raise ValueError(
            "the distance of new rows from the subspace needs k(z, z), which a precomputed matrix "
            f"of {row_count(Z)} new rows against training rows does not hold; pass a kernel and "
            "rows instead"
        )

    @property
    def total(self) -> float:
        """Return the spread of the training points."""
        return self.spread


def _from_mean(F: Any, mean: Array) -> Array:
    """Return |f - mean|^2 of sparse rows; columns of large mean, which cancel, are filled in."""
    heavy = np.argsort(-np.abs(mean), kind="stable")[:HEAVY]
    near = F[:, heavy].toarray() - mean[heavy]
    rest = np.delete(np.arange(len(mean)), heavy)
    F, mean = F[:, rest], mean[rest]
    own = np.asarray(F.multiply(F).sum(axis=1)).ravel()
    return np.asarray(np.square(near).sum(axis=1) + own - 2.0 * (F @ mean) + mean @ mean)


def left_of(squared: Array, scores: Array) -> Array:
    """Return squared lengths less the squared scores, never negative."""
    return np.asarray(np.maximum(squared - np.einsum("ij,ij->i", scores, scores), 0.0))
