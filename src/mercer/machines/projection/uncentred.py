"""Principal components about the origin: nothing is taken off rows, and energy is what they have.

The matrix is S^1/2 K S^1/2, its trace the energy sum_i s_i k(x_i, x_i): squared distances from the
origin instead of the mean. What `components.py` has for rows less their mean is here without.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, scaled
from mercer.gram.storage.precomputed import MatrixExpansion
from mercer.machines.projection.components import Centred, orthonormal
from mercer.machines.projection.subspace import (
    FeatureSubspace,
    MatrixSubspace,
    PointSubspace,
    Subspace,
)
from mercer.points import is_sparse, to_dense
from mercer.problems import Eigenproblem


class Uncentred(Centred):
    """The question of PCA without centring."""

    called = "kernel matrix"
    nothing = "the rows are zero"

    @property
    def most(self) -> int:
        """Return the largest number of components that there can be."""
        return max(1, min(self.gram.shape[0], self.gram.rank))

    @staticmethod
    def pairs(gram: Gram, weights: Array, count: int) -> Eigenproblem:
        """Ask for the largest pairs of the weighted Gram."""
        if (weights == 1).all():
            return Eigenproblem(gram, count)
        return Eigenproblem(scaled(gram, np.sqrt(weights)), count)

    def variances(self, eigenvalues: Array) -> Array:
        """Return mean squares of scores."""
        return np.asarray(eigenvalues / float(self.weights.sum()))

    def subspace(self, coef: Array, rank: int) -> Subspace:
        """Return what scores new points."""
        gram, weights = self.gram, self.weights
        if gram.factor is not None:
            return self.feature_subspace(gram.features, gram.factor, coef, rank)
        if gram.source is None:  # a given matrix
            expansion = gram.expand(coef)
            assert isinstance(expansion, MatrixExpansion)
            return MatrixSubspace(expansion, float(weights @ gram.diag()))
        return OriginSubspace(gram.source, coef, weights)

    def feature_subspace(self, features: Any, F: Any, coef: Array, rank: int) -> FeatureSubspace:
        """Collapse coefficients to orthonormal directions among the features."""
        directions = orthonormal(to_dense(F.T @ coef[:, :rank]), coef.shape[1])
        squares = F.multiply(F).sum(axis=1) if is_sparse(F) else np.square(F).sum(axis=1)
        energy = float(self.weights @ np.asarray(squares).ravel())
        return FeatureSubspace(features, np.zeros(F.shape[1]), directions, energy)


@dataclass(frozen=True, eq=False)
class OriginSubspace(PointSubspace):
    """Directions as coefficients of training points, from the origin of feature space."""

    @cached_property
    def shares(self) -> Array:
        """The weight of each point in what is taken off: none."""
        return np.zeros(len(self.weights))

    @cached_property
    def centre(self) -> Array:
        """What is taken off all functions: nothing."""
        return np.zeros(self.coef.shape[1] + 1)
