"""Spectral clustering over blocks: eigenvectors of a small matrix of features, then k-means.

Landmarks stand for the kernel (Fowlkes, Belongie, Chung and Malik's use of Nystrom's method): a
pass adds up degrees, one the matrix, and places of k numbers a row are kept where the rows are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block, RowBlocks
from mercer.gram.build import feature_gram
from mercer.gram.storage.factored import FactoredGram, FeatureExpansion
from mercer.kernels import Linear
from mercer.kernels.features import feature_map
from mercer.machines import SpectralClustering
from mercer.machines.base.parameters import refuse, seed_of
from mercer.machines.clustering.affinity import negative_entry
from mercer.machines.clustering.cut_parameters import check_parameters
from mercer.machines.clustering.grouping import ByCentre, BySign
from mercer.machines.clustering.normalization import NormalizedCut, Plain
from mercer.machines.clustering.relaxation import eigengap, warn_of_rank
from mercer.points import to_dense
from mercer.problems import CutValues, Modes, Partition
from mercer.problems.blocks import FeatureRows, counted, feature_pieces
from mercer.problems.blocks.cut import (
    FAINT,
    BlockCut,
    CutAnswer,
    Places,
    divided_products,
    feature_sums,
    place_rows,
)
from mercer.solvers import Lloyd, Status, solve
from mercer.streaming.features import drawn, feature_rows
from mercer.streaming.fit import fit_blocks, refuse_options
from mercer.streaming.fits.lloyd import started, walk
from mercer.streaming.fits.pca import signs_of_extremes
from mercer.streaming.outcome import certified, ended, labels_here, remember_columns, watch_of

_NORMALIZATIONS = {"normalized": NormalizedCut, "plain": Plain}
_LOOKED_AT = 2000  # rows of the sample among which similarities below zero are looked for
_MAX_STEPS = 300  # of Lloyd's
_ROUNDING = 10.0  # as of eigenvalues in memory
_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
_OF_ROWS = ("embedding_", "degrees_", "graph_", "scaling_", "_scaling_ended")


@fit_blocks.register
def fit_spectral(machine: SpectralClustering, blocks: RowBlocks) -> None:
    """Fit to rows in blocks: degrees, the matrix, signs, places and the certificate, by passes."""
    machine._take_store()
    known = ("normalized", "ratio", "doubly_stochastic", "plain")
    check_parameters(machine, known, ("binary", "kernel"))
    divided = _checked(machine, blocks)
    remember_columns(machine, blocks)
    rows, watch = feature_rows(machine, blocks), watch_of(machine)
    positive = _refuse_negative(machine, rows, divided)
    z = blocks.total(feature_sums, rows.features)
    watch.tick(1, np.nan)
    M, faint = blocks.total(divided_products, rows.features, z if divided else None)
    if faint:
        _warn_of_faint(faint)
    machine.n_connected_ = 1  # by features every row is similar to every other
    count, by_gap = machine._pairs_to_find(blocks.count())
    values, V = _pairs(M, z if divided else None, count)
    machine.eigenvalues_ = values
    if by_gap:
        count = eigengap(values)
        values, V = values[:count], V[:, :count]
    carried = values > _ROUNDING * _EPS * np.sqrt(blocks.count()) * values.max(initial=0.0)
    if carried.sum() < count:
        warn_of_rank(machine, int(carried.sum()), count)
    values, V = values[carried], V[:, carried]
    signs = signs_of_extremes(
        blocks.gather(extreme_entries, rows.features, z if divided else None, V)
    )
    weights = np.zeros((len(z), count + 1))
    weights[:, : len(values)] = V * (signs * np.sqrt(values))
    weights[:, -1] = z if divided else 0.0
    places = Places(rows.features, weights, _padded(values, count), divided)
    _group(machine, rows, places, positive, watch)


def _checked(machine: Any, blocks: RowBlocks) -> bool:
    """Refuse what needs all rows at once; return whether degrees divide."""
    if machine.normalization not in _NORMALIZATIONS:
        refuse(
            machine, "normalization", machine.normalization,
            "be 'normalized' or 'plain' on rows in blocks",
        )  # fmt: skip
    divided = bool(_NORMALIZATIONS[machine.normalization].cuts)
    refuse_options(machine, neighbors=None)
    if divided:
        refuse_options(machine, self_loops=True)
    if not isinstance(machine.n_clusters, str) and blocks.count() < machine.n_clusters:
        raise ValueError(
            f"SpectralClustering: n_samples={blocks.count()} should be >= "
            f"n_clusters={machine.n_clusters}"
        )
    return divided


def _refuse_negative(machine: Any, rows: FeatureRows, divided: bool) -> bool:
    """Return whether no similarity is below zero, by a sample; cuts need that."""
    sample = drawn(rows.blocks)
    some = sample.only(slice(0, _LOOKED_AT))
    found = negative_entry(FactoredGram(rows.features, some.X), machine.kernel_)
    if found is not None and divided:
        raise ValueError(
            "Negative values in data passed to SpectralClustering: two of the rows drawn at random "
            f"have a similarity of {found[2]:.3g}, but normalization='normalized' cuts a graph, "
            "whose weights must not be negative. Use a kernel that is nowhere negative, such as "
            f"Gaussian, in place of {machine.kernel_!r}, or normalization='plain'"
        )
    return found is None


def _warn_of_faint(faint: int) -> None:
    warnings.warn(
        f"SpectralClustering: {faint} row(s) have no similarity to the others, by the features: "
        "they are in no cut, and their cluster says nothing. Take more landmarks, "
        "approximation=Nystrom(2000), or a wider kernel.",
        UserWarning,
        stacklevel=5,
    )


def _pairs(M: Array, z: Array | None, count: int) -> tuple[Array, Array]:
    """Return the leading eigenpairs of the small matrix; that of the degrees is known."""
    known = np.zeros((len(M), 0))
    if z is not None:
        unit = z / max(float(np.abs(z).max()), _TINY)  # squares of tiny sums would vanish
        known = (unit / np.linalg.norm(unit))[:, None]
        M = M - known @ (known.T @ M)
        M = M - (M @ known) @ known.T
    values, V = np.linalg.eigh((M + M.T) / 2)
    rest = max(0, min(count, len(M)) - known.shape[1])
    values, V = values[::-1][:rest], V[:, ::-1][:, :rest]
    values = np.concatenate([np.ones(known.shape[1]), values])
    return np.maximum(values, 0.0), np.hstack([known, V])


def _padded(values: Array, count: int) -> Array:
    found = np.zeros(count)
    found[: len(values)] = values
    return found


def extreme_entries(block: Block, features: Any, z: Array | None, V: Array) -> Array:
    """Return the entry of largest magnitude of each eigenvector in a block, with its sign."""
    block = counted(block)
    best = np.zeros(V.shape[1])
    for _, F in feature_pieces(block, features):
        entries = F @ V
        if z is not None:
            degrees = F @ z
            entries /= np.sqrt(np.where(degrees < FAINT, np.inf, degrees))[:, None]
        most = entries[np.abs(entries).argmax(axis=0), range(entries.shape[1])]
        best = np.where(np.abs(most) > np.abs(best), most, best)
    return best


# --- from places to clusters ----------------------------------------------------------------------


def _group(machine: Any, rows: FeatureRows, places: Places, positive: bool, watch: Any) -> None:
    """Keep the eigenpairs, divide the places into clusters, and let all be judged."""
    blocks, status = rows.blocks, Status.SOLVED
    placed = blocks.mapped(place_rows, places)
    if machine.assign == "sign":
        grouping: Any = BySign(1)
        machine.n_clusters_ = 2
    else:
        centres, status = _centres(machine, placed, places.dimension, watch)
        level = np.array([float(np.abs(centres[:, 0]).max())])
        grouping = ByCentre(centres, np.zeros(len(centres), dtype=np.int64), level)
        machine.n_clusters_ = len(centres)
    for name in _OF_ROWS:
        machine.__dict__.pop(name, None)
    machine._grouping = grouping
    machine._norm = _NORMALIZATIONS[machine.normalization](np.empty(0))
    machine._expansion = FeatureExpansion(
        rows.features, places.weights, np.zeros(places.dimension + 1)
    )
    labels_here(machine, placed, cluster_of_rows, grouping)
    machine.cut_values_ = CutValues(np.nan, np.nan, np.nan)
    if positive:
        shared = (places, grouping, machine.n_clusters_)
        machine.cut_values_ = _cut(*blocks.total(cluster_features, *shared))
    found = places.values[places.values != 0]
    value = Modes(found, np.empty((0, len(found))))
    machine.solution_ = ended("BlockEigenvectors", value, watch.stopped or status, 1, watch)
    answer = CutAnswer(places, getattr(grouping, "centres", None))
    problem = BlockCut(rows, places.divided, places.dimension)
    certified(machine, problem, answer, tol=float(machine.tol))


def _centres(machine: Any, placed: RowBlocks, k: int, watch: Any) -> tuple[Array, Status]:
    """Return mean places of the clusters, in the order of their first rows."""
    sample = drawn(placed)
    at, s = to_dense(sample.X), sample.counts
    if len(at) <= k:
        return at, Status.SOLVED
    problem = Partition(feature_gram(_as_they_are, at), k, s)
    solver = Lloyd(starts=int(machine.n_init), random_state=seed_of(machine.random_state))
    labels = solve(problem, solver).value.labels
    identity = feature_map(Linear().expression(), placed.n_columns)
    means, far = started(at, s, labels, k)
    found = walk(FeatureRows(placed, identity, k), means, far, watch, _MAX_STEPS, False)
    centres = (found.sums.means + far.point[:, None]).T[found.sums.W > 0]
    grouping = ByCentre(centres, np.zeros(len(centres), dtype=np.int64), np.ones(1))
    first = np.min(placed.gather(first_rows, grouping), axis=0)
    return np.asarray(centres[np.argsort(first, kind="stable")]), found.status


def _as_they_are(rows: Array) -> Array:
    return rows


def first_rows(block: Block, grouping: ByCentre) -> Array:
    """Return the number of the first row of a block in each cluster; infinity for none."""
    found = np.full(len(grouping.centres), np.inf)
    here, at = np.unique(grouping(to_dense(block.X)), return_index=True)
    found[here] = block.first + at
    return found


def cluster_of_rows(block: Block, grouping: Any) -> Array:
    """Return the cluster of each placed row."""
    return np.asarray(grouping(to_dense(block.X)))


def cluster_features(
    block: Block, places: Places, grouping: Any, count: int
) -> tuple[Array, Array]:
    """Return weights of the clusters, and sums of the features of their rows."""
    block = counted(block)
    s, W = block.counts, np.zeros(count)
    sums = np.zeros((count, places.features.dimension))
    for rows, F in feature_pieces(block, places.features):
        table = np.zeros((len(F), count))
        table[np.arange(len(F)), grouping(places.of(F @ places.weights))] = s[rows]
        W += table.sum(axis=0)
        sums += table.T @ F
    return W, sums


def _cut(W: Array, sums: Array) -> CutValues:
    """Return what the clusters cut: K between clusters is the product of their features."""
    between = sums @ sums.T
    volume = between.sum(axis=1)
    leaving = np.maximum(volume - between.diagonal(), 0.0)
    share = np.divide(leaving, volume, out=np.zeros_like(leaving), where=volume > 0)
    some = W > 0
    return CutValues(
        float(leaving.sum() / 2), float((leaving[some] / W[some]).sum()), float(share.sum())
    )
