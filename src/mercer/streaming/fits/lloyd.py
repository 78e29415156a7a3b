"""Lloyd's steps over blocks, in the space of features: labels stay with their block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, Kept
from mercer.problems.blocks import FeatureRows, counted, feature_pieces
from mercer.solvers import Status, Watch

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_ROUNDINGS = 4  # of the scatter: what objectives are known to
_GAIN = 1e-7  # of the objective: a tenth of what certificates ask
_FEW = 0.99  # of the largest gain: what rows must gain to move where all that gain do not


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over the rows of clusters.

    Attributes
    ----------
    W : (k,) array
        Weights of the clusters.
    sums : (D, k) array
        Sums of their features about a point.
    squares : float
        Sum of squared lengths of all features about it.
    moved : int
        Rows that changed clusters.
    most : float
        The most that the move of a single row would gain, where that was asked.
    """

    W: Array
    sums: Array
    squares: float
    moved: int = 0
    most: float = 0.0

    def __add__(self, other: ClusterSums) -> ClusterSums:
        return ClusterSums(
            self.W + other.W, self.sums + other.sums, self.squares + other.squares,
            self.moved + other.moved, max(self.most, other.most),
        )  # fmt: skip

    @property
    def objective(self) -> float:
        """The sum of squared distances to the means."""
        filled = self.W > 0
        between = np.square(self.sums[:, filled]).sum(axis=0) / self.W[filled]
        return max(self.squares - float(between.sum()), 0.0)

    @property
    def means(self) -> Array:
        """Means of the clusters (D, k), about the point; zero for empty ones."""
        return np.asarray(self.sums / np.where(self.W > 0, self.W, 1.0))


@dataclass(frozen=True, eq=False)
class Walk:
    """Where the steps ended: labels with the blocks, sums, the point, objectives, steps, status."""

    labels: Kept
    sums: ClusterSums
    far: Far
    objectives: list[float]
    status: Status

    @property
    def rounding(self) -> float:
        """What objectives are known to."""
        return _ROUNDINGS * _EPS * max(self.sums.squares, 0.0)


@dataclass(frozen=True, eq=False)
class Far:
    """A sample of features (rows, D) about a point: what empty clusters are refilled from."""

    point: Array
    features: Array


def started(F: Array, s: Array, labels: Array, k: int) -> tuple[Array, Far]:
    """Return the means of a partition of sampled features F (rows, D), about their own mean."""
    point = s @ F / s.sum()
    F = F - point
    table = np.zeros((len(F), k))
    table[np.arange(len(F)), labels] = s
    return np.asarray(F.T @ table / np.maximum(table.sum(axis=0), _TINY)), Far(point, F)


def nearest_sums(
    block: Block, before: Array, features: Any, point: Array, means: Array
) -> tuple[Array, ClusterSums]:
    """Put rows to their nearest means: one of Lloyd's steps."""
    block = counted(block)
    s, k = block.counts, means.shape[1]
    labels = np.empty(len(block), dtype=np.int64)
    sums = ClusterSums(np.zeros(k), np.zeros(means.shape), 0.0)
    half = 0.5 * np.square(means).sum(axis=0)
    for rows, F in feature_pieces(block, features):
        np.subtract(F, point, out=F)
        labels[rows] = (half - F @ means).argmin(axis=1)
        sums = sums + sums_of(F, labels[rows], s[rows], k)
    moved = int(np.count_nonzero(labels != before))
    return labels, sums + replace(_none(means), moved=moved)


