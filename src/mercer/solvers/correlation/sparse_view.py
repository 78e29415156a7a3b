"""A view with sparse features of which there are few enough to factor F'F: H = F A^-1 F'.

With A = F'F + penalty, (F F' + penalty)^-1 = (I - F A^-1 F') / penalty. Centring is never written
out: the mean of the features and the weights of the rows are applied on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import CenteredGram, FactoredGram, Gram, ScaledGram
from mercer.points import is_sparse, to_dense
from mercer.solvers.correlation.views import View

MOST = 8000  # features: up to here F'F is factored in seconds


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """diag(scale) (F - 1 mean'), never written out.

    Attributes
    ----------
    factor : (n, D) sparse array
        F.
    mean : (D,) array
        What is taken off every row.
    scale : (n,) array
        What every row is multiplied by afterwards.
    """

    factor: Any
    mean: Array
    scale: Array

    def times(self, V: Array) -> Array:
        """Multiply by V (D, b)."""
        return np.asarray(self.scale[:, None] * (self.factor @ V - self.mean @ V))

    def transposed_times(self, V: Array) -> Array:
        """Multiply the transpose by V (n, b)."""
        scaled = self.scale[:, None] * V
        return np.asarray(self.factor.T @ scaled - np.outer(self.mean, scaled.sum(axis=0)))

    def squared(self) -> Array:
        """Return the product of the transpose with itself: (D, D)."""
        weights = self.scale**2
        squares = to_dense(self.factor.T @ self.factor.multiply(weights[:, None]))
        total = np.outer(self.factor.T @ weights, self.mean)
        squares -= total + total.T
        squares += weights.sum() * np.outer(self.mean, self.mean)
        return squares


def sparse_features(gram: Gram) -> SparseFeatures | None:
    """Return the sparse features under the wrappers of a Gram; None where there are none."""
    scale: Any = 1.0
    if isinstance(gram, ScaledGram):
        scale, gram = gram.scale, gram.base
    if not isinstance(gram, CenteredGram) or not isinstance(gram.base, FactoredGram):
        return None
    F = gram.base.factor
    if not is_sparse(F):
        return None
    return SparseFeatures(F, np.asarray(F.T @ gram.weights), np.broadcast_to(scale, F.shape[:1]))


@dataclass(frozen=True, eq=False)
class SparseView(View):
    """H by the inverse of F'F + penalty.

    Attributes
    ----------
    features : SparseFeatures
        F, centred.
    inverse : (D, D) array
        (F'F + penalty)^-1.
    penalty : float
        The penalty.
    """

    features: SparseFeatures
    inverse: Array
    penalty: float
    left: float = 0.0

    @property
    def n(self) -> int:
        """Count the rows."""
        return int(self.features.factor.shape[0])

    @property
    def rank(self) -> None:
        """Nobody counted."""

    def shrink(self, V: Array) -> Array:
        """Multiply by F A^-1 F'."""
        return self.features.times(self.inverse @ self.features.transposed_times(V))

    def coef(self, P: Array) -> Array:
        """Multiply by (I - H) / penalty."""
        return np.asarray((P - self.shrink(P)) / self.penalty)
