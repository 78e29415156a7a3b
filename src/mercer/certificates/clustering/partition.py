"""Is it a local optimum? No point may gain by changing clusters, alone or with all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.gram import exact
from mercer.gram.definite import NEGATIVE
from mercer.problems import Clusters, Partition

_TOL = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_SCATTER, _TRACE = 1e-6, 1e-12  # of these, at least, gains are shares; smaller ones are rounding


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
    w, diagonal, every = problem.weights, problem.gram.diag(), np.arange(len(labels))
    W = problem.cluster_weights(labels)
    sums, within, filled = *_sums(problem, labels), W > 0
    trace = float(w @ diagonal)
    objective = problem.above_rounding(trace - float((within[filled] / W[filled]).sum()))
    scatter = max(trace - float((w @ sums).sum()) / float(W.sum()), 0.0)
    size = max(abs(objective), _SCATTER * scatter, _TRACE * abs(trace), np.finfo(float).tiny)
    safe = np.where(filled, W, 1.0)
    D = diagonal[:, None] - 2.0 * sums / safe + within / safe**2
    D[:, ~filled] = np.inf
    longest = max(float(np.abs(diagonal).max(initial=0.0)), np.finfo(float).tiny)
    least = float(D.min(initial=0.0)) / longest
    D = np.maximum(D, 0.0)
    # what may be rounding of sums over a cluster is no gain: each term may leave one
    rounding = (16 + len(labels)) * _EPS * np.abs(diagonal)
    excess = np.maximum(D[every, labels] - D.min(axis=1) - rounding, 0.0)
    # leaving a pair counts a distance twice, joining another cluster once
    gains = _move_gains(D, labels, w, W) - 3 * w * rounding
    return PartitionQuantities(
        objective,
        1.0 - objective / scatter if scatter > 0 else 1.0,
        int((~filled).sum()),
        float(W.min()),
        int((excess > tol * D[every, labels] + _TRACE * np.abs(diagonal)).sum()),
        float(w @ excess) / size,
        float(gains.max(initial=0.0)) / size,
        least,
    )


def _sums(problem: Partition, labels: Array) -> tuple[Array, Array]:
    """Return K S Z and diag(Z'S K S Z), by the features where there are any."""
    if problem.gram.factor is not None:
        total = problem.feature_sums(labels)
        return np.asarray(problem.gram.factor @ total.T), np.square(total).sum(axis=1)
    columns = problem.indicator(labels)
    sums = np.asarray(exact(problem.gram) @ columns)
    return sums, (columns * sums).sum(axis=0)


def _move_gains(D: Array, labels: Array, w: Array, W: Array) -> Array:
    """Return what each point gains by its best move, both means following it."""
    every, alone = np.arange(len(labels)), np.bincount(labels, minlength=len(W))[labels] < 2
    rest = np.where(alone, 1.0, W[labels] - w)
    leave = np.where(alone, 0.0, w * W[labels] / rest * D[every, labels])
    join = w[:, None] * W / (W + w[:, None]) * np.where(W > 0, D, 0.0)
    join[every, labels] = np.inf
    return np.asarray(leave - join.min(axis=1)) if len(W) > 1 else np.zeros(len(w))
