"""From places to clusters: by sign, by k-means, by components; and the same for new points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram.build import feature_gram
from mercer.problems import Partition
from mercer.solvers import Lloyd, Status, solve


class Grouping(ABC):
    """A division of the space of places into clusters."""

    @abstractmethod
    def __call__(self, places: Array) -> Array:
        """Return the cluster of each place."""


@dataclass(frozen=True, eq=False)
class BySign(Grouping):
    """Two clusters, by the sign of one coordinate."""

    column: int

    def __call__(self, places: Array) -> Array:
        """Return 1 where the coordinate is positive, else 0."""
        return (places[:, self.column] > 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ByCentre(Grouping):
    """The nearest centre, among those of the component that a point belongs to.

    Attributes
    ----------
    centres : (k, d) array
        Mean place of each cluster.
    owner : (k,) int array
        The component of each cluster.
    level : (c,) array
        The first c coordinates tell components apart: on its own component, coordinate j is
        level[j], elsewhere 0.
    """

    centres: Array
    owner: Array
    level: Array

    def __call__(self, places: Array) -> Array:
        """Find the component, then the centre."""
        squared = (
            np.square(self.centres).sum(axis=1)[None, :] - 2.0 * places @ self.centres.T
        )  # the place's own length changes no comparison
        if len(self.level) > 1:
            component = np.argmax(places[:, : len(self.level)] / self.level, axis=1)
            squared[component[:, None] != self.owner[None, :]] = np.inf
        return np.asarray(np.argmin(squared, axis=1), dtype=np.int64)


def by_means(
    places: Array, component: Array, shares: Array, level: Array, n_init: int, seed: int
) -> tuple[Array, ByCentre, Status]:
    """Divide each component into its share of clusters by k-means.

    Parameters
    ----------
    places : (n, d) array
        Where the points are; a component has coordinates of its own, zero for the others.
    component : (n,) int array
        The component of each point.
    shares : (c,) int array
        How many clusters each component is divided into.
    level : (c,) array
        See `ByCentre`.
    n_init : int
        Restarts of k-means.
    seed : int
        Seed of their starts.

    Returns
    -------
    labels : (n,) int array
        Clusters are numbered by component, within one by their first point.
    grouping : ByCentre
        The same for new places.
    status : Status
        How k-means ended, the first ending that is not the wished one.
    """
    labels = np.empty(len(places), dtype=np.int64)
    owner = np.repeat(np.arange(len(shares)), shares)
    start, status = 0, Status.SOLVED
    for j, share in enumerate(shares):
        rows = np.flatnonzero(component == j)
        parted, ended = _means(places[rows], int(share), n_init, seed)
        labels[rows], status = start + parted, status if ended.ok else ended
        start += int(share)
    used, labels = np.unique(labels, return_inverse=True)
    sizes = np.bincount(labels)
    centres = np.stack([np.bincount(labels, column) / sizes for column in places.T], axis=1)
    return labels, ByCentre(centres, owner[used], level), status


def _means(rows: Array, count: int, n_init: int, seed: int) -> tuple[Array, Status]:
    if count == 1 or len(rows) == 0:
        return np.zeros(len(rows), dtype=np.int64), Status.SOLVED
    if count >= len(rows):
        return np.arange(len(rows)), Status.SOLVED
    problem = Partition(feature_gram(_as_they_are, rows), count, np.ones(len(rows)))
    solution = solve(problem, Lloyd(starts=n_init, random_state=seed))
    found = solution.value.labels
    _, first = np.unique(found, return_index=True)
    number = np.empty(int(found.max()) + 1, dtype=np.int64)
    number[found[np.sort(first)]] = np.arange(len(first))
    return np.asarray(number[found]), solution.status


def _as_they_are(rows: Array) -> Array:
    return rows
