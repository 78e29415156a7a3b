"""K-means over blocks: starts, Lloyd steps, copies of rows, fit, and certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines.base.parameters import refuse
from mercer.machines.blocks.features import drawn, feature_rows
from mercer.machines.blocks.fit import (
    certified,
    ended,
    fit_blocks,
    labels_here,
    refuse_options,
    remember_columns,
    watch_of,
)
from mercer.machines.blocks.problem import (
    BlockClusters,
    BlockPartition,
    FeatureRows,
    counted,
    feature_pieces,
    features_of,
)
from mercer.machines.clustering.certificate import PartitionQuantities
from mercer.machines.clustering.kmeans import FeatureLengths, KMeans
from mercer.machines.clustering.problem import Clusters
from mercer.rows.blocks import Block, Kept, Largest, Least, RowBlocks
from mercer.solvers.base import Status, Watch
from mercer.solvers.certificate import Certificate, certify, larger

# --- partition -----------------------------------------------------------------------------------
#
# Is it a local optimum? No row may gain by changing clusters; two passes over the blocks.

_TOL = 1e-6
_PARTITION_EPS = float(np.finfo(np.float64).eps)
_PARTITION_TINY = float(np.finfo(np.float64).tiny)
# of a squared distance: sums over blocks are short, and exact where they are not. An allowance, by
# which equal distances are no moves; no bound for many features
_PARTITION_ROUNDINGS = 64


@certify.register
def _(problem: BlockPartition, value: BlockClusters, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    blocks, phi, k = problem.rows.blocks, problem.rows.features, problem.count
    total, sums = blocks.total(feature_sums, phi)
    middle = sums / total
    _, (W, S, squares) = blocks.step(value.labels, cluster_sums, phi, middle, k)
    filled = W > 0
    means = S / np.where(filled, W, 1.0)
    _, found = blocks.step(value.labels, move_gains, phi, middle, means, W, tol)
    objective, misplaced, excess, gain, least = found
    size = max(objective, _PARTITION_EPS * squares, _PARTITION_TINY)
    measured = PartitionQuantities(
        objective,
        1.0 - objective / squares if squares > 0 else 1.0,
        int((~filled).sum()),
        float(W.min()),
        int(misplaced),
        float(excess) / size,
        max(gain.value, 0.0) / size,
        least.value,
    )
    ok = not measured.empty and measured.reassignment_gain <= tol and measured.move_gain <= tol
    statement = (
        f"{measured.misplaced} rows are nearer to another mean, and no move of a single row lowers "
        f"the objective by more than {measured.move_gain:.1e} of it, over all rows of the blocks; "
        f"{100 * measured.explained:.1f} % of the scatter lies between the clusters"
    )
    return Certificate(bool(ok), measured, tol, statement)


def feature_sums(block: Block, features: Any) -> tuple[float, Array]:
    """Return sums of weights and of features."""
    block = counted(block)
    s, sums = block.counts, np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        sums += s[rows] @ F
    return float(s.sum()), sums


def cluster_sums(
    block: Block, labels: Array, features: Any, middle: Array, k: int
) -> tuple[Array, tuple[Array, Array, float]]:
    """Return weights and sums of the clusters, and the scatter, about a point."""
    block = counted(block)
    s = block.counts
    W, S, squares = np.zeros(k), np.zeros((len(middle), k)), 0.0
    for rows, F in feature_pieces(block, features):
        np.subtract(F, middle, out=F)
        squares += float(s[rows] @ np.einsum("ij,ij->i", F, F))
        for c in np.unique(labels[rows]).tolist():
            inside = labels[rows] == c
            W[c] += s[rows][inside].sum()
            S[:, c] += s[rows][inside] @ F[inside]
    return labels, (W, S, squares)


def move_gains(
    block: Block, labels: Array, features: Any, middle: Array, means: Array, W: Array, tol: float
) -> tuple[Array, tuple[Any, ...]]:
    """Return the objective, and what rows of a block would gain elsewhere."""
    block = counted(block)
    s, k = block.counts, len(W)
    objective = excess = 0.0
    misplaced, gain, least = 0, 0.0, np.inf
    half = np.square(means).sum(axis=0)
    for rows, F in feature_pieces(block, features):
        np.subtract(F, middle, out=F)
        own, here, w = np.einsum("ij,ij->i", F, F), labels[rows], s[rows]
        every = np.arange(len(F))
        D = own[:, None] - 2.0 * F @ means + half
        # where a row is, its distance is measured by differences, which do not cancel
        exact = np.square(F - means[:, here].T).sum(axis=1)
        D[every, here] = exact
        D[:, W <= 0] = np.inf
        least = min(least, float(D.min() / max(float(own.max()), _PARTITION_TINY)))
        D = np.maximum(D, 0.0)
        objective += float(w @ exact)
        rounding = _PARTITION_ROUNDINGS * _PARTITION_EPS * (own + half.max())
        over = np.maximum(exact - D.min(axis=1) - rounding, 0.0)
        excess += float(w @ over)
        misplaced += int((over > tol * exact).sum())
        rest = W[here] - w
        leave = np.where(rest > 0, w * W[here] / np.where(rest > 0, rest, 1.0) * exact, 0.0)
        join = w[:, None] * W / (W + w[:, None]) * np.where(W > 0, D, np.inf)
        join[every, here] = np.inf
        if k > 1 and len(F):
            gain = larger(gain, float((leave - join.min(axis=1) - 3 * w * rounding).max()))
    return labels, (objective, misplaced, excess, Largest(gain), Least(least))


# --- lloyd ---------------------------------------------------------------------------------------
#
# Lloyd's steps over blocks, in the space of features: labels stay with their block.

_LLOYD_EPS = float(np.finfo(np.float64).eps)
_LLOYD_TINY = float(np.finfo(np.float64).tiny)
_LLOYD_ROUNDINGS = 4  # of the scatter: what objectives are known to
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
        return _LLOYD_ROUNDINGS * _LLOYD_EPS * max(self.sums.squares, 0.0)


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
    return np.asarray(F.T @ table / np.maximum(table.sum(axis=0), _LLOYD_TINY)), Far(point, F)


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
            rounding = _LLOYD_ROUNDINGS * _LLOYD_EPS * max(sums.squares, 0.0)
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


# --- copies --------------------------------------------------------------------------------------
#
# Fewer different rows than clusters: copies of a row are spread over several, as in memory.

Moves = dict[int, int]
"""Numbers of rows, and the clusters that they are put to."""


def with_copies_spread(rows: FeatureRows, found: Walk) -> tuple[Walk, Moves]:
    """Give each empty cluster a copy of a row, where every row is at the mean of its cluster.

    Nothing is left to gain then, and no other row could fill them.

    Parameters
    ----------
    rows : FeatureRows
        The features.
    found : Walk
        Where Lloyd's steps ended.
    """
    empty = np.flatnonzero(found.sums.W <= 0).tolist()
    if not empty or found.status is not Status.SOLVED or found.objectives[-1] > found.rounding:
        return found, {}
    blocks, k = rows.blocks, len(found.sums.W)
    _, spare = blocks.step(found.labels, spare_rows, len(empty))
    there = np.bincount([cluster for _, cluster in spare], minlength=k)
    moves: Moves = {}
    for row, cluster in spare:
        if empty and there[cluster] > 1:
            moves[row] = empty.pop(0)
            there[cluster] -= 1
    labels, sums = blocks.step(found.labels, sums_after, rows.features, found.far.point, k, moves)
    return replace(found, labels=labels, sums=sums), moves


def spare_rows(block: Block, labels: Array, most: int) -> tuple[Array, list[tuple[int, int]]]:
    """Return numbers of rows of each cluster, one more than `most` of each, and their clusters."""
    numbers = np.arange(len(block)) if block.weights is None else np.flatnonzero(block.weights)
    found = []
    for cluster in np.unique(labels).tolist():
        inside = numbers[labels == cluster][: most + 1]
        found += [(block.first + int(row), cluster) for row in inside]
    return labels, found


def sums_after(
    block: Block, labels: Array, features: Any, point: Array, k: int, moves: Moves
) -> tuple[Array, ClusterSums]:
    """Return labels after moves of single rows, and the sums of their clusters."""
    numbers = np.arange(len(block)) if block.weights is None else np.flatnonzero(block.weights)
    moved = {row - block.first: cluster for row, cluster in moves.items()}
    labels = np.array([moved.get(int(row), old) for row, old in zip(numbers, labels, strict=True)])
    block = counted(block)
    sums = ClusterSums(np.zeros(k), np.zeros((len(point), k)), 0.0)
    for rows, F in feature_pieces(block, features):
        np.subtract(F, point, out=F)
        sums = sums + sums_of(F, labels[rows], block.counts[rows], k)
    return labels.astype(np.int64), sums


# --- kmeans --------------------------------------------------------------------------------------
#
# K-means over blocks, in the space of features: labels stay with their block.


@fit_blocks.register
def fit_kmeans(machine: KMeans, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: starts are tried on a sample, the best goes on over all rows.

    A pass is one of Lloyd's steps; with `refine`, further ones count that means follow a row that
    moves.
    """
    machine._take_store()
    machine._check_parameters()
    refuse_options(machine, balanced=False)
    if isinstance(machine.init, np.ndarray | list) and np.ndim(machine.init) == 1:
        refuse(machine, "init", "<labels>", "be a rule or centres on rows in blocks")
    remember_columns(machine, blocks)
    rows = feature_rows(machine, blocks)
    watch = watch_of(machine)
    means, far = _seeds(machine, rows)
    found = walk(rows, means, far, watch, int(machine.max_iter), bool(machine.refine))
    found, moves = with_copies_spread(rows, found)
    _keep(machine, rows, found, moves, watch)