def better_sums(
    block: Block, before: Array, features: Any, point: Array, means: Array, W: Array, least: float
) -> tuple[Array, ClusterSums]:
    """Move rows that gain more than `least` by it, the means following (Hartigan)."""
    block = counted(block)
    s, k = block.counts, means.shape[1]
    labels, most = before.copy(), 0.0
    sums = _none(means)
    half = np.square(means).sum(axis=0)
    for rows, F in feature_pieces(block, features):
        np.subtract(F, point, out=F)
        here, w, every = before[rows], s[rows], np.arange(len(F))
        D = np.maximum(np.einsum("ij,ij->i", F, F)[:, None] - 2.0 * F @ means + half, 0.0)
        rest = W[here] - w
        factor = np.where(rest > 0, W[here] / np.where(rest > 0, rest, 1.0), 0.0)
        leave = w * factor * D[every, here]
        join = w[:, None] * W / (W + w[:, None]) * D
        join[every, here] = np.inf
        chosen = join.argmin(axis=1)
        gain = leave - join[every, chosen]
        labels[rows] = np.where(gain > least, chosen, here)
        most = max(most, float(gain.max(initial=0.0)))
        sums = sums + sums_of(F, labels[rows], w, k)
    moved = int(np.count_nonzero(labels != before))
    return labels, sums + replace(_none(means), moved=moved, most=most)


def _none(means: Array) -> ClusterSums:
    return ClusterSums(np.zeros(means.shape[1]), np.zeros(means.shape), 0.0)


def sums_of(F: Array, labels: Array, s: Array, k: int) -> ClusterSums:
    """Return the sums over clusters of features (rows, D) of weights s."""
    table = np.zeros((len(F), k))
    table[np.arange(len(F)), labels] = s
    own = float(s @ np.einsum("ij,ij->i", F, F))
    return ClusterSums(table.sum(axis=0), F.T @ table, own)


def no_labels(block: Block) -> Array:
    """Begin with all rows in no cluster."""
    return np.full(len(counted(block)), -1)


def walk(
    rows: FeatureRows, means: Array, far: Far, watch: Watch, max_iter: int, refine: bool
) -> Walk:
    """Step until nothing is gained; then let single rows move, if asked.

    The answer is where a further step, or the move of a row, gains less than 1e-7 of the objective.

    Parameters
    ----------
    rows : FeatureRows
        The features.
    means : (D, k) array
        Where to begin, about the point of `far`.
    far : Far
        What empty clusters are refilled from.
    watch : Watch
        The clock.
    max_iter : int
        Steps at most.
    refine : bool
        Whether rows move one by one in the end, the means following.
    """
    blocks, shared = rows.blocks, (rows.features, far.point)
    labels: Kept = blocks.start(no_labels)
    labels, sums = blocks.step(labels, nearest_sums, *shared, means)
    objectives, status = [sums.objective], Status.ITERATION_LIMIT
    least: float | None = None  # None for Lloyd's steps, else what a move of one row must gain
    with watch.keeping():
        for step in range(max_iter):
            if watch.tick(step, objectives[-1]):
                break
            centres = _refilled(sums, far)
            if least is None:
                after, found = blocks.step(labels, nearest_sums, *shared, centres)
            else:
                after, found = blocks.step(labels, better_sums, *shared, centres, sums.W, least)
            rounding = _ROUNDINGS * _EPS * max(sums.squares, 0.0)
            # steps until no row moves at all would be the more, the more rows there are
            small = max(_GAIN * objectives[-1], rounding)
            if found.moved and objectives[-1] - found.objective > small:
                labels, sums, least = after, found, None
                objectives.append(found.objective)
            elif least is None and refine:
                least = rounding
            elif least is not None and found.most > small:
                if least >= _FEW * found.most:  # not even the best ones together
                    status = Status.INACCURATE
                    break
                least = _FEW * found.most  # made together, moves hindered one another
            else:
                status = Status.SOLVED
                break
    return Walk(labels, sums, far, objectives, watch.stopped or status)


def _refilled(sums: ClusterSums, far: Far) -> Array:
    """Return means; those of empty clusters are put to the rows farthest from the others."""
    means = sums.means
    for c in np.flatnonzero(sums.W <= 0).tolist():
        filled = np.delete(np.arange(len(sums.W)), c)
        D = np.square(means[:, filled]).sum(axis=0) - 2.0 * far.features @ means[:, filled]
        D = D.min(axis=1) + np.square(far.features).sum(axis=1)
        means[:, c] = far.features[int(D.argmax())]
    return means
