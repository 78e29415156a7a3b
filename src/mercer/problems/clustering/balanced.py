"""K-means whose clusters have equal sizes, or sizes that differ by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems.clustering.partition import Partition


@dataclass(frozen=True, eq=False)
class BalancedPartition(Partition):
    """K-means under the condition that every cluster has n / k points, rounded up or down.

    With the (n, k) indicator Z of the clusters this is Z'1 = (n / k) 1, which with Z 1 = 1 makes
    Z Z' a multiple of a doubly stochastic matrix. Points count once each: the weights are ones.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.weights != 1.0).any():
            raise ValueError("BalancedPartition: points count once each; repeat those of weight 2")

    @property
    def sizes(self) -> tuple[int, int]:
        """The smallest size of a cluster, and how many clusters have one point more."""
        return divmod(len(self.weights), self.count)

    def distances(self, labels: Array, sums: Array) -> Array:
        """Return squared distances of the points from the means: (n, k).

        Parameters
        ----------
        labels : (n,) int array
            The cluster of each point; none may be empty.
        sums : (n, k) array
            K Z: sums of the rows of K over each cluster.
        """
        W = self.cluster_weights(labels)
        within = np.bincount(labels, sums[np.arange(len(labels)), labels], self.count)
        D = self.gram.diag()[:, None] - 2.0 * sums / W + within / W**2
        return np.asarray(np.maximum(D, 0.0))
