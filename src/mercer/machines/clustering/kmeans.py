"""Estimator `KMeans`, cluster means in feature space, and its starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.expression import Expression, bind_columns
from mercer.gram import Expansion, Gram, Need, Source, make_gram
from mercer.gram.build import refuse_overflow, refuse_underflow
from mercer.gram.factored import FeatureExpansion, over_features, squared_lengths
from mercer.gram.policy import FLOAT32_SCATTER, LARGEST_UNASKED, stored_dtype
from mercer.kernels import Kernel, Linear, Precomputed
from mercer.machines.base.certificate import Certified, lazy_certificate
from mercer.machines.base.inputs import new_rows, read_array, refuse_nonfinite, refuse_overflown
from mercer.machines.base.machine import (
    CallbackSupportMixin,
    KernelMachine,
    all_or_nothing,
    kernel_of,
    progress_of,
    with_callbacks,
)
from mercer.machines.base.parameters import (
    check_count,
    check_flag,
    check_limits,
    check_seed,
    refuse,
)
from mercer.machines.base.sharing import Reusing, SharedDecomposition
from mercer.machines.base.targets import (
    DistinctRows,
    check_weights,
    distinct_rows,
    rows_as_they_are,
)
from mercer.machines.clustering.balanced import BalancedLloyd
from mercer.machines.clustering.distances import squared_distances
from mercer.machines.clustering.lloyd import Lloyd
from mercer.machines.clustering.problem import (
    BalancedPartition,
    Partition,
    about_the_middle,
    scatter_share,
    wide_features,
)
from mercer.machines.clustering.relaxed_partition import LaterRelaxation, Relaxation, Relaxed
from mercer.machines.clustering.seeding import Given, PlusPlus, RandomPoints, Seeding
from mercer.rows.chunks import gathered
from mercer.rows.device_rows import CardRows
from mercer.rows.points import as_points, row_count, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- means ---------------------------------------------------------------------------------------
#
# Means of clusters in feature space, and how far new points are from them.


@dataclass(frozen=True, eq=False)
class KernelDiagonal:
    """k(z, z) of new points.

    Attributes
    ----------
    expression : Expression
        The kernel.
    """

    expression: Expression

    def __call__(self, Z: Points) -> Array:
        """Evaluate the diagonal."""
        return Source(self.expression, Z).diag()


@dataclass(frozen=True, eq=False)
class FeatureLengths:
    """|phi(z)|^2 of new points, by their features.

    Attributes
    ----------
    features : callable
        phi.
    """

    features: Any

    def __call__(self, Z: Points) -> Array:
        """Add up squares."""
        return over_features(squared_lengths, self.features, Z)


@dataclass(frozen=True, eq=False)
class ClusterMeans:
    """Means m_c = sum_i w_i phi(x_i) / W_c over the points of each cluster.

    Attributes
    ----------
    closeness : Expansion
        m_c'phi(z) - |m_c|^2 / 2 for every cluster: the larger, the nearer.
    own : OwnProducts, OwnLengths or None
        |phi(z)|^2; None where only a matrix of the points was ever given.
    objective : float
        Weighted sum of squared distances of the points to their means.
    """

    closeness: Expansion
    own: KernelDiagonal | FeatureLengths | None
    objective: float


def means_of(
    problem: Partition, labels: Array, kernel: Kernel, names: list[str] | None
) -> ClusterMeans:
    """Collect the means of a partition."""
    own = _own(problem.gram, kernel, names)
    if problem.gram.features is not None:
        found = problem.feature_means(labels)
        level = -0.5 * np.square(found.means).sum(axis=1)
        return ClusterMeans(
            problem.gram.expand_weights(found.means.T).plus(level), own, found.objective
        )
    W, within = problem.cluster_weights(labels), problem.within(labels)
    closeness = problem.gram.expand(problem.indicator(labels) / W).plus(-within / W**2 / 2)
    return ClusterMeans(closeness, own, problem.objective(labels, within))


def _own(
    gram: Gram, kernel: Kernel, names: list[str] | None
) -> KernelDiagonal | FeatureLengths | None:
    if gram.factor is not None:
        return FeatureLengths(gram.features)
    if gram.source is None:
        return None
    return KernelDiagonal(bind_columns(kernel.expression(), names))


# --- starts --------------------------------------------------------------------------------------
#
# Where a clustering starts, as users say it: words, labels, centres, functions.

WORDS: dict[str, Seeding] = {
    "k-means++": PlusPlus(),
    "random": RandomPoints(),
    "relaxation": Relaxed(),
}
_MUST = (
    "be 'k-means++', 'random', 'relaxation', an array of labels (n_samples,) or of centres "
    "(n_clusters, n_features), or a function of X, n_clusters and random_state giving one of these"
)


def check_start(machine: Any) -> None:
    """Require what `seeding` understands."""
    init = machine.init
    if isinstance(init, str):
        if init not in WORDS:
            refuse(machine, "init", init, _MUST)
    elif not callable(init) and np.ndim(init) not in (1, 2):
        refuse(machine, "init", init, _MUST)


def seeding(
    machine: Any, X: Points, rows: DistinctRows, gram: Gram, rng: np.random.RandomState
) -> Seeding:
    """Return the rule for the start; what is said of all rows is passed on to the merged ones."""
    init, k = machine.init, int(machine.n_clusters)
    if isinstance(init, str):
        return WORDS[init]
    if callable(init):
        init = init(X, k, random_state=rng)
    if np.ndim(init) == 1:
        return Given(_labels(machine, init, row_count(X), k)[rows.first])
    if np.ndim(init) != 2:
        refuse(machine, "init", machine.init, _MUST)
    return Given(_nearest(machine, machine.kernel_, take(X, rows.first), gram, init))


def _labels(machine: Any, init: Any, n: int, k: int) -> Array:
    labels = np.asarray(init)
    if len(labels) != n or not np.issubdtype(labels.dtype, np.integer):
        refuse(machine, "init", labels, f"hold {n} integers, one for each row, or centres")
    if labels.min() < 0 or labels.max() >= k:
        refuse(machine, "init", labels, f"hold labels from 0 to n_clusters - 1 = {k - 1}")
    return labels


def _nearest(machine: Any, kernel: Kernel, X: Points, gram: Gram, init: Any) -> Array:
    """Return every row to the nearest of the centres, which are points like any other."""
    k = int(machine.n_clusters)
    if isinstance(kernel, Precomputed):
        refuse(machine, "init", init, "be labels for a precomputed kernel: centres are no points")
    owner = type(machine).__name__
    centres = as_points(read_array(owner, init, "init", accept_sparse="csr", dtype=np.float64))
    refuse_nonfinite(owner, centres, "init")
    if centres.shape != (k, X.shape[1]):
        refuse(machine, "init", centres, f"have shape {(k, X.shape[1])}, or be labels")
    if gram.factor is not None:
        F = gram.features(centres)
        lengths = np.asarray((F * F).sum(axis=1)).ravel()
    else:
        lengths = np.asarray(kernel.diag(centres), dtype=np.float64)
    products = np.asarray(gram.cross(centres).dense(), dtype=np.float64)
    return np.asarray(np.argmin(lengths[:, None] - 2.0 * products, axis=0))


# --- repeated rows -------------------------------------------------------------------------------
#
# Rows one by one, a row of weight two as two rows: for clusters that are counted by rows.

_MOST = 10**7  # rows, repeated ones counted: beyond, no assignment ends in reasonable time


def repeated_rows(machine: Any, X: Points, weights: Array) -> DistinctRows:
    """Return rows, each as often as its weight says, in an order that is not that of the table.

    `group` has the first copy of each row.
    """
    if not np.array_equal(weights, np.floor(weights)) or weights.sum() > _MOST:
        raise ValueError(
            f"{type(machine).__name__}: balanced=True counts rows, so sample_weight must be whole "
            f"numbers with a sum of at most {_MOST:.0e}: a weight of two is two rows. Leave the "
            "weights out, or use balanced=False"
        )
    total = int(weights.sum())
    if machine.n_clusters > total:
        must = f"be at most the number of rows, repetitions counted, n_samples={total}"
        refuse(machine, "n_clusters", machine.n_clusters, must)
    nothing = np.zeros(len(weights))
    given = machine._is_precomputed()
    rows = rows_as_they_are(nothing, weights) if given else distinct_rows(X, nothing, weights)
    counts = rows.weight.astype(np.int64)
    kept = np.flatnonzero(rows.group >= 0)
    order = kept[np.argsort(rows.group[kept], kind="stable")]
    own = weights[order].astype(np.int64)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = np.cumsum(own) - own  # rows of one group stand side by side, as copies do
    return DistinctRows(np.repeat(rows.first, counts), np.ones(total), group, merged=False)


# --- kmeans --------------------------------------------------------------------------------------
#
# K-means with any kernel: clusters around means in feature space.

_SAMPLE = 200  # rows that tell whether float32 is good enough
_IN_RANGE = 1e100  # weights up to here, and down to its inverse, are taken as they are
_LOST = 1e-8  # share below which half of the digits of a distance are lost


class KMeans(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    Certified,
    CallbackSupportMixin,
    Reusing,
    KernelMachine,
):
    """K-means clustering, plain or in the space of any kernel.

    Minimises sum_i s_i |phi(x_i) - m_c(i)|^2 over the clusters c(i) of the rows, with m_c the mean
    of cluster c in feature space and s the sample weights. Each of `n_init` starts makes Lloyd's
    steps, and then moves single rows while that lowers the objective; the best end is kept. The
    objective never rises on the way, and no cluster is ever empty.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters; at most as many as there are rows. More clusters than different rows are
        warned about: copies of a row then go to several of them.
    kernel : Kernel, str or callable, default="linear"
        What similarity is; "gaussian" takes its scale from the data. The linear kernel is ordinary
        K-means.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    init : str, array or callable, default="k-means++"
        Where to start. "k-means++" draws seeds by their squared distance in feature space, the best
        of 2 + floor(ln k) candidates each; "random" draws rows; "relaxation" parts the leading
        eigenvectors of the kernel matrix. Or an array of labels (n_samples,), or of centres
        (n_clusters, n_features), or a function of X, n_clusters and random_state that gives one.
    n_init : int, default=10
        How many starts; one where `init` leaves nothing to chance.
    max_iter : int, default=300
        Largest number of steps of a start: assignments of all rows, and sweeps of single moves.
    refine : bool, default=True
        Whether single rows are moved at the end (Hartigan): the minimum is lower, and no row gains
        by changing clusters alone. Without, the steps are Lloyd's and nothing else. With
        balanced=True two rows change places instead.
    balanced : bool, default=False
        Whether all clusters have the same number of rows, or numbers that differ by one. Every step
        then is an exact assignment of all rows to the means under this condition. New rows go to
        the nearest mean. Weights must be whole numbers: a weight of two is two rows, which may go
        to two clusters; `labels_` has that of the first.
    random_state : int, RandomState or None, default=0
        Seed of the starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    labels_ : int array of shape (n_samples,)
        The cluster of each row; rows of weight zero go to the nearest mean.
    inertia_ : float
        The objective, in float64 from the data.
    cluster_sizes_ : array of shape (n_clusters,)
        Weight of the rows of each cluster.
    cluster_centers_ : array of shape (n_clusters, n_features)
        The means, for the linear kernel only.
    n_iter_ : int
        Steps of the best start.
    solution_ : Solution
        How the solver ended; `trace` has the objective of the best start in `measure`, `value`
        those of all starts.
    certificate_ : Certificate
        Objective by the trace formula, and what any move of a row would gain, computed from the
        data in float64 when first read.
    relaxation_ : Relaxation
        A bound below every partition into so many clusters, and how far above the best one this
        one can at most be; computed when first read. Not kept in copies and pickles.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KMeans
    >>> from mercer.kernels import Gaussian
    >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> X = np.vstack([0.2 * ring, 3.0 * ring])
    >>> machine = KMeans(2, Gaussian(0.6), init="relaxation", random_state=0).fit(X)
    >>> sorted(machine.cluster_sizes_.tolist())
    [60.0, 60.0]
    >>> machine.certificate_.ok
    True
    """

    shares = (
        SharedDecomposition(("n_clusters", "init", "n_init", "max_iter", "refine", "random_state")),
    )

    exact_rows = LARGEST_UNASKED

    def __init__(
        self,
        n_clusters: int = 8,
        kernel: Kernel | str | Any = "linear",
        *,
        approximation: Approximation | str | None = "auto",
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        refine: bool = True,
        balanced: bool = False,
        random_state: Any = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.approximation = approximation
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.refine = refine
        self.balanced = balanced
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Find clusters.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        store = self._take_store()
        self._check_parameters()
        X = self._rows_alone(X)
        weights = check_weights(self, sample_weight, row_count(X))
        unit = 1.0 if self.balanced else _unit(weights)
        merge = partial(repeated_rows, self) if self.balanced else self._merged
        rows = merge(X, weights / unit)
        merged = X if self._is_precomputed() else gathered(X, rows.first)
        kernel, names = self._resolved(merged, rows), self._column_names()
        if rows.merged:
            self._use_kernel(kernel, merged, rows.weight, names, store=store, numbers=rows.first)
        else:
            self._use_kernel(kernel, X, weights, names, store=store)
        gram = store.once(len(rows.first), partial(self._gram, X, merged, rows))
        asks = BalancedPartition if self.balanced else Partition
        problem = asks(gram, int(self.n_clusters), rows.weight)
        solution = self._solve(problem, X, rows)
        labels = solution.value.labels
        question = partial(asks, count=problem.count, weights=problem.weights)
        self.solution_: Solution = solution
        self._judgement = lazy_certificate(gram, question, solution.value, certify, rows.weight)
        given = gram if gram.source is None else gram.source  # a stored K is let go
        self._relaxation: Any = LaterRelaxation(given, question, labels)
        self._keep(problem, X, rows, labels, unit)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Array:
        """Find clusters, and give the one of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        int array of shape (n_samples,)
            The labels.
        """
        return np.asarray(self.fit(X, sample_weight=sample_weight).labels_)

    def predict(self, X: Any) -> Array:
        """Return the cluster with the nearest mean in feature space.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.

        Returns
        -------
        int array of shape (n_samples,)
            The labels.
        """
        check_is_fitted(self)
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        return self._nearest(points)

    def transform(self, X: Any) -> Array:
        """Return distances to the means in feature space; not for a precomputed kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            The distances.
        """
        return np.asarray(np.sqrt(self._squared(X)))

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return minus the objective on new rows; not for a precomputed kernel.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        float
            The sum of squared distances to the nearest means, negative.
        """
        nearest = self._squared(X).min(axis=1)
        return -float(check_weights(self, sample_weight, len(nearest)) @ nearest)

    @property
    def relaxation_(self) -> Relaxation:
        """A bound below every partition; computed when first read."""
        relaxation = self.__dict__.get("_relaxation")
        if relaxation is None:
            raise AttributeError(
                "KMeans has no relaxation_ before it is fitted, nor in a copy: call fit"
            )
        if not isinstance(relaxation, Relaxation):
            self._relaxation = relaxation = relaxation.compute()
        return relaxation

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: relaxation for name, relaxation in state.items() if name != "_relaxation"}

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_sizes_)

    def _squared(self, X: Any) -> Array:
        check_is_fitted(self)
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        if self._own is None:
            raise ValueError(
                "KMeans: distances of new rows need k(x, x) of each, which the matrix of a "
                "precomputed kernel does not say. predict works; for distances pass the kernel "
                "itself, kernel=..., and the rows."
            )
        own = self._own
        if self._has_means(points):
            return refuse_overflown(self, lambda: self._from_means(points))
        squared = refuse_overflown(
            self, lambda: own(points)[:, None] - 2.0 * self._expansion(points)
        )
        return np.asarray(np.maximum(squared, 0.0))

    def _nearest(self, points: Points) -> Array:
        """Return the number of the nearest mean of every point."""
        if self._has_means(points):
            return np.asarray(
                refuse_overflown(self, lambda: self._from_means(points)).argmin(axis=1)
            )
        return np.asarray(refuse_overflown(self, lambda: self._expansion(points)).argmax(axis=1))

    def _has_means(self, points: Points) -> bool:
        """Return whether means are written out where the points lie."""
        return isinstance(self._expansion, FeatureExpansion) and not isinstance(points, CardRows)

    def _from_means(self, points: Points) -> Array:
        """Return squared distances from means in the space of features."""
        found: Any = self._expansion
        means = found.weights.T
        return over_features(
            lambda F: squared_distances(F, means).T, found.features, points, means.shape[1]
        )

    def _merged(self, X: Points, weights: Array) -> DistinctRows:
        """Take equal rows together, unless there would be more clusters than rows."""
        nothing, used = np.zeros(len(weights)), int((weights > 0).sum())
        if self.n_clusters > used:
            must = f"be at most the number of rows of nonzero weight, n_samples={used}"
            refuse(self, "n_clusters", self.n_clusters, must)
        if self._is_precomputed():
            return rows_as_they_are(nothing, weights)
        rows = distinct_rows(X, nothing, weights)
        if self.n_clusters <= len(rows.first):
            return rows
        warnings.warn(
            f"KMeans: n_clusters={self.n_clusters}, but only {len(rows.first)} rows differ: copies "
            "of a row are spread over several clusters. Ask for fewer clusters.",
            ConvergenceWarning,
            stacklevel=5,
        )
        return rows_as_they_are(nothing, weights)

    def _resolved(self, X: Points, rows: DistinctRows) -> Kernel:
        if not isinstance(self.kernel, str):
            return kernel_of(self.kernel)
        return kernel_of(self.kernel, X, rows.weight, self._column_names())

    def _gram(self, X: Points, merged: Points, rows: DistinctRows) -> Gram:
        options: dict[str, Any] = {"numbers": rows.first, "names": self._column_names()}
        if self._is_precomputed():
            options["rows"] = rows.first

        def scattered() -> bool:
            return not self._is_precomputed() and self._spread(X, rows) > FLOAT32_SCATTER

        if not self._is_precomputed():
            expression = bind_columns(self.kernel_.expression(), self._column_names())
            wide = wide_features(expression, merged, rows.weight)
            if wide is not None:
                refuse_overflow(wide, self.kernel_, rows.first)
                refuse_underflow("KMeans", wide, self.kernel_, rows.first)
                return wide
        dtype = stored_dtype(len(rows.first), scattered)
        gram = make_gram(self.kernel_, merged, Need.PRODUCTS, dtype=dtype, **options)
        near = about_the_middle(gram, rows.weight)
        if near is gram and isinstance(self.kernel_, Linear) and self._spread(X, rows) < _LOST:
            warnings.warn(
                "KMeans: the mean of the rows is so far from the origin that products of rows "
                "hardly tell their distances. Subtract a constant from each column first, e.g. "
                "with sklearn.preprocessing.StandardScaler.",
                UserWarning,
                stacklevel=6,
            )
        return near

    def _spread(self, X: Points, rows: DistinctRows) -> float:
        """Return the share of the trace that is scatter, by a sample of the rows."""
        few = rows.first[:: max(1, len(rows.first) // _SAMPLE)]
        sample = make_gram(self.kernel_, X, Need.ROWS, rows=few, names=self._column_names())
        return scatter_share(sample, np.ones(len(few)))

    def _solve(self, problem: Partition, X: Points, rows: DistinctRows) -> Solution:
        rng = check_random_state(self.random_state)
        solver = (BalancedLloyd if self.balanced else Lloyd)(
            seeding(self, X, rows, problem.gram, rng),
            int(self.n_init),
            int(self.max_iter),
            bool(self.refine),
            int(rng.randint(2**31 - 1)),
        )
        with progress_of(self, self.callback) as callback:
            return solve(problem, solver, callback=callback, time_limit=self.time_limit)

    def _keep(
        self, problem: Partition, X: Points, rows: DistinctRows, labels: Array, unit: float
    ) -> None:
        means = means_of(problem, labels, self.kernel_, self._column_names())
        sizes = problem.cluster_weights(labels)
        self._expansion, self._own = means.closeness, means.own
        self.inertia_, self.cluster_sizes_ = means.objective * unit, sizes * unit
        self.n_iter_ = max(1, self.solution_.iterations)
        self.labels_ = labels[rows.group]
        absent = np.flatnonzero(rows.group < 0)
        if len(absent):
            self.labels_[absent] = self._nearest(take(X, absent))
        self.__dict__.pop("cluster_centers_", None)
        if isinstance(self.kernel_, Linear):
            share = problem.indicator(labels) / sizes
            self.cluster_centers_ = np.asarray((take(X, rows.first).T @ share).T)

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            check_count(self, name)
        check_flag(self, "refine")
        check_flag(self, "balanced")
        check_limits(self)
        check_seed(self)
        check_start(self)


def _unit(weights: Array) -> float:
    """Return what weights are counted in: one, or the largest where squares leave the numbers."""
    largest = float(weights.max())
    return 1.0 if 1 / _IN_RANGE < largest < _IN_RANGE else largest
