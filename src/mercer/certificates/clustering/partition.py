"""Is it a local optimum? No point may gain by changing clusters, alone or with all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.gram.definite import NEGATIVE
from mercer.points import is_sparse
from mercer.problems import Clusters, Partition
from mercer.row_chunks import chunked, slices

_TOL = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_SCATTER, _TRACE = 1e-6, 1e-12  # of these, at least, gains are shares; smaller ones are rounding
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
    tol = _TOL if tol is None else tol
    labels = checked_labels(problem, value.labels)
    quantities = _measure(problem, labels, tol)
    ok = (
        quantities.empty == 0
        and quantities.reassignment_gain <= tol
        and quantities.move_gain <= tol
        and quantities.smallest_distance >= -NEGATIVE
    )
    return Certificate(bool(ok), quantities, tol, _statement(problem, quantities, tol))


def _statement(problem: Partition, found: PartitionQuantities, tol: float) -> str:
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


def _measure(problem: Partition, labels: Array, tol: float) -> PartitionQuantities:
    w, diagonal = problem.weights, problem.gram.diag()
    W = problem.cluster_weights(labels)
    sums, filled = _sums(problem, labels), W > 0
    trace = float(w @ diagonal)
    within = sums.within[filled] / W[filled]
    objective = problem.above_rounding(trace - float(within.sum()))
    scatter = max(trace - sums.grand / float(W.sum()), 0.0)
    size = max(abs(objective), _SCATTER * scatter, _TRACE * abs(trace), np.finfo(float).tiny)
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
    rows: slice, sums: _Sums, labels: Array, w: Array, W: Array, diagonal: Array, tol: float
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
    rounding = (16 + len(labels)) * _EPS * np.abs(own)
    excess = np.maximum(at - D.min(axis=0) - rounding, 0.0)
    misplaced = int((excess > tol * at + _TRACE * np.abs(own)).sum())
    # leaving a pair counts a distance twice, joining another cluster once
    gains = _move_gains(D, here, w, W, sums.sizes) - 3 * w * rounding
    return _Looked(misplaced, float(w @ excess), float(gains.max(initial=0.0)), least)


class _Sums(NamedTuple):
    """(K S Z)' by blocks of rows, diag(Z'S K S Z), w'K w, and the points of each cluster."""

    of: Callable[[slice], Array]
    within: Array
    grand: float
    sizes: Array


def _sums(problem: Partition, labels: Array) -> _Sums:
    """Add up over clusters, by the features where there are any."""
    sizes, F = np.bincount(labels, minlength=problem.count), problem.gram.factor
    if F is not None:
        total = problem.feature_sums(labels)
        grand = float(np.square(total.sum(axis=0)).sum())
        of = partial(_product_of, F, total)
        return _Sums(of, np.square(total).sum(axis=1), grand, sizes)
    columns = problem.indicator(labels)
    sums = np.asarray(exact(problem.gram) @ columns)
    within, grand = (columns * sums).sum(axis=0), float((problem.weights @ sums).sum())
    return _Sums(partial(_part_of, sums), within, grand, sizes)


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