def _seeds(machine: KMeans, rows: FeatureRows) -> tuple[Array, Far]:
    """Return means found on a sample, by the machine's own starts, about the sample's mean."""
    sample = drawn(rows.blocks)
    weights = sample.weights
    small = KMeans(
        machine.n_clusters, machine.kernel_, init=machine.init, n_init=machine.n_init,
        max_iter=machine.max_iter, refine=False, random_state=machine.random_state,
    )  # fmt: skip
    labels = small.fit(sample.X, sample_weight=weights).labels_
    F = features_of(sample.X, rows.features, sample.first)
    return started(F, sample.counts, labels, int(machine.n_clusters))


def _keep(machine: KMeans, rows: FeatureRows, found: Walk, moves: Moves, watch: Watch) -> None:
    sums, point, blocks = found.sums, found.far.point, rows.blocks
    means = sums.means + point[:, None]
    machine._expansion = FeatureExpansion(rows.features, means, -0.5 * np.square(means).sum(axis=0))
    machine._own = FeatureLengths(rows.features)
    machine.inertia_, machine.cluster_sizes_ = float(sums.objective), sums.W
    machine.n_iter_ = max(1, len(found.objectives) - 1)
    labels = labels_here(machine, blocks, nearest_labels, rows.features, point, sums.means)
    if len(labels):
        for row, cluster in moves.items():
            labels[row] = cluster
    machine.__dict__.pop("cluster_centers_", None)
    machine.__dict__.pop("_relaxation", None)
    if isinstance(machine.kernel_, Linear):
        machine.cluster_centers_ = means.T.copy()
    value = Clusters(labels, np.array(found.objectives)[None])
    steps = len(found.objectives) - 1
    machine.solution_ = ended("BlockLloyd", value, found.status, steps, watch)
    certified(machine, BlockPartition(rows, len(sums.W)), BlockClusters(found.labels))


def nearest_labels(block: Block, features: Any, point: Array, means: Array) -> Array:
    """Return the nearest mean of each row, those of weight zero with them."""
    half = 0.5 * np.square(means).sum(axis=0)
    labels = np.empty(len(block), dtype=np.int64)
    for rows, F in feature_pieces(block, features):
        labels[rows] = (half - (F - point) @ means).argmin(axis=1)
    return labels
