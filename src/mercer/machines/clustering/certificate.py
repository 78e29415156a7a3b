"""Certificates of partitions, balanced partitions, minimum cuts, and Sinkhorn scaling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram import exact
from mercer.gram.definite import NEGATIVE
from mercer.machines.clustering.minimum_cut import MaximumFlow, edge_weights
from mercer.machines.clustering.problem import (
    BalancedPartition,
    Bipartition,
    Clusters,
    MinimumCut,
    Partition,
)
from mercer.machines.clustering.sinkhorn import Scales, Scaling
from mercer.rows.chunks import chunked, slices
from mercer.rows.points import is_sparse
from mercer.solvers.base import Watch
from mercer.solvers.certificate import Certificate, certify, larger

# --- partition -----------------------------------------------------------------------------------
#
# Is it a local optimum? No point may gain by changing clusters, alone or with all others.

_PARTITION_TOL = 1e-6
_PARTITION_EPS = float(np.finfo(np.float64).eps)
_PARTITION_SCATTER, _PARTITION_TRACE = (
    1e-6,
    1e-12,
)  # of these, at least, gains are shares; smaller ones are rounding
_AT_ONCE = 1 << 16  # distances that are looked at together: three such arrays stay in the cache


@dataclass(frozen=True)
class PartitionQuantities:
    """Measures of a partition.

    Attributes
    ----------
    objective : float
        Weighted sum of squared distances to the means, by the trace formula; below zero where K is
        not positive semidefinite.
    explained : float
        Share of the scatter about the mean of all points that lies between the clusters.
    empty : int
        Clusters without a point.
    smallest : float
        Weight of the lightest cluster.
    misplaced : int
        Points that are nearer to the mean of another cluster, by more than rounding.
    reassignment_gain : float
        What moving all of these at once would gain at least, over the objective.
    move_gain : float
        The most that moving one point would gain, over the objective.
    smallest_distance : float
        The smallest squared distance between a point and a mean, over the largest k(x, x); below
        zero, beyond rounding, K is not positive semidefinite and there are no distances.
    """

    objective: float
    explained: float
    empty: int
    smallest: float
    misplaced: int
    reassignment_gain: float
    move_gain: float
    smallest_distance: float = 0.0


@certify.register
def _(problem: Partition, value: Clusters, tol: float | None = None) -> Certificate:
    tol = _PARTITION_TOL if tol is None else tol
    labels = checked_labels(problem, value.labels)
    quantities = _partition_measure(problem, labels, tol)
    ok = (
        quantities.empty == 0
        and quantities.reassignment_gain <= tol
        and quantities.move_gain <= tol
        and quantities.smallest_distance >= -NEGATIVE
    )
    return Certificate(bool(ok), quantities, tol, _partition_statement(problem, quantities, tol))


def _partition_statement(problem: Partition, found: PartitionQuantities, tol: float) -> str:
    if found.smallest_distance < -NEGATIVE:
        return (
            "the kernel matrix is not positive semidefinite: the squared distance between a point "
            f"and a mean is {found.smallest_distance:.2g} of the longest, so none is the nearest"
        )
    if found.empty:
        return f"{found.empty} of {problem.count} clusters have no point"
    if found.reassignment_gain > tol:
        return (
            f"{found.misplaced} points are nearer to the mean of another cluster; moving them "
            f"lowers the objective by at least {found.reassignment_gain:.1e} of it"
        )
    if found.move_gain > tol:
        return (
            "every point is with its nearest mean, but moving a single one lowers the objective "
            f"by {found.move_gain:.1e} of it"
        )
    return (
        f"every point is with its nearest mean, and no move of a single point lowers the objective "
        f"by more than {max(found.move_gain, 0.0):.1e} of it; {100 * found.explained:.1f} % of the "
        "scatter lies between the clusters"
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
    w, diagonal = problem.weights, problem.gram.diag()
    W = problem.cluster_weights(labels)
    sums, filled = _sums(problem, labels), W > 0
    trace = float(w @ diagonal)
    within = sums.within[filled] / W[filled]
    objective = problem.above_rounding(trace - float(within.sum()))
    scatter = max(trace - sums.grand / float(W.sum()), 0.0)
    size = max(
        abs(objective),
        _PARTITION_SCATTER * scatter,
        _PARTITION_TRACE * abs(trace),
        np.finfo(float).tiny,
    )
    longest = max(float(np.abs(diagonal).max(initial=0.0)), np.finfo(float).tiny)

    def chunk(rows: slice) -> list[_Looked]:
        step = max(1, _AT_ONCE // len(W))  # distances to all means stay in the cache
        parts = slices(rows.start, rows.stop, step)
        return [_look(part, sums, labels, w, W, diagonal, tol) for part in parts]

    with one_blas_thread():
        found = [part for parts in chunked(chunk, len(labels)) for part in parts]
    return PartitionQuantities(
        objective,
        1.0 - objective / scatter if scatter > 0 else 1.0,
        int((~filled).sum()),
        float(W.min()),
        sum(part.misplaced for part in found),
        sum(part.excess for part in found) / size,
        max(0.0, *(part.gain for part in found)) / size,
        min(0.0, *(part.least for part in found)) / longest,
    )


class _Looked(NamedTuple):
    """What some points say: rows misplaced, what moving them gains, one of them, least distance."""

    misplaced: int
    excess: float
    gain: float
    least: float


def _look(
    rows: slice, sums: _ClusterSums, labels: Array, w: Array, W: Array, diagonal: Array, tol: float
) -> _Looked:
    """Look at some points: the nearest means, and what moves would gain."""
    here, w, own, filled = labels[rows], w[rows], diagonal[rows], W > 0
    every, safe = np.arange(len(here)), np.where(filled, W, 1.0)
    D = sums.of(rows)  # a row for each mean: minima of columns are quick
    D *= (-2.0 / safe)[:, None]
    D += own
    D += (sums.within / safe**2)[:, None]
    D[~filled] = np.inf
    least = float(D.min(initial=0.0))
    if least < 0.0:
        np.maximum(D, 0.0, out=D)
    at = D[here, every]
    # rounding of sums over a cluster is no gain. Beyond an allowance of 2 gamma_n k(x, x) points
    # count as misplaced: a bound, Higham (3.5), where no row is longer than x is
    rounding = (16 + len(labels)) * _PARTITION_EPS * np.abs(own)
    excess = np.maximum(at - D.min(axis=0) - rounding, 0.0)
    misplaced = int((excess > tol * at + _PARTITION_TRACE * np.abs(own)).sum())
    # leaving a pair counts a distance twice, joining another cluster once
    gains = _move_gains(D, here, w, W, sums.sizes) - 3 * w * rounding
    return _Looked(misplaced, float(w @ excess), float(gains.max(initial=0.0)), least)


class _ClusterSums(NamedTuple):
    """(K S Z)' by blocks of rows, diag(Z'S K S Z), w'K w, and the points of each cluster."""

    of: Callable[[slice], Array]
    within: Array
    grand: float
    sizes: Array


