"""Is it a local optimum? No row may gain by changing clusters; two passes over the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block, Largest, Least
from mercer.certificates.base import Certificate, certify
from mercer.certificates.clustering.partition import PartitionQuantities
from mercer.certificates.norms import larger
from mercer.problems.blocks import counted, feature_pieces
from mercer.problems.blocks.questions import BlockClusters, BlockPartition

_TOL = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# of a squared distance: sums over blocks are short, and exact where they are not. An allowance, by
# which equal distances are no moves; no bound for many features
_ROUNDINGS = 64


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
    size = max(objective, _EPS * squares, _TINY)
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
        least = min(least, float(D.min() / max(float(own.max()), _TINY)))
        D = np.maximum(D, 0.0)
        objective += float(w @ exact)
        rounding = _ROUNDINGS * _EPS * (own + half.max())
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
