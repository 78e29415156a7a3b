"""Clusters of rows that hardly touch each other: box programmes solved apart, as a start together.

K between rows of different clusters of K-means in feature space is small beside K within. So the
programmes of the clusters, each with a small K of its own, find most of what the programme of all
rows has in use and at its bounds (Hsieh, Si and Dhillon 2014, A divide-and-conquer solver for
kernel support vector machines). Where the sums of all are zero those of each cluster are, too: the
answers side by side are feasible as they are.

K times these answers is then needed for all rows, once. From the answer on a sample the rows in use
come to be known set by set: so clusters are the better start where many rows are in use, and where
there are clusters. Both are told by shares, which no unit of K or cost changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mercer.array_types import Array
from mercer.gram import DenseGram, Source
from mercer.points import take
from mercer.problems import Partition
from mercer.resources import rows_at_once
from mercer.row_chunks import slices
from mercer.solvers.base import Watch
from mercer.solvers.clustering.lloyd import Lloyd
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.some_variables import among

# Of a small sample in use, at least: with fewer the sets from a sample are soon done. Seconds
# without clusters and with them, and the share: shuttle, 43500 rows, C = 10, 0.09 and 0.27 (0.07);
# with one label in eight turned over 1.8 and 2.3 (0.37); covertype, 40000 rows, C = 1000, 10.1 and
# 7.6 (0.53).
LEAST_USED = 0.45
# Of the scatter of the rows in feature space, at least, between clusters rather than within them.
# Again seconds: covertype, 40000 rows, C = 100, 3.3 and 2.7 (0.61), with half the scale 6.0 and 5.2
# (0.40); kin40k, 36000 rows, C = 10, 3.8 and 7.7 (0.32); normal rows in 50 columns, C = 1, 2.1 and
# 2.9 (0.06).
LEAST_BETWEEN = 0.35

_ROWS = 1280  # of a cluster, on average: fewer leave out more of K, more take more pair steps
_MOST_CLUSTERS = 128
_SEEN = 40  # rows that the mean of a cluster is found from, on average
_STEPS = 20  # of Lloyd: what little they leave to gain does not matter here


def clusters(source: Source, points: Array, largest: int, watch: Watch) -> list[Array] | None:
    """Return points in groups that are near in feature space; None where there are no clusters.

    Means are found on evenly spaced points, always the same; then all go to the nearest. A cluster
    that is too large is cut into evenly spaced points of it.

    Parameters
    ----------
    source : Source
        Kernel and points.
    points : int array
        Which of the points, in order.
    largest : int
        Most points of a group, and to find means from.
    watch : Watch
        Its time limit holds.

    Returns
    -------
    list of int arrays, or None
        The groups, each in order.
    """
    count = min(_MOST_CLUSTERS, len(points) // _ROWS, largest // _SEEN)
    if count < 2:
        return None
    sample = source.only(points[np.linspace(0, len(points) - 1, _SEEN * count).astype(np.int64)])
    problem = Partition(DenseGram(sample), count, np.ones(sample.n))
    left = None if watch.time_limit is None else max(0.0, watch.time_limit - watch.seconds)
    lloyd = Lloyd(starts=1, max_iter=_STEPS, refine=False)
    found = lloyd.run(problem, Watch(time_limit=left)).value.labels
    sizes = problem.cluster_weights(found)
    means = problem.indicator(found) / sizes
    products = means.T @ np.asarray(problem.gram @ means)
    if not _share_between(products, sizes, problem.gram.diag()) >= LEAST_BETWEEN:
        return None
    labels = _nearest(source, points, sample, means, np.diag(products))
    members = (points[labels == c] for c in range(count))
    return [piece for cluster in members for piece in _pieces(cluster, largest)]


def _share_between(products: Array, sizes: Array, diagonal: Array) -> float:
    """Return how much of the scatter lies between clusters, from products of their means."""
    shares = sizes / sizes.sum()
    middle = float(shares @ products @ shares)
    scatter = float(diagonal.mean()) - middle
    return (float(shares @ np.diag(products)) - middle) / scatter if scatter > 0 else 0.0


def _nearest(source: Source, points: Array, sample: Source, means: Array, squared: Array) -> Array:
    """Return which of the means, with coefficients on a sample, is nearest to each point."""
    labels = np.empty(len(points), dtype=np.int64)
    step = rows_at_once(len(squared), len(points), arrays=3)
    for rows in slices(0, len(points), step):
        near = np.asarray(sample.cross(take(source.X, points[rows])) @ means)
        labels[rows] = np.argmax(near - 0.5 * squared, axis=1)
    return labels


def _pieces(points: Array, largest: int) -> Iterator[Array]:
    """Cut points into as few parts of their whole range as have no more than `largest`."""
    count = -(-len(points) // largest)
    return (points[first::count] for first in range(count))


class SideBySide:
    """Answers to the programmes of clusters, put together to answers to those of all rows.

    Parameters
    ----------
    parts : list of BoxState
        The programmes of all rows, at zero.
    before : list of BoxState
        What has been done for each so far: steps are counted on from there.
    seen : (n,) bool array
        Which points the programmes have.

    Attributes
    ----------
    answers : dict of (BoxState, int array)
        For each programme what is found so far, and which variables these are.
    worst : float
        The largest violation by a pair at the start, by which progress is told.
    """

    def __init__(self, parts: list[BoxState], before: list[BoxState], seen: Array) -> None:
        self._parts = dict(enumerate(parts))
        self._points = len(seen)
        self.answers = among(self._parts, seen)
        self.worst = max(float(np.ptp(part.F)) for part in parts)
        for one, known in zip(self.states, before, strict=True):
            one.steps, one.rounds = known.steps, known.rounds

    @property
    def states(self) -> list[BoxState]:
        """Return what is found so far for each programme."""
        return [one for one, _ in self.answers.values()]

    def apart(self, points: Array) -> dict[int, tuple[BoxState, Array]]:
        """Return the programmes in the variables at some points, where there are any to move."""
        chosen = np.zeros(self._points, dtype=bool)
        chosen[points] = True
        some = among(self._parts, chosen)
        for k, (one, _) in some.items():
            found, _ = self.answers[k]
            one.violation, one.steps, one.rounds = self.worst, found.steps, found.rounds
        return {k: (one, rows) for k, (one, rows) in some.items() if len(rows) > 1}

    def take(self, apart: dict[int, tuple[BoxState, Array]]) -> None:
        """Put answers in the place of their variables."""
        for k, (one, rows) in apart.items():
            found, _ = self.answers[k]
            found.b[rows], found.steps, found.rounds = one.b, one.steps, one.rounds
