"""Clustering problems: k-means partition, balanced partition, and minimum cut of a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_array

from mercer.array_types import Array, Points
from mercer.expression import Expression
from mercer.gram import (
    CachedGram,
    DenseGram,
    FactoredGram,
    Gram,
    LazyGram,
    PartGram,
    PrecomputedGram,
    SparseGram,
    StreamedGram,
    exact,
)
from mercer.gram.centering import CenteredFeatures, about
from mercer.gram.factored import features_of
from mercer.kernels.features import feature_map
from mercer.machines.clustering.distances import FeatureMeans, feature_means, squared_distances
from mercer.resources import within_budget
from mercer.rows.chunks import chunked
from mercer.rows.points import is_objects, is_sparse, to_dense

# --- partition -----------------------------------------------------------------------------------
#
# Which of k groups is each point in? K-means: every point near the mean of its group.

_ROUNDING = 1e-12  # of the trace
_FULL = 0.5  # share of nonzeros from which sparse features are written out
_MIDDLE_ROWS = 255  # whose medians are as far from those of all as 8 % of the scatter
_FAR = 1e-4  # share of the trace that is scatter: below, sparse features are written out, too


@dataclass(frozen=True, eq=False)
class Clusters:
    """An answer to a `Partition`.

    Attributes
    ----------
    labels : (n,) int array
        The cluster of each point, from 0.
    traces : (starts, steps) array or None
        The objective of every start after every step, as the solver kept it; the last value of a
        start is repeated to the end of its row.
    """

    labels: Array
    traces: Array | None = None


@dataclass(frozen=True, eq=False)
class Partition:
    """K-means in feature space.

    Minimises sum_i w_i |phi(x_i) - m_c(i)|^2 over the clusters c(i) of the points, m_c the weighted
    mean of cluster c. With Z the (n, k) indicator of clusters, S = diag(w) and
    L = diag(1 / (weight of each cluster)), this is tr SK - tr(L^1/2 Z'SKSZ L^1/2).

    Attributes
    ----------
    gram : Gram
        K.
    count : int
        How many clusters, k; none of them empty.
    weights : (n,) array
        Positive weights w of the points.
    """

    gram: Gram
    count: int
    weights: Array

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        if not 1 <= self.count <= n:
            raise ValueError(
                f"Partition: count={self.count} must be at least 1 and at most the {n} points"
            )
        if self.weights.shape != (n,) or not (self.weights > 0).all():
            raise ValueError(f"Partition: weights must be {n} positive numbers")

    def indicator(self, labels: Array) -> Array:
        """Return S Z: the weight of each point in the column of its cluster."""
        columns = np.zeros((len(labels), self.count))
        columns[np.arange(len(labels)), labels] = self.weights
        return columns

    def feature_sums(self, labels: Array) -> Array:
        """Return Z'S F, the weighted sum of the features of each cluster: (k, D)."""
        F, labels = self.gram.factor, labels.astype(np.int32)

        def chunk(rows: slice) -> Array:
            Z = self._indicator_of(rows, labels)
            # by rows of F in their order where these are dense
            return np.asarray(to_dense((Z.T.tocsr() if is_sparse(F) else Z.T) @ F[rows]))

        n = len(labels)
        if is_sparse(F):
            return chunk(slice(0, n))
        return np.asarray(sum(chunked(chunk, n), start=np.zeros((self.count, F.shape[1]))))

    def _indicator_of(self, rows: slice, labels: Array) -> csr_array:
        """Return S Z of some points, sparse."""
        ends = np.arange(rows.stop - rows.start + 1, dtype=np.int32)
        entries = (self.weights[rows], labels[rows], ends)
        return csr_array(entries, shape=(len(ends) - 1, self.count))

    def feature_means(self, labels: Array) -> FeatureMeans:
        """Return the means of clusters in the space of the features, where there are features."""
        sums = self.feature_sums(labels)
        return feature_means(self.gram.factor, labels, self.weights, sums)

    def cluster_weights(self, labels: Array) -> Array:
        """Return the total weight of each cluster."""
        return np.bincount(labels, self.weights, self.count)

    def within(self, labels: Array) -> Array:
        """Return sum_ij w_i w_j k(x_i, x_j) over the pairs inside each cluster, in float64.

        Evaluated anew from the points; other pairs are not looked at where K is not data itself.
        """
        if not isinstance(self.gram, DenseGram | CachedGram | LazyGram):
            columns = self.indicator(labels)
            return np.asarray((columns * (exact(self.gram) @ columns)).sum(axis=0))
        sums = np.zeros(self.count)
        for c in range(self.count):
            members = np.flatnonzero(labels == c)
            if len(members):
                w = self.weights[members]
                sums[c] = w @ (exact(PartGram(self.gram, members)) @ w)
        return sums

    def objective(self, labels: Array, within: Array | None = None) -> float:
        """Return the objective of a partition, in float64; `within` if that is known already.

        By distances from the means where there are features.
        """
        if self.gram.factor is not None:
            return self.feature_means(labels).objective
        W = self.cluster_weights(labels)
        within = self.within(labels) if within is None else within
        pulled = within[W > 0] / W[W > 0]
        return self.above_rounding(float(self.weights @ self.gram.diag() - pulled.sum()))

    def above_rounding(self, objective: float) -> float:
        """Return an objective without what only rounding can have put below zero.

        Of a matrix that is not positive semidefinite it is negative for good, and said to be.
        """
        least = -_ROUNDING * float(self.weights @ np.abs(self.gram.diag()))
        return objective if objective < least and not self.gram.valid else max(objective, 0.0)


def about_the_middle(gram: Gram, weights: Array) -> Gram:
    """Move the origin of features: means do not care, and distances keep their digits near it.

    The origin is the median of some rows in columns far from zero: a few rows do not move it.
    Sparse features stay as they are, unless they are full anyway, or the mean outweighs the scatter
    and there is room to write them out.
    """
    if not isinstance(gram, FactoredGram) or isinstance(gram.features, CenteredFeatures):
        return gram
    if isinstance(gram, StreamedGram) and gram.written is None:
        return about(gram, _middle(gram.sampled, weights))
    if is_sparse(gram.placed):
        n, d = gram.factor.shape
        full = gram.factor.nnz >= _FULL * n * d
        if not (full or scatter_share(gram, weights) < _FAR) or not within_budget(4 * 8 * n * d):
            return gram
    return _less_middle(gram.features, to_dense(gram.factor), weights)


def wide_features(expression: Expression, X: Points, weights: Array) -> FactoredGram | None:
    """Return dense features about their middle that are no more than X has; None for others.

    They may be more than there are samples: products of samples far from the origin tell nothing
    of their distances, but those of features less their middle do.
    """
    if is_objects(X) or not isinstance(X, np.ndarray) or not within_budget(4 * 8 * X.size):
        return None
    features = feature_map(expression, X.shape[1])
    if features is None or features.dimension > X.shape[1] + 1:
        return None
    return _less_middle(features, features_of(features, X), weights)


def _less_middle(features: Any, F: Array, weights: Array) -> FactoredGram:
    origin = _middle(lambda rows: F[rows], weights)
    with np.errstate(over="ignore", invalid="ignore"):  # judged by `refuse_overflow`
        return FactoredGram.of(CenteredFeatures(features, origin), F - origin)


def _middle(sampled: Callable[[Array], Array], weights: Array) -> Array:
    """Return medians of the features of some rows, drawn by weight, where it helps; else zero.

    It helps where most rows are nearer to the median than half of it. They then move without
    rounding (Sterbenz).
    """
    heights = np.cumsum(weights)
    few = np.searchsorted(heights, heights[-1] * (np.arange(_MIDDLE_ROWS) + 0.5) / _MIDDLE_ROWS)
    ordered = np.sort(sampled(np.minimum(few, len(weights) - 1)), axis=0)
    low, middle, high = (ordered[int(share * (_MIDDLE_ROWS - 1))] for share in (0.1, 0.5, 0.9))
    return np.where(2.0 * np.maximum(middle - low, high - middle) < np.abs(middle), middle, 0.0)


def scatter_share(gram: Gram, weights: Array) -> float:
    """Return the share of the trace that is scatter about the mean: what distances are made of."""
    share = weights / weights.sum()
    trace = float(share @ gram.diag())
    return 1.0 - float(share @ (gram @ share)) / trace if trace > 0 else 0.0


# --- balanced ------------------------------------------------------------------------------------
#
# K-means whose clusters have equal sizes, or sizes that differ by one.


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
        if self.gram.factor is not None:
            return squared_distances(self.gram.factor, self.feature_means(labels).means).T
        W = self.cluster_weights(labels)
        within = np.bincount(labels, sums[np.arange(len(labels)), labels], self.count)
        D = self.gram.diag()[:, None] - 2.0 * sums / W + within / W**2
        return np.asarray(np.maximum(D, 0.0))


# --- cuts ----------------------------------------------------------------------------------------
#
# Cuts of a graph: what they cost, and the question for the cheapest one.


@dataclass(frozen=True)
class CutValues:
    """What a division of a graph cuts.

    Attributes
    ----------
    cut : float
        Total weight of the edges between different clusters, each counted once.
    ratio : float
        Ratio cut: for each cluster, the weight that leaves it over the number of its points.
    normalized : float
        Normalised cut: for each cluster, the weight that leaves it over the sum of its degrees.
    """

    cut: float
    ratio: float
    normalized: float


def affinity_gram(affinity: Any) -> Gram:
    """Return a Gram for an affinity: a Gram as it is, a matrix, dense or sparse, checked."""
    if isinstance(affinity, Gram):
        return affinity
    if sparse.issparse(affinity):
        return SparseGram(affinity)
    return PrecomputedGram(np.asarray(affinity))


def cut_values(affinity: Any, labels: npt.ArrayLike) -> CutValues:
    """Return the cut, ratio cut and normalised cut of a division.

    Parameters
    ----------
    affinity : Gram, (n, n) array or sparse matrix
        Weights of the edges: symmetric, not negative. The diagonal counts in degrees only.
    labels : (n,) array-like
        The cluster of each point.

    Returns
    -------
    CutValues
        All three.

    Examples
    --------
    >>> cut_values([[0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [0.0, 1.0, 0.0]], [0, 0, 1])
    CutValues(cut=1.0, ratio=1.5, normalized=1.2)
    """
    gram = affinity_gram(affinity)
    _, labels = np.unique(np.asarray(labels), return_inverse=True)
    if labels.shape != (gram.shape[0],):
        raise ValueError(f"cut_values: {gram.shape[0]} points, but labels of shape {labels.shape}")
    members = np.zeros((gram.shape[0], int(labels.max(initial=-1)) + 1))
    members[np.arange(len(labels)), labels] = 1.0
    between = members.T @ np.asarray(gram @ members, dtype=np.float64)
    volume = between.sum(axis=1)
    leaving = np.maximum(volume - between.diagonal(), 0.0)
    share = np.divide(leaving, volume, out=np.zeros_like(leaving), where=volume > 0)
    return CutValues(
        float(leaving.sum() / 2),
        float((leaving / members.sum(axis=0)).sum()),
        float(share.sum()),
    )


@dataclass(frozen=True, eq=False)
class Bipartition:
    """An answer to a `MinimumCut`.

    Attributes
    ----------
    labels : (n,) int array
        1 on the side of the source (for a global cut, of point 0), else 0.
    value : float
        The weight of the cut.
    flow : float
        A flow of this value exists between every pair that had to be separated, so no cut is
        cheaper.
    """

    labels: Array
    value: float
    flow: float


@dataclass(frozen=True, eq=False)
class MinimumCut:
    """The division in two that cuts the least weight.

    Attributes
    ----------
    affinity : Gram
        Weights of the edges, not negative.
    source, sink : int or None
        Points that must be separated; None for the cheapest division whatever it separates.
    """

    affinity: Gram
    source: int | None = None
    sink: int | None = None

    def __post_init__(self) -> None:
        n = self.affinity.shape[0]
        if n < 2:
            raise ValueError("MinimumCut: there is nothing to divide in fewer than two points")
        ends = (self.source, self.sink)
        if not all(p is None or isinstance(p, Integral) for p in ends):
            raise ValueError(f"MinimumCut: source and sink {ends} must be whole numbers, or None")
        if (self.source is None) != (self.sink is None):
            raise ValueError("MinimumCut: give both source and sink, or neither")
        if self.source is not None and (
            self.source == self.sink or not all(0 <= int(p) < n for p in ends if p is not None)
        ):
            raise ValueError(f"MinimumCut: source and sink {ends} must be two points below {n}")
