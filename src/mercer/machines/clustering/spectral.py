"""Estimator `SpectralClustering`: parameters, and clusters from spectral coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import ApproximateKernel, Approximation
from mercer.array_types import Array, Points
from mercer.gram import EdgeWeight, Gram, components
from mercer.gram.build import feature_gram
from mercer.gram.policy import FLOAT32_SHARE, FLOAT32_TOL_CUTS, LARGEST_UNASKED, stored_dtype
from mercer.gram.transformed import with_diagonal
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import (
    CallbackSupportMixin,
    KernelMachine,
    all_or_nothing,
    kernel_of,
    progress_of,
    with_callbacks,
)
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    is_real,
    refuse,
    seed_of,
)
from mercer.machines.base.sharing import Reusing, SharedDecomposition
from mercer.machines.clustering.graph_cut_relaxation import (
    DoublyStochastic,
    Normalization,
    NormalizedCut,
    Plain,
    RatioCut,
    RelaxedCut,
    Solving,
    affinity,
    certify_stochastic,
    eigengap,
    float32_serves,
    loops,
    negative_entry,
    refuse_negative,
    refuse_negative_rows,
    relax,
    sparse_matrix,
    warn_of_rank,
    warn_of_strangers,
)
from mercer.machines.clustering.lloyd import Lloyd
from mercer.machines.clustering.problem import CutValues, Partition, cut_values
from mercer.machines.clustering.sinkhorn import Scaling
from mercer.rows.points import is_sparse, own
from mercer.solvers.base import Callback, Status
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve
from mercer.solvers.eigen.certificate import is_orthonormal
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- cut parameters ------------------------------------------------------------------------------
#
# Parameters of spectral clustering, checked alone and beside the data.


def check_parameters(
    machine: Any, normalizations: tuple[str, ...], weights: tuple[str, ...]
) -> None:
    """Refuse parameters that mean nothing."""
    check_choice(machine, "normalization", normalizations)
    check_choice(machine, "weights", weights)
    check_choice(machine, "assign", ("kmeans", "sign"))
    check_optional_count(machine, "neighbors")
    check_count(machine, "n_init")
    check_count(machine, "max_clusters")
    check_flag(machine, "self_loops")
    check_real(machine, "tol", above=0)
    check_seed(machine)
    check_limits(machine)
    count = machine.n_clusters
    whole = is_real(count) and isinstance(count, Integral) and int(count) > 0
    if not whole and not (isinstance(count, str) and count == "eigengap"):
        refuse(machine, "n_clusters", count, "be a positive integer or 'eigengap'")
    if isinstance(count, str) and machine.max_clusters < 2:
        refuse(machine, "max_clusters", machine.max_clusters, "be at least 2 for 'eigengap'")
    if machine.assign == "sign" and count != 2:
        refuse(machine, "assign", machine.assign, "be 'kmeans' unless n_clusters=2")


def check_against(machine: Any, X: Points) -> None:
    """Refuse what only shows beside the data, before the matrix is made."""
    n = X.shape[0]
    if not isinstance(machine.n_clusters, str) and n < machine.n_clusters:
        raise ValueError(
            f"{type(machine).__name__}: n_samples={n} should be >= n_clusters={machine.n_clusters}"
        )
    if machine.neighbors is not None and machine.neighbors >= n:
        must = f"be below the number of rows: n_samples={n}"
        refuse(machine, "neighbors", machine.neighbors, must)
    if machine.neighbors is not None and machine._is_precomputed() and is_sparse(X):
        refuse(
            machine,
            "neighbors",
            machine.neighbors,
            "be None for a sparse affinity, a graph as it is",
        )


# --- grouping ------------------------------------------------------------------------------------
#
# From places to clusters: by sign, by k-means, by components; and the same for new points.


class Grouping(ABC):
    """A division of the space of places into clusters."""

    @abstractmethod
    def __call__(self, places: Array) -> Array:
        """Return the cluster of each place."""


@dataclass(frozen=True, eq=False)
class BySign(Grouping):
    """Two clusters, by the sign of one coordinate."""

    column: int

    def __call__(self, places: Array) -> Array:
        """Return 1 where the coordinate is positive, else 0."""
        return (places[:, self.column] > 0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ByCentre(Grouping):
    """The nearest centre, among those of the component that a point belongs to.

    Attributes
    ----------
    centres : (k, d) array
        Mean place of each cluster.
    owner : (k,) int array
        The component of each cluster.
    level : (c,) array
        The first c coordinates tell components apart: on its own component, coordinate j is
        level[j], elsewhere 0.
    """

    centres: Array
    owner: Array
    level: Array

    def __call__(self, places: Array) -> Array:
        """Find the component, then the centre."""
        squared = (
            np.square(self.centres).sum(axis=1)[None, :] - 2.0 * places @ self.centres.T
        )  # the place's own length changes no comparison
        if len(self.level) > 1:
            component = np.argmax(places[:, : len(self.level)] / self.level, axis=1)
            squared[component[:, None] != self.owner[None, :]] = np.inf
        return np.asarray(np.argmin(squared, axis=1), dtype=np.int64)


def by_means(
    places: Array, component: Array, shares: Array, level: Array, n_init: int, seed: int
) -> tuple[Array, ByCentre, Status]:
    """Divide each component into its share of clusters by k-means.

    Parameters
    ----------
    places : (n, d) array
        Where the points are; a component has coordinates of its own, zero for the others.
    component : (n,) int array
        The component of each point.
    shares : (c,) int array
        How many clusters each component is divided into.
    level : (c,) array
        See `ByCentre`.
    n_init : int
        Restarts of k-means.
    seed : int
        Seed of their starts.

    Returns
    -------
    labels : (n,) int array
        Clusters are numbered by component, within one by their first point.
    grouping : ByCentre
        The same for new places.
    status : Status
        How k-means ended, the first ending that is not the wished one.
    """
    labels = np.empty(len(places), dtype=np.int64)
    owner = np.repeat(np.arange(len(shares)), shares)
    start, status = 0, Status.SOLVED
    for j, share in enumerate(shares):
        rows = np.flatnonzero(component == j)
        parted, ended = _means(places[rows], int(share), n_init, seed)
        labels[rows], status = start + parted, status if ended.ok else ended
        start += int(share)
    used, labels = np.unique(labels, return_inverse=True)
    sizes = np.bincount(labels)
    centres = np.stack([np.bincount(labels, column) / sizes for column in places.T], axis=1)
    return labels, ByCentre(centres, owner[used], level), status


def _means(rows: Array, count: int, n_init: int, seed: int) -> tuple[Array, Status]:
    if count == 1 or len(rows) == 0:
        return np.zeros(len(rows), dtype=np.int64), Status.SOLVED
    if count >= len(rows):
        return np.arange(len(rows)), Status.SOLVED
    problem = Partition(feature_gram(_as_they_are, rows), count, np.ones(len(rows)))
    solution = solve(problem, Lloyd(starts=n_init, random_state=seed))
    found = solution.value.labels
    _, first = np.unique(found, return_index=True)
    number = np.empty(int(found.max()) + 1, dtype=np.int64)
    number[found[np.sort(first)]] = np.arange(len(first))
    return np.asarray(number[found]), solution.status


def _as_they_are(rows: Array) -> Array:
    return rows


# --- spectral ------------------------------------------------------------------------------------
#
# Clusters from the leading eigenvectors of an affinity.

_NORMALIZATIONS: dict[str, type[Normalization]] = {
    "normalized": NormalizedCut,
    "ratio": RatioCut,
    "doubly_stochastic": DoublyStochastic,
    "plain": Plain,
}
_WEIGHTS = {"binary": EdgeWeight.BINARY, "kernel": EdgeWeight.KERNEL}
_SCALING_TOL = 1e-11
_CANCELLED = 1e-6  # of k(x, x): degrees below have lost too many digits to it


class SpectralClustering(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Certified,
    Reusing,
    KernelMachine,
):
    """Spectral clustering: relaxed cuts of a similarity graph, clusters of any shape.

    Finding the clusters that cut the least similarity, balanced by their sizes or degrees, is
    NP-hard; dropping the demand that membership be 0 or 1 leaves the k leading eigenvectors of a
    normalised similarity matrix. They place the rows in k dimensions, where k-means, or for two
    clusters a sign, tells them apart.

    Parameters
    ----------
    n_clusters : int or "eigengap", default=8
        How many clusters; "eigengap" takes the number, from 2 to `max_clusters`, after which the
        eigenvalues drop the most.
    kernel : Kernel, str or callable, default="gaussian"
        What similarity is; "gaussian" takes its scale from the data. `Precomputed()` takes a
        symmetric affinity matrix, dense or sparse.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    normalization : {"normalized", "ratio", "doubly_stochastic", "plain"}, default="normalized"
        With D the row sums of K: "normalized" cuts use D^-1/2 K D^-1/2, "ratio" cuts K - D + I,
        "doubly_stochastic" the limit of K <- D^-1/2 K D^-1/2, all of whose rows sum to one. "plain"
        relaxes kernel K-means: eigenvectors of K itself, rows brought to length one. The first
        three need similarities of at least zero, the last any valid kernel.
    neighbors : int or None, default=None
        Keep only the similarities of each row to so many nearest others, a sparse graph,
        symmetrised as the mean of both directions. None keeps all. Of a precomputed matrix the
        largest entries of each row are kept.
    weights : {"binary", "kernel"}, default="binary"
        What an edge of the graph of neighbours weighs: one, or the kernel of its ends.
    self_loops : bool, default=True
        Whether the similarity of a row with itself counts in its degree, as in the formulas above;
        scikit-learn leaves it out.
    assign : {"kmeans", "sign"}, default="kmeans"
        How places become clusters; "sign", of the second vector, is for two clusters.
    n_init : int, default=10
        Restarts of k-means.
    max_clusters : int, default=10
        The largest number that "eigengap" considers.
    tol : float, default=1e-5
        Largest residual of the eigenvectors, relative to the largest eigenvalue.
    random_state : int, RandomState or None, default=0
        Where the starts of k-means come from.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the eigensolver.
    time_limit : float or None, default=None
        Seconds after which the eigensolver stops with what it has.

    Attributes
    ----------
    labels_ : int array of shape (n_samples,)
        The cluster of each training row.
    n_clusters_ : int
        How many there are.
    embedding_ : array of shape (n_samples, n_clusters)
        Where the rows were placed; zero along eigenvectors whose eigenvalue is but rounding.
    eigenvalues_ : array
        Leading eigenvalues of the normalised matrix, largest first; for "eigengap" all that were
        compared.
    degrees_ : array of shape (n_samples,)
        Row sums of the affinity.
    n_connected_ : int
        Connected components of the graph; 1 for "plain", which does not look.
    cut_values_ : CutValues
        What the clusters cut: `cut`, `ratio` and `normalized`.
    graph_ : sparse array of shape (n_samples, n_samples)
        The affinity, where it is sparse: of `neighbors`, or as it was given.
    scaling_ : array of shape (n_samples,)
        For "doubly_stochastic", the factors that make all rows sum to one.
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    solution_ : Solution
        How the eigensolver ended.
    certificate_ : Certificate
        Residuals and orthogonality of the eigenvectors and a search for missed ones, from the data
        in float64 when first read; for "doubly_stochastic" the row sums as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SpectralClustering
    >>> from mercer.kernels import Gaussian
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([circle, 4 * circle])
    >>> machine = SpectralClustering(2, Gaussian(0.5), random_state=0).fit(X)
    >>> np.bincount(machine.labels_[:60]).tolist(), np.bincount(machine.labels_[60:]).tolist()
    ([60], [0, 60])
    >>> machine.predict([[0.9, 0.0], [0.0, 3.9]]).tolist()
    [0, 1]
    >>> machine.certificate_.ok
    True
    """

    shares = (
        SharedDecomposition(("n_clusters", "max_clusters", "assign", "n_init", "random_state")),
    )

    exact_rows = LARGEST_UNASKED

    def __init__(
        self,
        n_clusters: int | str = 8,
        kernel: Kernel | str | Any = "gaussian",
        *,
        approximation: Approximation | str | None = "auto",
        normalization: str = "normalized",
        neighbors: int | None = None,
        weights: str = "binary",
        self_loops: bool = True,
        assign: str = "kmeans",
        n_init: int = 10,
        max_clusters: int = 10,
        tol: float = 1e-5,
        random_state: Any = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_clusters: Any = n_clusters  # checked when `fit` starts, as all parameters are
        self.kernel = kernel
        self.approximation = approximation
        self.normalization = normalization
        self.neighbors = neighbors
        self.weights = weights
        self.self_loops = self_loops
        self.assign = assign
        self.n_init = n_init
        self.max_clusters = max_clusters
        self.tol = tol
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; for a precomputed kernel the affinity matrix itself, dense or sparse; strings for
            string kernels.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted machine.
        """
        store = self._take_store()
        check_parameters(self, tuple(_NORMALIZATIONS), tuple(_WEIGHTS))
        X = self._training_rows(X)
        check_against(self, X)
        names = self._column_names()
        kernel = kernel_of(self.kernel, None if self._is_precomputed() else X, names=names)
        self._use_kernel(kernel, X, None, names, store=store)
        with progress_of(self, self.callback) as callback:
            solving = Solving(float(self.tol), callback, self.time_limit, store)
            for dtype in self._dtypes(X):
                base, norm, shift, found = self._solved(X, dtype, solving)
                carried = norm.carried(found.values, base.dtype, float(self.tol))
                if carried.all():
                    break
        rank, count = int(carried.sum()), int(found.shares.sum())
        if rank < count:
            warn_of_rank(self, rank, count)
        self._keep(base, norm, shift, found, carried)
        return self

    def predict(self, X: Any) -> Array:
        """Assign new rows to the clusters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel their affinities to the training rows.

        Returns
        -------
        int array of shape (n_samples,)
            The cluster whose mean place is nearest.
        """
        check_is_fitted(self)
        return self._grouping(self._places(X))

    def transform(self, X: Any) -> Array:
        """Place new rows by the eigenvector equation, from their similarities to training rows.

        Training rows come back to where they were, up to `tol`; but with `neighbors` a new row has
        its nearest training rows for neighbours, which for a training row is itself first.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel their affinities to the training rows.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            The places.
        """
        check_is_fitted(self)
        return self._places(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # precomputed affinities, too
        tags.input_tags.positive_only = self._is_precomputed() and self.normalization != "plain"
        return tags

    @property
    def _n_features_out(self) -> int:
        if hasattr(self, "embedding_"):
            return int(self.embedding_.shape[1])
        held: Any = self._expansion  # of rows in blocks: weights of the places, and of the degree
        return int(held.weights.shape[1]) - 1

    def _places(self, X: Any) -> Array:
        precomputed = isinstance(self.kernel_, Precomputed)
        if precomputed and is_sparse(X):
            points = sparse_matrix(self, X, reset=False)
        else:
            points = new_rows(self, X, precomputed)
        if self._norm.cuts and precomputed:
            refuse_negative_rows(self, points)
        sums = refuse_overflown(self, lambda: self._expansion(points))
        warn_of_strangers(self, sums)
        values = np.zeros(sums.shape[1] - 1)  # zero where there is no pair
        found = self.solution_.value.values
        values[: len(found)] = found
        return self._norm.extend(sums, values)

    def _training_rows(self, X: Any) -> Points:
        if self._is_precomputed() and is_sparse(X):
            return sparse_matrix(self, X, reset=True)
        rows = self._rows_alone(X)
        return rows if self._is_precomputed() else own(rows)  # kept, to join new rows to them

    def _dtypes(self, X: Points) -> tuple[Any, ...]:
        """Return types of a stored matrix to try: float32 where it serves the tolerance."""
        exactly = self.tol < FLOAT32_TOL_CUTS or _NORMALIZATIONS[self.normalization].balanced
        if exactly or self._is_precomputed() or self.neighbors is not None:
            return (np.float64,)
        names, most = self._column_names(), FLOAT32_SHARE * self.tol
        serves = partial(float32_serves, self.kernel_, X, names, most)
        dtype = stored_dtype(X.shape[0], serves)
        return (dtype,) if dtype == np.float64 else (dtype, np.dtype(np.float64))

    def _solved(
        self, X: Points, dtype: Any, solving: Solving
    ) -> tuple[Gram, Normalization, Array, RelaxedCut]:
        """Return affinity, normalisation, what that adds to the diagonal, and eigenpairs."""
        kind = _NORMALIZATIONS[self.normalization]
        base = solving.store.once(("affinity", dtype), partial(self._affinity, X, dtype, kind))
        norm, shift = self._normalized(kind, base, solving)
        return base, norm, shift, self._relaxed(base, norm, shift, solving)

    def _affinity(self, X: Points, dtype: Any, kind: type[Normalization]) -> Gram:
        options: dict[str, Any] = {"names": self._column_names(), "dtype": dtype}
        base = affinity(self.kernel_, X, self.neighbors, _WEIGHTS[self.weights], **options)
        if kind.cuts:
            refuse_negative(self, base)
        return base

    def _normalized(
        self, kind: type[Normalization], base: Gram, solving: Solving
    ) -> tuple[Normalization, Array]:
        """Make the normalisation for an affinity, and say what it adds to the diagonal."""
        for name in ("scaling_", "graph_"):  # an earlier fit with other parameters may have left
            self.__dict__.pop(name, None)
        if base.csr is not None:
            self.graph_ = base.csr
        if not kind.cuts:
            self.degrees_ = np.asarray(base @ np.ones(base.shape[0]), dtype=np.float64)
            return kind(self.degrees_), np.zeros(base.shape[0])
        shift, self.degrees_ = loops(base, counted=bool(self.self_loops), positive=kind.balanced)
        if not kind.balanced:
            return kind(self.degrees_), shift
        problem = Scaling(with_diagonal(base, shift))
        found = solving.store.once("scaling", partial(solving, problem, tol=_SCALING_TOL))
        self.scaling_, self._scaling_ended = found.value.scale, found.status
        return kind(self.scaling_), shift

    def _relaxed(
        self, base: Gram, norm: Normalization, shift: Array, solving: Solving
    ) -> RelaxedCut:
        n = base.shape[0]
        if norm.cuts:
            component = solving.store.once(("components", base.dtype), partial(components, base))
        else:
            component = np.zeros(n, dtype=np.int64)
        self.n_connected_ = int(component.max()) + 1
        count, by_gap = self._pairs_to_find(n)
        found = relax(self, norm, with_diagonal(base, shift), component, count, solving)
        self.eigenvalues_ = norm.shown(found.values)
        return found.first(eigengap(found.values)) if by_gap else found

    def _pairs_to_find(self, n: int) -> tuple[int, bool]:
        """Return how many pairs to find, and whether their gaps choose the number of clusters."""
        if not isinstance(self.n_clusters, str):
            return int(self.n_clusters), False
        most = min(int(self.max_clusters), n)
        if self.n_connected_ > most:
            return most, False
        return min(most + 1, n), True  # the drop after the last candidate counts, too

    def _keep(
        self, base: Gram, norm: Normalization, shift: Array, found: RelaxedCut, carried: Array
    ) -> None:
        modes = Modes(found.values, found.vectors)
        vectors = np.zeros((base.shape[0], int(found.shares.sum())))
        vectors[:, : len(carried)] = found.vectors * carried
        self.embedding_ = norm.place(vectors)
        self.labels_, self._grouping, grouped = self._grouped(found)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._norm, self._expansion = norm, base.expand(norm.expanded(vectors))
        ended = found.solution.status
        if ended.ok and norm.balanced:  # its row sums come first
            ended = self._scaling_ended
        status = grouped if ended.ok and grouped is Status.TIME_LIMIT else ended
        self.solution_ = replace(found.solution, value=modes, status=status)
        self.cut_values_ = self._cut(norm, base)
        judge = certify_stochastic if norm.balanced else certify
        question = partial(_question, norm=norm, shift=shift, count=len(found.values))
        judged = partial(judge, tol=float(self.tol))
        # eigenvectors of rounding are those of no matrix that is made anew; components hang on
        # entries that are zero, which rounding of distances may decide
        rounding = self.n_connected_ > 1 or self._cancels(shift)
        # similarities of features may be negative, and eigenvalues then above one
        rounding = rounding or isinstance(self.kernel_, ApproximateKernel)
        eager = not bool(carried.all()) or rounding or not is_orthonormal(modes)
        self._judgement = lazy_certificate(base, question, modes, judged, eager=eager)

    def _cancels(self, shift: Array) -> bool:
        """Return whether taking k(x, x) off leaves some degree few digits of its own."""
        return float(self.degrees_.min()) < _CANCELLED * float(np.abs(shift).max(initial=0.0))

    def _grouped(self, found: RelaxedCut) -> tuple[Array, Grouping, Status]:
        if self.assign == "sign" and len(found.shares) == 1:
            sign = BySign(1)
            return sign(self.embedding_), sign, Status.SOLVED
        level = self.embedding_[:, : len(found.shares)].max(axis=0)
        seed = seed_of(self.random_state)
        return by_means(
            self.embedding_, found.component, found.shares, level, int(self.n_init), seed
        )

    def _cut(self, norm: Normalization, base: Gram) -> CutValues:
        if not norm.cuts and negative_entry(base, self.kernel_) is not None:
            return CutValues(np.nan, np.nan, np.nan)  # similarities below zero weigh no cut
        counted = bool(self.self_loops) or not norm.cuts
        gram = base if counted else with_diagonal(base, -base.diag())
        return cut_values(gram, self.labels_)


def _question(gram: Gram, norm: Normalization, shift: Array, count: int) -> Eigenproblem:
    return Eigenproblem(norm.matrix(with_diagonal(gram, shift)), count)
