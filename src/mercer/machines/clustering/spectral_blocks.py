"""Spectral clustering over blocks: relaxed cut, fit, and certificate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.build import feature_gram
from mercer.gram.factored import FactoredGram, FeatureExpansion, over_features
from mercer.kernels import Linear
from mercer.kernels.features import feature_map
from mercer.machines.base.parameters import refuse, seed_of
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
from mercer.machines.blocks.problem import FeatureRows, counted, feature_pieces
from mercer.machines.clustering.blocks import started, walk
from mercer.machines.clustering.graph_cut_relaxation import (
    NormalizedCut,
    Plain,
    eigengap,
    negative_entry,
    warn_of_rank,
)
from mercer.machines.clustering.lloyd import Lloyd
from mercer.machines.clustering.problem import CutValues, Partition
from mercer.machines.clustering.spectral import (
    ByCentre,
    BySign,
    SpectralClustering,
    check_parameters,
)
from mercer.machines.decomposition.blocks import signs_of_extremes
from mercer.rows.blocks import Block, RowBlocks
from mercer.rows.points import to_dense
from mercer.solvers.base import Status
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve
from mercer.solvers.eigen.certificate import EigenQuantities
from mercer.solvers.eigen.problem import Modes

# --- cut -----------------------------------------------------------------------------------------
#
# Relaxed cuts of rows in blocks: leading eigenvectors of normalised K = F F', by the features.
#
# With d_i = phi_i'z, z = sum_j s_j phi_j, the eigenvectors of D^-1/2 K D^-1/2 are u = G v /
# sqrt(m) for eigenpairs (m, v) of the small matrix G'G = sum_i s_i phi_i phi_i' / d_i.

FAINT = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)  # degrees below are none


@dataclass(frozen=True, eq=False)
class BlockCut:
    """The leading eigenvectors of a normalised affinity of rows in blocks.

    Attributes
    ----------
    rows : FeatureRows
        Features and weights.
    divided : bool
        Whether rows are divided by the roots of their degrees (normalised cut); else K is taken as
        it is.
    wanted : int
        How many pairs, unless the rank is less.
    """

    rows: FeatureRows
    divided: bool
    wanted: int


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows are placed by the eigenvectors: a map that travels to where the blocks are.

    Attributes
    ----------
    features : callable
        phi.
    weights : (D, k + 1) array
        Sums over training rows of phi times the eigenvectors (k), and of phi alone: the degree.
    values : (k,) array
        Eigenvalues; zero where there is no eigenvector.
    divided : bool
        Whether places are divided by the degree; else rows are brought to length one.
    """

    features: Any
    weights: Array
    values: Array
    divided: bool

    @property
    def dimension(self) -> int:
        """How many coordinates a place has."""
        return len(self.values)

    def __call__(self, X: Any) -> Array:
        """Place rows."""

        def places(F: Any) -> Array:
            return self.of(np.asarray(F @ self.weights))

        return over_features(places, self.features, X, len(self.weights))

    def of(self, sums: Array) -> Array:
        """Place rows by their sums phi'w (n, k + 1); those without a degree are at zero."""
        found = sums[:, :-1] * _inverse(self.values)
        if self.divided:
            degrees = sums[:, -1:]
            return np.asarray(found / np.where(degrees < FAINT, np.inf, degrees))
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.where(lengths > 0, lengths, 1.0))


@dataclass(frozen=True, eq=False)
class CutAnswer:
    """An answer to a `BlockCut`, and what k-means made of it.

    Attributes
    ----------
    places : Places
        The eigenpairs.
    centres : (c, k) array or None
        Mean place of each cluster; None where clusters are not made by means.
    """

    places: Places
    centres: Array | None


def _inverse(values: Array) -> Array:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)


def place_rows(block: Block, places: Places) -> Array:
    """Return the places of the rows of a block."""
    found = np.empty((len(block), places.dimension))
    for rows, F in feature_pieces(block, places.features):
        found[rows] = places.of(F @ places.weights)
    return found


def feature_sums(block: Block, features: Any) -> Array:
    """Return the sum of s phi over the rows of a block."""
    block = counted(block)
    s, sums = block.counts, np.zeros(features.dimension)
    for rows, F in feature_pieces(block, features):
        sums += s[rows] @ F
    return sums


def divided_products(block: Block, features: Any, z: Array | None) -> tuple[Array, int]:
    """Return sum s phi phi' / d over the rows of a block, and how many have no degree.

    Without z there is no division.
    """
    block = counted(block)
    s, m, faint = block.counts, features.dimension, 0
    products = np.zeros((m, m))
    for rows, F in feature_pieces(block, features):
        scale = s[rows]
        if z is not None:
            degrees = F @ z
            none = degrees < FAINT
            faint += int(none.sum())
            scale = np.where(none, 0.0, scale / np.where(none, 1.0, degrees))
        np.multiply(F, np.sqrt(scale)[:, None], out=F)
        products += F.T @ F
    return products, faint


# --- cut -----------------------------------------------------------------------------------------
#
# Are these the leading eigenvectors of the normalised affinity? The small matrix is made anew.
#
# Degrees, the matrix of features and the means of the clusters are added up over all rows again,
# from the rows and the stored answer alone. That the eigenvalues outside are smaller is computed
# from the whole small matrix, not probed.

