"""Squared distances of features from means that keep their digits, and k-means by them.

|x - m|^2 = |x|^2 - 2 x'm + |m|^2 is quick, but its rounding is a share of |x|^2 + |m|^2. Where that
is too large a share of the distance, differences of entries take its place. They round relatively.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.backends.reference.kmeans import filled
from mercer.gram.accurate_products import gamma
from mercer.gram.factored import squared_lengths
from mercer.rows.chunks import chunked, slices
from mercer.rows.points import is_sparse, to_dense

RELATIVE = 1e-11  # relative rounding of squared distances, at most
_HARMLESS = 1e-9  # of an objective: what rounding of products may change in it
_ENTRIES = 1 << 16  # distances that are looked at together: three such arrays stay in the cache
_GAIN = 1e-9  # a move must lower its part of the objective by more than this
_CLOSER = 1e-10  # relative: two distances nearer than that count as equal

# --- distances and means -------------------------------------------------------------------------


def squared_distances(F: Any, M: Array) -> Array:
    """Return |f_i - m_c|^2, relatively to 1e-11 and a few roundings for each feature.

    Products of d numbers round by at most gamma_d of the product of lengths, Higham (3.5), so
    |x|^2 - 2 x'm + |m|^2 rounds by at most gamma_(d + 3) (|x| + |m|)^2.

    Parameters
    ----------
    F : (n, d) array or sparse array
        Features.
    M : (k, d) array
        Means.

    Returns
    -------
    (k, n) array
        The squared distances.

    Examples
    --------
    >>> squared_distances(np.array([[1e8], [1e8 + 1.0]]), np.array([[1e8 + 3.0]]))
    array([[9., 4.]])
    """
    own, level = squared_lengths(F), np.einsum("ij,ij->i", M, M)
    total = level[:, None] + own
    D = np.asarray((F @ M.T).T if is_sparse(F) else M @ F.T)
    D *= -2.0
    D += total
    total *= 2.0 * gamma(F.shape[1] + 3) / RELATIVE
    for c, doubtful in enumerate(~(D > total)):
        rows = np.flatnonzero(doubtful)
        if len(rows):
            D[c, rows] = _by_differences(F, M[c], rows)
    return D


def _by_differences(F: Any, mean: Array, rows: Array) -> Array:
    found = np.empty(len(rows))
    for part in slices(0, len(rows), _rows_of(F.shape[1])):
        apart = to_dense(F[rows[part]]) - mean
        np.einsum("ij,ij->i", apart, apart, out=found[part])
    return found


def _rows_of(width: int) -> int:
    return max(1, _ENTRIES // max(1, width))


def over_rows(work: Callable[[slice], Any], n: int, clusters: int) -> list[Any]:
    """Do work on blocks of rows whose distances from all means stay in the cache, in order."""
    step = max(1, _ENTRIES // max(1, clusters))

    def chunk(rows: slice) -> list[Any]:
        return [work(part) for part in slices(rows.start, rows.stop, step)]

    with one_blas_thread():
        return [found for parts in chunked(chunk, n) for found in parts]


@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means of clusters of features.

    Attributes
    ----------
    means : (k, d) array
        The means; zeros for empty clusters.
    weights : (k,) array
        Weights of the clusters.
    spread : (k,) array
        Weighted sums of squared distances of the members of each cluster from its mean.
    rounding : (k,) array
        Bounds of how far these are from the means of the features as they are given.
    """

    means: Array
    weights: Array
    spread: Array
    rounding: Array

    @property
    def objective(self) -> float:
        """Sum over all clusters."""
        return float(self.spread.sum())


def feature_means(F: Any, labels: Array, weights: Array, sums: Array) -> FeatureMeans:
    """Return the means of clusters, corrected once by the mean of what is left of dense features.

    A mean rounds by gamma_n of the mean length. The correction rounds by gamma_n of the mean
    distance, and the sum of both by one rounding of the mean itself.

    Parameters
    ----------
    F : (n, d) array or sparse array
        Features.
    labels : (n,) int array
        Cluster of each sample.
    weights : (n,) array
        Positive weights.
    sums : (k, d) array
        Weighted sums of the features of each cluster.
    """
    k, n = len(sums), len(labels)
    W = np.bincount(labels, weights, k)
    safe = np.where(W > 0, W, 1.0)
    means = sums / safe[:, None]
    if not is_sparse(F):
        means = means + _mean_rest(F, means, labels, weights) / safe[:, None]

    def own(rows: slice) -> Array:
        D = squared_distances(F[rows], means)
        at = D[labels[rows], np.arange(D.shape[1])]
        return np.bincount(labels[rows], weights[rows] * at, k)

    spread = np.sum(over_rows(own, n, k), axis=0)
    size = np.sqrt(np.einsum("ij,ij->i", means, means))
    eps = float(np.finfo(np.float64).eps)
    added = gamma(n + 4) * np.sqrt(spread / safe)
    if is_sparse(F):
        lengths = np.bincount(labels, weights * np.sqrt(squared_lengths(F)), k)
        added = gamma(n + 4) * lengths / safe
    rounding = np.where(spread > 0, 2.0 * eps * size + added, 0.0)  # members that are their mean
    return FeatureMeans(means, W, spread, rounding)