def _sums(problem: Partition, labels: Array) -> _ClusterSums:
    """Add up over clusters, by the features where there are any."""
    sizes, F = np.bincount(labels, minlength=problem.count), problem.gram.factor
    if F is not None:
        total = problem.feature_sums(labels)
        grand = float(np.square(total.sum(axis=0)).sum())
        of = partial(_product_of, F, total)
        return _ClusterSums(of, np.square(total).sum(axis=1), grand, sizes)
    columns = problem.indicator(labels)
    sums = np.asarray(exact(problem.gram) @ columns)
    within, grand = (columns * sums).sum(axis=0), float((problem.weights @ sums).sum())
    return _ClusterSums(partial(_part_of, sums), within, grand, sizes)


def _product_of(F: Any, V: Array, rows: slice) -> Array:
    part = F[rows]
    return np.asarray((part @ V.T).T if is_sparse(part) else V @ part.T)


def _part_of(sums: Array, rows: slice) -> Array:
    return np.array(sums[rows].T, order="C")


def _move_gains(D: Array, labels: Array, w: Array, W: Array, sizes: Array) -> Array:
    """Return what each point gains by its best move, both means following it.

    To join an empty cluster costs nothing. D is overwritten.
    """
    if len(W) < 2:
        return np.zeros(len(w))
    every, alone = np.arange(len(labels)), sizes[labels] < 2
    rest = np.where(alone, 1.0, W[labels] - w)
    leave = np.where(alone, 0.0, w * W[labels] / rest * D[labels, every])
    share = W[:, None] + w
    np.divide(W[:, None], share, out=share)
    D[W <= 0] = 0.0
    D *= share
    D[labels, every] = np.inf
    return np.asarray(leave - w * D.min(axis=0))


# --- balanced ------------------------------------------------------------------------------------
#
# Are sizes equal, and is no assignment to these means cheaper? By the dual of the assignment.
#
# Any prices u of the clusters bound the cost of every assignment of equal sizes from below: sum_i
# min_c (d_ic + u_c) less what the clusters pay, floor(n / k) sum_c u_c and the r largest u_c once
# more. The prices are found here, from the labels and the distances alone; what the bound leaves
# open is what another assignment could gain at most.

_BALANCED_TOL = 1e-6
_BALANCED_EPS = float(np.finfo(np.float64).eps)
_BALANCED_SCATTER, _BALANCED_TRACE = (
    1e-6,
    1e-12,
)  # of these, at least, gains are shares; smaller ones are rounding


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
    n, k, diagonal = len(labels), problem.count, problem.gram.diag()
    sizes = np.bincount(labels, minlength=k)
    columns = problem.indicator(labels)
    sums = np.asarray(exact(problem.gram) @ columns)
    within, safe = (columns * sums).sum(axis=0), np.maximum(sizes, 1)
    trace = float(diagonal.sum())
    objective = problem.above_rounding(trace - float((within / safe).sum()))
    scatter = max(trace - float(sums.sum()) / n, 0.0)
    size = max(
        abs(objective),
        _BALANCED_SCATTER * scatter,
        _BALANCED_TRACE * abs(trace),
        np.finfo(float).tiny,
    )
    D = diagonal[:, None] - 2.0 * sums / safe + within / safe**2
    longest = max(float(np.abs(diagonal).max(initial=0.0)), np.finfo(float).tiny)
    least = float(D.min(initial=0.0)) / longest
    D = np.maximum(D, 0.0)
    # an allowance: 2 gamma_n of the trace, Higham (3.5); gains are stated beyond it
    rounding = (16 + n) * _BALANCED_EPS * float(np.abs(diagonal).sum())
    cost = float(D[np.arange(n), labels].sum())
    gain = cost - _bound(D, _prices(D, labels, sizes), *problem.sizes) - rounding
    explained = 1.0 - objective / scatter if scatter > 0 else 1.0
    return BalancedQuantities(
        objective,
        explained,
        int(sizes.min()),
        int(sizes.max()),
        max(gain, 0.0) / size if (sizes > 0).all() else float("inf"),
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
