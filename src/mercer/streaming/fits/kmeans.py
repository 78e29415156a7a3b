"""K-means over blocks, in the space of features: labels stay with their block."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, RowBlocks
from mercer.gram.storage.factored import FeatureExpansion
from mercer.kernels import Linear
from mercer.machines import KMeans
from mercer.machines.base.parameters import refuse
from mercer.machines.clustering.means import FeatureLengths
from mercer.problems import Clusters
from mercer.problems.blocks import FeatureRows, feature_pieces
from mercer.problems.blocks.feature_rows import features_of
from mercer.problems.blocks.questions import BlockClusters, BlockPartition
from mercer.solvers import Watch
from mercer.streaming.features import drawn, feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.copies import Moves, with_copies_spread
from mercer.streaming.fits.lloyd import Far, Walk, started, walk
from mercer.streaming.outcome import certified, ended, labels_here, remember_columns, watch_of


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