_TOL = 1e-5
_FLOOR = 1e-3  # of the largest eigenvalue: what residuals of smaller ones are measured against
_CUT_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class CutQuantities(EigenQuantities):
    """Measures of eigenpairs and clusters of rows in blocks.

    Attributes
    ----------
    degree_error : float
        How far the stored sum of features, which degrees come from, is from that of all rows.
    centre_error : float
        Largest distance of a centre from the mean of the rows nearest to it, over the root of the
        mean squared length of all places; 0 where clusters are not made by means.
    without_degree : int
        Rows that no similarity reaches, by the features: they were left out.
    """

    degree_error: float = 0.0
    centre_error: float = 0.0
    without_degree: int = 0


@certify.register
def _(problem: BlockCut, value: CutAnswer, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    blocks, features = problem.rows.blocks, problem.rows.features
    z, W, sums, squares = blocks.total(placed_sums, value.places, value.centres)
    size = float(np.linalg.norm(z))
    off = float(np.linalg.norm(value.places.weights[:, -1] - z)) / max(size, _CUT_TINY)
    products, faint = blocks.total(divided_products, features, z if problem.divided else None)
    found = _measure(products, value.places, problem)
    apart = 0.0
    if value.centres is not None:
        means = sums / np.maximum(W, _CUT_TINY)[:, None]
        apart = np.linalg.norm((means - value.centres)[W > 0], axis=1).max(initial=0.0)
        apart = float(apart) / max(np.sqrt(squares / max(float(W.sum()), _CUT_TINY)), _CUT_TINY)
    measured = CutQuantities(*found, off if problem.divided else 0.0, apart, faint)
    ok = (
        max(measured.residual, measured.orthonormality, measured.degree_error) <= tol
        and measured.centre_error <= tol
        and measured.largest_outside <= 1.0 + tol
    )
    statement = (
        f"{len(value.places.values)} eigenpairs with residual {measured.residual:.1e}, no other is "
        f"larger than {measured.largest_outside:.3g} of the last, and centres are the means of "
        f"their rows within {measured.centre_error:.1e}, over all rows of the blocks"
    )
    if faint:
        statement += f"; {faint} rows that no landmark reaches are in no cut"
    return Certificate(bool(ok), measured, tol, statement)


def _measure(
    M: Array, places: Places, problem: BlockCut
) -> tuple[float, float, float, float, float]:
    """Return residual, orthonormality, trace, largest outside: in the space of the rows."""
    there = places.values != 0
    values = places.values[there]
    W = places.weights[:, :-1][:, there] / values
    top = float(np.abs(values).max(initial=_CUT_TINY))
    image = M @ W
    left = image - W * values
    # |G x|^2 = x'Mx for vectors G x over the rows
    lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", left, M @ left), 0.0))
    residual = float((lengths / np.maximum(np.abs(values), _FLOOR * top)).max(initial=0.0))
    apart = float(np.abs(W.T @ image - np.eye(len(values))).max(initial=0.0))
    Q = np.linalg.qr(W)[0]
    rest = M - Q @ (Q.T @ M)
    rest = rest - (rest @ Q) @ Q.T
    outside = float(np.linalg.eigvalsh((rest + rest.T) / 2)[-1]) if len(M) > len(values) else 0.0
    trace = float(np.trace(M))
    outside = max(outside - 1e-12 * trace, 0.0) / float(values.min(initial=top))
    if len(values) < problem.wanted:  # nothing but rounding may be left
        outside = 0.0 if outside <= np.sqrt(np.finfo(np.float64).eps) else np.inf
    return residual, apart, float(values.sum()) / max(trace, _CUT_TINY), outside, outside


def placed_sums(
    block: Block, places: Places, centres: Array | None
) -> tuple[Array, Array, Array, float]:
    """Return the sum of features, and weights and sums of the places nearest to each centre."""
    block = counted(block)
    s, k = block.counts, places.dimension
    c = 1 if centres is None else len(centres)
    z, W, sums, squares = np.zeros(places.features.dimension), np.zeros(c), np.zeros((c, k)), 0.0
    for rows, F in feature_pieces(block, places.features):
        w = s[rows]
        z += w @ F
        if centres is None:
            continue
        at = places.of(F @ places.weights)
        nearest = (np.square(centres).sum(axis=1) - 2.0 * at @ centres.T).argmin(axis=1)
        table = np.zeros((len(at), c))
        table[np.arange(len(at)), nearest] = w
        W += table.sum(axis=0)
        sums += table.T @ at
        squares += float(w @ np.einsum("ij,ij->i", at, at))
    return z, W, sums, squares


# --- spectral ------------------------------------------------------------------------------------
#
# Spectral clustering over blocks: eigenvectors of a small matrix of features, then k-means.
#
# Landmarks stand for the kernel (Fowlkes, Belongie, Chung and Malik's use of Nystrom's method): a
# pass adds up degrees, one the matrix, and places of k numbers a row are kept where the rows are.

_NORMALIZATIONS = {"normalized": NormalizedCut, "plain": Plain}
_LOOKED_AT = 2000  # rows of the sample among which similarities below zero are looked for
_MAX_STEPS = 300  # of Lloyd's
_ROUNDING = 10.0  # as of eigenvalues in memory
_EPS = float(np.finfo(np.float64).eps)
_SPECTRAL_TINY = float(np.finfo(np.float64).tiny)
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
        unit = z / max(float(np.abs(z).max()), _SPECTRAL_TINY)  # squares of tiny sums would vanish
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
