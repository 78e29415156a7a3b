"""Means of clusters in feature space, and how far new points are from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.array_types import Array, Points
from mercer.expression import Expression, bind_columns
from mercer.gram import Expansion, Gram, Source
from mercer.gram.storage.factored import over_features, squared_lengths
from mercer.kernels import Kernel
from mercer.problems import Partition


@dataclass(frozen=True, eq=False)
class KernelDiagonal:
    """k(z, z) of new points.

    Attributes
    ----------
    expression : Expression
        The kernel.
    """

    expression: Expression

    def __call__(self, Z: Points) -> Array:
        """Evaluate the diagonal."""
        return Source(self.expression, Z).diag()


@dataclass(frozen=True, eq=False)
class FeatureLengths:
    """|phi(z)|^2 of new points, by their features.

    Attributes
    ----------
    features : callable
        phi.
    """

    features: Any

    def __call__(self, Z: Points) -> Array:
        """Add up squares."""
        return over_features(squared_lengths, self.features, Z)


@dataclass(frozen=True, eq=False)
class Means:
    """Means m_c = sum_i w_i phi(x_i) / W_c over the points of each cluster.

    Attributes
    ----------
    closeness : Expansion
        m_c'phi(z) - |m_c|^2 / 2 for every cluster: the larger, the nearer.
    own : OwnProducts, OwnLengths or None
        |phi(z)|^2; None where only a matrix of the points was ever given.
    objective : float
        Weighted sum of squared distances of the points to their means.
    """

    closeness: Expansion
    own: KernelDiagonal | FeatureLengths | None
    objective: float


def means_of(problem: Partition, labels: Array, kernel: Kernel, names: list[str] | None) -> Means:
    """Collect the means of a partition."""
    W = problem.cluster_weights(labels)
    sums = None if problem.gram.factor is None else problem.feature_sums(labels)
    within = problem.within(labels, sums)
    closeness = problem.expand_means(labels, sums).plus(-within / W**2 / 2)
    return Means(closeness, _own(problem.gram, kernel, names), problem.objective(labels, within))


def _own(
    gram: Gram, kernel: Kernel, names: list[str] | None
) -> KernelDiagonal | FeatureLengths | None:
    if gram.factor is not None:
        return FeatureLengths(gram.features)
    if gram.source is None:
        return None
    return KernelDiagonal(bind_columns(kernel.expression(), names))
