"""Fewer different rows than clusters: copies of a row are spread over several, as in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block
from mercer.problems.blocks import FeatureRows, counted, feature_pieces
from mercer.solvers import Status
from mercer.streaming.fits.lloyd import ClusterSums, Walk, sums_of

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