def _mean_rest(F: Array, means: Array, labels: Array, weights: Array) -> Array:
    """Return weighted sums over clusters of features less the means."""
    k, width = means.shape
    step = _rows_of(width)

    def chunk(rows: slice) -> Array:
        total = np.zeros((k, width))
        for part in slices(rows.start, rows.stop, step):
            here = labels[part]
            share = np.zeros((len(here), k))
            share[np.arange(len(here)), here] = weights[part]
            total += share.T @ (F[part] - means[here])
        return total

    with one_blas_thread():
        return np.asarray(sum(chunked(chunk, len(F)), start=np.zeros((k, width))))


def loses_digits(F: Any, found: FeatureMeans, labels: Array, weights: Array) -> bool:
    """Return whether the rounding of products may matter to an objective.

    A distance that is computed by products is off by at most gamma_(d + 3) (|x| + |m|)^2. Means
    that are farther from the origin than twice |x| are at least half of |m| away, and their
    distances are known relatively.
    """
    size = np.sqrt(squared_lengths(F))
    far = np.sqrt(np.einsum("ij,ij->i", found.means, found.means))[labels]
    lost = 4.0 * gamma(F.shape[1] + 3) * float(weights @ np.square(2.0 * size + far))
    return not lost <= _HARMLESS * found.objective


# --- k-means by these distances ------------------------------------------------------------------


@dataclass(eq=False)
class CarefulDescent:
    """Lloyd's steps and single moves by distances that keep their digits, from given labels.

    For features whose products lose the digits of distances: slower, and right.
    """

    F: Any
    weights: Array
    labels: Array
    sums: Callable[[Array], Array]  # weighted sums of features over the clusters of labels
    refine: bool = True

    def __post_init__(self) -> None:
        self.labels = self.labels.astype(np.intp)
        self.found = self._means(self.labels)
        self.trace = [self.found.objective]

    def run(self, steps: int, tick: Callable[[int, float], Any]) -> bool:
        """Make steps; say whether no step is left that lowers the objective."""
        while len(self.trace) <= steps:
            labels = self._step()
            if labels is None:
                return True
            found = self._means(labels)
            if not found.objective < self.trace[-1]:
                return True  # rounding is all that is left
            self.labels, self.found = labels, found
            self.trace.append(found.objective)
            if tick(len(self.trace) - 1, found.objective):
                return False
        return False

    def _means(self, labels: Array) -> FeatureMeans:
        return feature_means(self.F, labels, self.weights, self.sums(labels))

    def _step(self) -> Array | None:
        """Return the labels after a step: nearest means, or else moves of single samples."""
        k = len(self.found.means)
        looks = over_rows(self._look, len(self.labels), k)
        nearest, own, gain, to = (np.concatenate(part) for part in zip(*looks, strict=True))
        if (nearest != self.labels).any():
            return filled(nearest.copy(), k, lambda: own, self.weights)
        return self._moved(gain, to) if self.refine else None

    def _look(self, rows: slice) -> tuple[Array, Array, Array, Array]:
        """Return nearest means, distances to them, and what the best moves gain and lead to."""
        D, here = squared_distances(self.F[rows], self.found.means), self.labels[rows]
        every, w = np.arange(len(here)), self.weights[rows]
        at, nearest = D[here, every], D.argmin(axis=0)
        nearest = np.where(D[nearest, every] < at * (1.0 - _CLOSER), nearest, here)
        own = D[nearest, every]
        if len(D) < 2:
            return nearest, own, np.zeros(len(here)), here
        W = self.found.weights
        D *= W[:, None] / (W[:, None] + w)
        D[here, every] = np.inf
        to = D.argmin(axis=0)
        rest = W[here] - w
        leave = np.where(rest > 0, W[here] / np.where(rest > 0, rest, 1.0) * at, 0.0)
        return nearest, own, w * (leave * (1.0 - _GAIN) - D[to, every]), to

    def _moved(self, gain: Array, to: Array) -> Array | None:
        """Make the moves that gain most, each cluster in one of them, so that gains add up."""
        alone = np.bincount(self.labels, minlength=len(self.found.means))[self.labels] < 2
        gaining = np.flatnonzero((gain > 0) & ~alone)
        labels, used = self.labels.copy(), np.zeros(len(self.found.means), dtype=bool)
        for i in gaining[np.argsort(-gain[gaining], kind="stable")]:
            ends = [labels[i], to[i]]
            if not used[ends].any():
                used[ends], labels[i] = True, to[i]
        return labels if len(gaining) else None
