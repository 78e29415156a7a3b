"""Certificates of partitions, balanced partitions, minimum cuts, and Sinkhorn scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, exact
from mercer.gram.accurate_products import gamma
from mercer.gram.centering import CenteredFeatures
from mercer.gram.definite import NEGATIVE
from mercer.machines.clustering.distances import (
    RELATIVE,
    feature_means,
    over_rows,
    squared_distances,
)
from mercer.machines.clustering.minimum_cut import MaximumFlow, edge_weights
from mercer.machines.clustering.problem import (
    BalancedPartition,
    Bipartition,
    Clusters,
    MinimumCut,
    Partition,
)
from mercer.machines.clustering.sinkhorn import Scales, Scaling
from mercer.rows.chunks import chunked
from mercer.solvers.base import Watch
from mercer.solvers.certificate import Certificate, certify, larger

# --- partition -----------------------------------------------------------------------------------
#
# Is it a local optimum? No point may gain by changing clusters, alone or with all others.

_PARTITION_TOL = 1e-6
_SCATTER, _TRACE = 1e-6, 1e-12  # of these, at least, gains by products are shares
_LEAST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class PartitionQuantities:
    """Measures of a partition.

    Attributes
    ----------
    objective : float
        Weighted sum of squared distances to the means: by differences where K has features, else
        by the trace formula; then it is below zero where K is not positive semidefinite.
    explained : float
        Share of the scatter about the mean of all points that lies between the clusters.
    empty : int
        Clusters without a point.
    smallest : float
        Weight of the lightest cluster.
    misplaced : int
        Points that are nearer to the mean of another cluster, by more than rounding.
    reassignment_gain : float
        The most that moving points to nearer means can gain, over the objective; rounding is
        counted.
    move_gain : float
        The most that moving one point, both means following, can gain, over the objective.
    smallest_distance : float
        The smallest squared distance between a point and a mean, over the largest k(x, x); below
        zero, beyond rounding, K is not positive semidefinite and there are no distances.
    objective_error : float
        The most that rounding can have changed the objective by, over the objective.
    unit : float
        What stands for the objective in these shares: itself, or what rounding hides of it where
        that is more.
    hidden : float
        The same as `objective_error`, in distances that cannot be told from zero, too.
    """

    objective: float
    explained: float
    empty: int
    smallest: float
    misplaced: int
    reassignment_gain: float
    move_gain: float
    smallest_distance: float = 0.0
    objective_error: float = 0.0
    unit: float = 0.0
    hidden: float = 0.0


@certify.register
def _(problem: Partition, value: Clusters, tol: float | None = None) -> Certificate:
    tol = _PARTITION_TOL if tol is None else tol
    labels = checked_labels(problem, value.labels)
    quantities = _partition_measure(problem, labels, tol)
    ok = (
        quantities.empty == 0
        and quantities.reassignment_gain <= tol
        and quantities.move_gain <= tol
        and quantities.objective_error <= tol
        and quantities.smallest_distance >= -NEGATIVE
    )
    return Certificate(bool(ok), quantities, tol, _partition_statement(problem, quantities, tol))


def _partition_statement(problem: Partition, found: PartitionQuantities, tol: float) -> str:
    of = "it" if found.unit <= abs(found.objective) else f"{found.unit:.1e}"
    if found.smallest_distance < -NEGATIVE:
        return (
            "the kernel matrix is not positive semidefinite: the squared distance between a point "
            f"and a mean is {found.smallest_distance:.2g} of the longest, so none is the nearest"
        )
    if found.empty:
        return f"{found.empty} of {problem.count} clusters have no point"
    if found.reassignment_gain > tol:
        which = (
            f"{found.misplaced} points are nearer to the mean of another cluster"
            if found.misplaced
            else "rounding hides which means are the nearest"
        )
        return (
            f"{which}; moving points to their nearest means may lower the objective by "
            f"{found.reassignment_gain:.1e} of {of}"
        )
    if found.move_gain > tol:
        return (
            "every point is with its nearest mean, but moving a single one may lower the objective "
            f"by {found.move_gain:.1e} of {of}"
        )
    if found.objective_error > tol:
        return f"rounding may change the objective by {found.objective_error:.1e} of {of}"
    moved = (
        f"; moving all points to nearer means lowers it by at most {found.reassignment_gain:.1e}"
        if found.reassignment_gain > 0
        else ""
    )
    known = f"; the objective is known to {found.hidden:.1e} of {of}" if found.hidden > tol else ""
    return (
        "every point is with its nearest mean, and no move of a single point lowers the objective "
        f"by more than {found.move_gain:.1e} of {of}{moved}; {100 * found.explained:.1f} % of the "
        f"scatter lies between the clusters{known}"
    )


def checked_labels(problem: Partition, labels: Array) -> Array:
    """Return labels as integers, one for each point, or refuse them."""
    labels = np.asarray(labels)
    if labels.shape != problem.weights.shape:
        raise ValueError(f"{len(problem.weights)} points, but labels of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= problem.count:
        raise ValueError(f"labels must be from 0 to {problem.count - 1}")
    return labels.astype(np.intp)


def _partition_measure(problem: Partition, labels: Array, tol: float) -> PartitionQuantities:
    w, apart = problem.weights, distances_of(problem, labels)
    W, sizes = apart.weights, np.bincount(labels, minlength=problem.count)
    size = apart.unit

    def look(rows: slice) -> _Looked:
        return _look(*apart.of(rows), labels[rows], w[rows], W, sizes, tol)

    found = over_rows(look, len(labels), problem.count)
    return PartitionQuantities(
        apart.objective,
        apart.explained,
        int((W <= 0).sum()),
        float(W.min()),
        sum(part.misplaced for part in found),
        sum(part.excess for part in found) / size,
        max(0.0, *(part.gain for part in found)) / size,
        min(0.0, *(part.least for part in found)) / apart.longest,
        apart.lost / size,
        size,
        apart.hidden / size,
    )


class _Looked(NamedTuple):
    """What some points say: rows misplaced, what moving them gains, one of them, least distance."""

    misplaced: int
    excess: float
    gain: float
    least: float


def _look(
    D: Array,
    rounding: Array,
    equal: Array,
    here: Array,
    w: Array,
    W: Array,
    sizes: Array,
    tol: float,
) -> _Looked:
    """Look at some points: the nearest means, and the most that moves can gain."""
    every, empty = np.arange(len(here)), W <= 0
    least = float((D + rounding).min(initial=0.0))
    low, high = np.maximum(D - rounding, 0.0), D[here, every] + rounding[here, every]
    low[empty] = np.inf
    rounding[empty] = np.inf
    beyond = low[here, every] - np.maximum(D + rounding, 0.0).min(axis=0)
    misplaced = int((beyond > tol * high).sum())
    others = low.copy()
    others[here, every] = np.inf
    excess = np.maximum(high - others.min(axis=0) - equal, 0.0)
    # leaving a pair counts a distance twice, joining another cluster once
    gains = _move_gains(low, high, here, w, W, sizes) - 3.0 * w * equal
    return _Looked(misplaced, float(w @ excess), float(gains.max(initial=0.0)), least)


class Distances(NamedTuple):
    """Squared distances of points from the means of clusters, and bounds of their rounding.

    Attributes
    ----------
    of : callable
        Of a block of rows: distances (k, rows), bounds of their rounding, and for each row what
        two distances may differ by and still be equal.
    weights : (k,) array
        Weights of the clusters.
    objective : float
        Weighted sum of squared distances to the means.
    scatter : float
        The same to the mean of all points.
    lost : float
        A bound of what rounding did to the objective, beyond distances that count as zero.
    hidden : float
        A bound of what it did to the objective.
    unit : float
        What gains are shares of: the objective, or what rounding hides of it, if that is more.
    longest : float
        The largest k(x, x).
    """

    of: Callable[[slice], tuple[Array, Array, Array]]
    weights: Array
    objective: float
    scatter: float
    lost: float
    hidden: float
    unit: float
    longest: float

    @property
    def explained(self) -> float:
        """Return the share of the scatter that lies between the clusters."""
        return 1.0 - self.objective / self.scatter if self.scatter > 0 else 1.0


def distances_of(problem: Partition, labels: Array) -> Distances:
    """Compute distances anew: by differences of features where there are any, else from K."""
    diagonal = np.abs(problem.gram.diag())
    longest = max(float(diagonal.max(initial=0.0)), np.finfo(float).tiny)
    if problem.gram.factor is not None:
        return _by_features(problem, labels, longest)
    return _by_products(problem, labels, longest)


def _by_features(problem: Partition, labels: Array, longest: float) -> Distances:
    F, w, found = problem.gram.factor, problem.weights, problem.feature_means(labels)
    moved = _moved(problem.gram)
    all_in_one = np.zeros(len(labels), dtype=np.intp)
    scatter = feature_means(F, all_in_one, w, problem.feature_sums(labels).sum(axis=0)[None])

    def of(rows: slice) -> tuple[Array, Array, Array]:
        D = squared_distances(F[rows], found.means)
        off = found.rounding[:, None] + moved[rows]  # |x - m| is off by that
        return D, RELATIVE * D + 2.0 * off * np.sqrt(D) + off**2, equal[rows]

    # distances up to that are zero: rows lie on means, of which nobody knows more
    equal = 4.0 * (moved + found.rounding[labels]) ** 2
    # means make the sum least: what they are off by adds its square, Cauchy and Schwarz the rest
    most, level = float(w @ moved**2), float(found.weights @ found.rounding**2)
    lost = RELATIVE * found.objective + 2.0 * np.sqrt(found.objective * most) + most + level
    unit = max(found.objective, float(w @ equal))
    known = lost if unit == found.objective else 0.0
    unit = max(unit, _LEAST)
    W, scattered = found.weights, scatter.objective
    return Distances(of, W, found.objective, scattered, float(known), float(lost), unit, longest)


def _moved(gram: Gram) -> Array:
    """Bound what rounding did to rows when their origin was moved.

    x - o is a number, and the difference exact, where x is between o / 2 and 2 o (Sterbenz). Else
    it rounds by half a unit in its last place.
    """
    F, origin = gram.factor, getattr(gram.features, "mean", None)
    if not isinstance(gram.features, CenteredFeatures) or origin is None or not origin.any():
        return np.zeros(gram.shape[0])
    away = np.flatnonzero(origin)

    def chunk(rows: slice) -> Array:
        part = F[rows][:, away]
        ratio = part / origin[away]
        rounded = np.where((ratio >= -0.49) & (ratio <= 0.99), 0.0, part)
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rounded, rounded)))

    return np.asarray(np.finfo(np.float64).eps * np.concatenate(chunked(chunk, len(F))))


def _by_products(problem: Partition, labels: Array, longest: float) -> Distances:
    """Return distances k(x, x) - 2 sum_j w_j k(x, x_j) / W + sum_ij w_i w_j k(x_i, x_j) / W^2.

    With |k(x, y)|^2 <= k(x, x) k(y, y), sums of n products round by at most gamma_n of the square
    of |phi(x)| and the mean length of the cluster, Higham (3.5). Where no other row is longer than
    x that is 4 gamma_n k(x, x), which nobody can tell from zero: gains count beyond twice of it.
    """
    w, diagonal = problem.weights, problem.gram.diag()
    columns, n = problem.indicator(labels), len(labels)
    W = problem.cluster_weights(labels)
    sums, safe = np.asarray(exact(problem.gram) @ columns), np.where(W > 0, W, 1.0)
    within = (columns * sums).sum(axis=0)
    objective = problem.above_rounding(float(w @ diagonal) - float((within / safe).sum()))
    scatter = max(float(w @ diagonal) - float((w @ sums).sum()) / float(W.sum()), 0.0)
    lengths = np.sqrt(np.abs(diagonal))
    reach, level = (columns.T @ lengths) / safe, within / safe**2

    equal = 8.0 * gamma(n + 16) * np.abs(diagonal)
    lost = gamma(n + 16) * (lengths + reach[labels]) ** 2

    def of(rows: slice) -> tuple[Array, Array, Array]:
        D = (-2.0 / safe)[:, None] * sums[rows].T + diagonal[rows] + level[:, None]
        rounding = gamma(n + 16) * (lengths[rows] + reach[:, None]) ** 2
        return D, rounding, equal[rows]

    trace = float(w @ np.abs(diagonal))
    unit = max(abs(objective), _SCATTER * scatter, _TRACE * trace, _LEAST)
    beyond = float(w @ np.maximum(lost - equal, 0.0))
    return Distances(of, W, objective, scatter, beyond, float(w @ lost), unit, longest)


def _move_gains(low: Array, high: Array, labels: Array, w: Array, W: Array, sizes: Array) -> Array:
    """Return the most that each point can gain by its best move, both means following it.

    To join an empty cluster costs nothing.

    Parameters
    ----------
    low : (k, n) array
        Lower bounds of distances; overwritten.
    high : (n,) array
        Upper bounds of the distances from the own means.
    labels, w : (n,) arrays
        Clusters and weights of the points.
    W, sizes : (k,) arrays
        Weights of the clusters, and numbers of their points.
    """
    if len(W) < 2:
        return np.zeros(len(w))
    every, alone = np.arange(len(labels)), sizes[labels] < 2
    rest = np.where(alone, 1.0, W[labels] - w)
    leave = np.where(alone, 0.0, w * W[labels] / rest * high)
    share = W[:, None] + w
    np.divide(W[:, None], share, out=share)
    low[W <= 0] = 0.0
    low *= share
    low[labels, every] = np.inf
    return np.asarray(leave - w * low.min(axis=0))


# --- balanced ------------------------------------------------------------------------------------
#
# Are sizes equal, and is no assignment to these means cheaper? By the dual of the assignment.
#
# Any prices u of the clusters bound the cost of every assignment of equal sizes from below: sum_i
# min_c (d_ic + u_c) less what the clusters pay, floor(n / k) sum_c u_c and the r largest u_c once
# more. The prices are found here, from the labels and the distances alone; what the bound leaves
# open is what another assignment could gain at most.

_BALANCED_TOL = 1e-6


@dataclass(frozen=True)
class BalancedQuantities:
    """Measures of a partition into clusters of equal sizes.

    Attributes
    ----------
    objective : float
        Sum of squared distances to the means, by the trace formula.
    explained : float
        Share of the scatter about the mean of all points that lies between the clusters.
    smallest, largest : int
        Sizes of the smallest and of the largest cluster.
    reassignment_gain : float
        The most that any other assignment of equal sizes to the same means could gain, by the dual
        of the assignment problem, over the objective.
    smallest_distance : float
        The smallest squared distance between a point and a mean, over the largest k(x, x); below
        zero, beyond rounding, K is not positive semidefinite and there are no distances.
    """

    objective: float
    explained: float
    smallest: int
    largest: int
    reassignment_gain: float
    smallest_distance: float = 0.0


@certify.register
def _(problem: BalancedPartition, value: Clusters, tol: float | None = None) -> Certificate:
    tol = _BALANCED_TOL if tol is None else tol
    labels = checked_labels(problem, value.labels)
    found = _balanced_measure(problem, labels)
    least, more = problem.sizes
    equal = found.smallest == least and found.largest == least + (more > 0)
    distances = found.smallest_distance >= -NEGATIVE
    ok = equal and distances and found.reassignment_gain <= tol
    return Certificate(bool(ok), found, tol, _balanced_statement(found, equal, distances, tol))


def _balanced_statement(found: BalancedQuantities, equal: bool, distances: bool, tol: float) -> str:
    if not equal:
        return f"sizes are not equal: from {found.smallest} to {found.largest} points"
    if not distances:
        return (
            "the kernel matrix is not positive semidefinite: the squared distance between a point "
            f"and a mean is {found.smallest_distance:.2g} of the longest, so no cost is the least"
        )
    if found.reassignment_gain > tol:
        return (
            "another assignment of equal sizes to the same means may lower the objective by "
            f"{found.reassignment_gain:.1e} of it"
        )
    return (
        f"clusters have {found.smallest} to {found.largest} points, and no other assignment of "
        f"equal sizes to these means lowers the objective by more than "
        f"{max(found.reassignment_gain, 0.0):.1e} of it, by duality; other means may"
    )


def _balanced_measure(problem: BalancedPartition, labels: Array) -> BalancedQuantities:
    n, apart = len(labels), distances_of(problem, labels)
    sizes = np.bincount(labels, minlength=problem.count)
    parts = over_rows(apart.of, n, problem.count)
    D, rounding, equal = (np.concatenate(part, axis=-1).T for part in zip(*parts, strict=True))
    least = float((D + rounding).min(initial=0.0)) / apart.longest
    high, low = (D + rounding)[np.arange(n), labels], np.maximum(D - rounding, 0.0)
    D = np.maximum(D, 0.0)
    bound = _bound(low, _prices(D, labels, sizes), *problem.sizes)
    # sums of n numbers, twice, and of what the prices take off and give back
    gain = float(high.sum()) - bound + gamma(4 * n) * float(high.sum()) - float(equal.sum())
    return BalancedQuantities(
        apart.objective,
        apart.explained,
        int(sizes.min()),
        int(sizes.max()),
        max(gain, 0.0) / apart.unit if (sizes > 0).all() else float("inf"),
        least,
    )


def _bound(D: Array, u: Array, least: int, more: int) -> float:
    """Return a lower bound of the cost of every assignment of equal sizes, for any prices."""
    paid = least * float(u.sum()) + float(np.sort(u)[len(u) - more :].sum())
    return float((D + u).min(axis=1).sum()) - paid


def _prices(D: Array, labels: Array, sizes: Array) -> Array:
    """Return prices at which points are where they are: minus lengths of the cheapest chains.

    A chain of moves of single points leads from cluster to cluster. It may begin anywhere, and
    pass from a cluster of the smaller size to one of the larger for nothing.
    """
    k = len(sizes)
    step = np.zeros((k, k))
    for c in range(k):
        own = D[labels == c]
        step[c] = (own - own[:, [c]]).min(axis=0, initial=np.inf)
    larger = sizes > sizes.min()
    step[np.ix_(~larger, larger)] = np.minimum(step[np.ix_(~larger, larger)], 0.0)
    chain = np.zeros(k)
    for _ in range(k):
        chain = np.minimum(chain, (chain[:, None] + step).min(axis=0))
    return -chain


# --- cuts ----------------------------------------------------------------------------------------
#
# Is this the cheapest cut? A flow as large as the cut says so.

_CUTS_TOL = 1e-6


@dataclass(frozen=True)
class MinimumCutQuantities:
    """Measures of a cut.

    Attributes
    ----------
    cut : float
        Weight of the edges that are cut, added up anew.
    flow : float
        The largest flow, pushed anew: no cut can weigh less.
    relative_gap : float
        Their distance over the largest degree; and that of the answer's own figures, if larger.
    """

    cut: float
    flow: float
    relative_gap: float


@certify.register
def _(problem: MinimumCut, value: Bipartition, tol: float | None = None) -> Certificate:
    tol = _CUTS_TOL if tol is None else tol
    weights = edge_weights(problem)
    side = np.asarray(value.labels) == 1
    cut = float(weights[side][:, ~side].sum())
    flow = float(MaximumFlow().run(problem, Watch()).value.flow)
    degree = float(weights.sum(axis=1).max()) if weights.nnz else 0.0
    off = larger(cut - flow, larger(abs(value.value - cut), abs(value.flow - flow)))
    gap = off / max(degree, np.finfo(float).tiny)
    apart = problem.source is None or (side[problem.source] and not side[problem.sink])
    divided = bool(side.any() and not side.all() and apart)
    quantities = MinimumCutQuantities(cut, flow, gap)
    statement = (
        f"a cut of {cut:.6g}, and a flow of {flow:.6g} which no cut can undercut"
        if divided
        else "the points that must be separated are not"
    )
    return Certificate(bool(divided and gap <= tol), quantities, tol, statement)


# --- scaling -------------------------------------------------------------------------------------
#
# Do the rows of the scaled matrix sum to one? One product in float64 tells.

_SCALING_TOL = 1e-8


@dataclass(frozen=True)
class ScalingQuantities:
    """Measures of a doubly stochastic scaling.

    Attributes
    ----------
    row_sum_error : float
        Largest distance of a row sum from one.
    empty_rows : int
        Rows of zeros, which have no sum to scale.
    smallest, largest : float
        The extreme factors, among positive ones.
    """

    row_sum_error: float
    empty_rows: int
    smallest: float
    largest: float


@certify.register
def _(problem: Scaling, value: Scales, tol: float | None = None) -> Certificate:
    tol = _SCALING_TOL if tol is None else tol
    gram, x = exact(problem.gram), np.asarray(value.scale, dtype=np.float64)
    empty = np.asarray(gram @ np.ones(len(x))) == 0
    sums = (x * np.asarray(gram @ x))[~empty]
    used = x[~empty]
    error = float(np.abs(sums - 1.0).max(initial=0.0))
    quantities = ScalingQuantities(
        error,
        int(empty.sum()),
        float(used.min(initial=np.inf)),
        float(used.max(initial=0.0)),
    )
    ok = error <= tol and bool((used > 0).all())
    statement = f"every row of the scaled matrix sums to one within {error:.1e}"
    return Certificate(ok, quantities, tol, statement)
