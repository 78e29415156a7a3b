"""Drop-ins for `sklearn.cluster`: KMeans and SpectralClustering."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgWarning, qr, svd
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state as utils_check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import machines
from mercer.array_types import Array, Points
from mercer.compat.sklearn.base import (
    WrappedMachine,
    check_random_state,
    check_verbose,
    check_whole,
)
from mercer.compat.sklearn.base import check_random_state as check_seed
from mercer.kernels import Constant, Gaussian, Kernel, Laplacian, Linear, Precomputed
from mercer.machines.base.inputs import explaining, read_array, read_rows, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import (
    check_choice,
    check_flag,
    check_real,
    is_real,
    refuse,
    seed_of,
)
from mercer.machines.base.targets import check_weights
from mercer.machines.clustering.spectral import by_means
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solution, Status
from mercer.solvers.certificate import Certificate

# --- discretize ----------------------------------------------------------------------------------
#
# Clusters from rows of eigenvectors without k-means: pivoted QR, or rotation and rounding.

_ROUNDS = 30
_TRIES = 10


def by_pivots(vectors: Array) -> Array:
    """Take k far-apart rows for axes (pivoted QR), rotate to them, and give the nearest axis."""
    k = vectors.shape[1]
    _, _, pivots = qr(vectors.T, mode="economic", pivoting=True)
    left, _, right = svd(vectors[pivots[:k]].T)
    return np.asarray(np.abs(vectors @ (left @ right)).argmax(axis=1))


def by_rotation(vectors: Array, rng: np.random.RandomState) -> Array:
    """Find the rotation that brings rows of length one closest to 0-1 indicators, and round."""
    n, k = vectors.shape
    norms = np.linalg.norm(vectors, axis=0)
    columns = vectors / np.where(norms > 0, norms, 1.0) * np.sqrt(n)
    columns = columns * np.where(columns[0] > 0, -1.0, 1.0)
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    rows = columns / np.where(lengths > 0, lengths, 1.0)
    labels, best = np.zeros(n, dtype=np.int64), -np.inf
    for _ in range(_TRIES):
        try:
            labels, best = _rounded(rows, _axes(rows, k, rng))
        except np.linalg.LinAlgError:  # from these axes nowhere; others may do
            continue
        break
    if best == -np.inf:
        warnings.warn("discretize: no rotation was found", LinAlgWarning, stacklevel=4)
    return labels


def _axes(rows: Array, k: int, rng: np.random.RandomState) -> Array:
    """Choose k rows, each as orthogonal to those before as can be."""
    axes = np.zeros((k, k))
    axes[:, 0] = rows[rng.randint(len(rows))]
    seen = np.zeros(len(rows))
    for j in range(1, k):
        seen += np.abs(rows @ axes[:, j - 1])
        axes[:, j] = rows[seen.argmin()]
    return axes


def _rounded(rows: Array, axes: Array) -> tuple[Array, float]:
    """Alternate between nearest indicators and the best rotation towards them."""
    before = 0.0
    for _ in range(_ROUNDS):
        labels = np.asarray((rows @ axes).argmax(axis=1))
        members = np.zeros((len(rows), axes.shape[1]))
        members[np.arange(len(rows)), labels] = 1.0
        left, singular, right = np.linalg.svd(members.T @ rows)
        if abs(singular.sum() - before) < np.finfo(float).eps * max(1.0, before):
            break
        before = float(singular.sum())
        axes = right.T @ left.T
    return labels, before


# --- kmeans --------------------------------------------------------------------------------------
#
# Drop-in for `sklearn.cluster.KMeans`.

_ALGORITHMS = ("lloyd", "elkan")
_WORDS = ("k-means++", "random")
_STARTS = 10  # of n_init="auto" where the start is left to chance


class KMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, WrappedMachine, BaseEstimator
):
    """`sklearn.cluster.KMeans` on Mercer's solver: Lloyd's steps, then moves of single rows.

    The moves lower the objective where Lloyd's steps no longer do, so an end is never worse than
    that of the same start there, and no row gains by changing clusters alone.

    What differs is listed in the user guide.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    init : {"k-means++", "random"}, callable or array of shape (n_clusters, n_features), \
default="k-means++"
        Where to start: seeds drawn by their squared distance, rows, centres, or a function of X,
        n_clusters and random_state that gives centres.
    n_init : int or "auto", default="auto"
        How many starts; "auto" is one, and ten for "random" and functions.
    max_iter : int, default=300
        Largest number of steps of a start.
    tol : float, default=1e-4
        Accepted; steps are made until nothing changes.
    verbose : int, default=0
        Whether to print the objective of every step of the best start.
    random_state : int, RandomState or None, default=None
        Where the starts come from.
    copy_x : bool, default=True
        Accepted; X is never written to.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Accepted; both make the same steps.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features)
        The means.
    labels_ : int32 array of shape (n_samples,)
        The cluster of each row.
    inertia_ : float
        The sum of squared distances to the nearest means, by weight.
    n_iter_ : int
        Steps of the best start.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.KMeans
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        The objective by the trace formula, and what any move of a row would gain.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> sorted(KMeans(n_clusters=2, random_state=0).fit(X).cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Find clusters.

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
        self
            The fitted machine.
        """
        self._check_parameters()
        X = read_rows(self, X, accept_sparse="csr")
        refuse_nonfinite(self, X)
        if X.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
        weights = check_weights(self, sample_weight, X.shape[0])
        self._n_init = self._starts()
        machine = self._machine(X)
        with warnings.catch_warnings():  # told below, in scikit-learn's words
            warnings.filterwarnings("ignore", ".*rows differ")
            self.machine_ = machine.fit(X, sample_weight=weights)
        self.cluster_centers_ = np.ascontiguousarray(machine.cluster_centers_, dtype=X.dtype)
        self.n_iter_ = self._steps()
        self.labels_, squared = self._nearest(X)
        self.inertia_ = float(weights @ squared)
        self._tell()
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
        int32 array of shape (n_samples,)
            The labels.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Array:
        """Return the cluster with the nearest mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        int32 array of shape (n_samples,)
            The labels.
        """
        return self._nearest(self._new(X))[0]

    def transform(self, X: Any) -> Array:
        """Return distances to the means.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples, n_clusters)
            The distances.
        """
        return np.asarray(euclidean_distances(self._new(X), self.cluster_centers_))

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Array:
        """Find clusters, and give the distances to their means.

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
        array of shape (n_samples, n_clusters)
            The distances.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return minus the objective on new rows.

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
        squared = self._nearest(self._new(X))[1]
        return -float(check_weights(self, sample_weight, len(squared)) @ squared)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _new(self, X: Any) -> Points:
        check_is_fitted(self)
        rows: Points = read_rows(self, X, fitting=False, accept_sparse="csr")
        refuse_nonfinite(self, rows)
        return rows

    def _nearest(self, X: Points) -> tuple[Array, Array]:
        """Return the nearest mean of each row, and the squared distance."""
        squared = euclidean_distances(X, self.cluster_centers_, squared=True)
        labels = np.argmin(squared, axis=1)
        least = squared[np.arange(len(labels)), labels].astype(np.float64)
        return labels.astype(np.int32), least

    def _machine(self, X: Points) -> machines.KMeans:
        init, starts = self.init, self._n_init
        if not isinstance(init, str) and not callable(init):
            init = self._centres(init, X)
            if starts > 1:
                warnings.warn(
                    "Explicit initial center position passed: performing only one init in KMeans "
                    f"instead of n_init={starts}.",
                    RuntimeWarning,
                    stacklevel=4,
                )
        elif callable(init):
            init = _Called(self, init)
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=4,
            )
        return InnerKMeans(
            int(self.n_clusters),
            init=init,
            n_init=starts,
            max_iter=int(self.max_iter) - 1,  # the first is the way to the start
            refine=True,
            random_state=self.random_state,
        )

    def _steps(self) -> int:
        """Count as scikit-learn: with the step to the start, and the one that changes nothing."""
        at_the_start = not isinstance(self.init, str) and not callable(self.init)
        if at_the_start and np.array_equal(self.cluster_centers_, np.asarray(self.init)):
            return 1
        last = 2 if self.solution_.status is Status.SOLVED else 1
        return min(self.solution_.iterations + last, int(self.max_iter))

    def _starts(self) -> int:
        if self.n_init != "auto":
            return int(self.n_init)
        drawn = callable(self.init) or (isinstance(self.init, str) and self.init == "random")
        return _STARTS if drawn else 1

    def _centres(self, init: Any, X: Points) -> Array:
        """Check centres to start from."""
        centres = np.asarray(read_array("KMeans", init, "init", dtype=np.float64))
        if centres.shape[0] != self.n_clusters:
            raise ValueError(
                f"The shape of the initial centers {centres.shape} does not match the number of "
                f"clusters {self.n_clusters}."
            )
        if centres.shape[1] != X.shape[1]:
            raise ValueError(
                f"The shape of the initial centers {centres.shape} does not match the number of "
                f"features of the data {X.shape[1]}."
            )
        return centres

    def _tell(self) -> None:
        """Warn in scikit-learn's words of how the fit ended."""
        found = len(np.unique(self.labels_))
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not self.verbose:
            return
        print("Initialization complete")
        for step in self.solution_.trace:
            print(f"Iteration {step.iteration}, inertia {step.measure}.")
        if self.solution_.status is Status.SOLVED:
            how = "strict convergence"
            if self.tol:
                how = f"center shift 0.0 within tolerance {self.tol}"
            print(f"Converged at iteration {self.n_iter_}: {how}.")

    def _check_parameters(self) -> None:
        check_whole(self, "n_clusters", least=1)
        check_whole(self, "max_iter", least=1)
        check_real(self, "tol", least=0)
        check_verbose(self)
        check_random_state(self)
        check_flag(self, "copy_x")
        check_choice(self, "algorithm", _ALGORITHMS)
        if self.n_init != "auto":
            check_whole(self, "n_init", least=1)
        if isinstance(self.init, str):
            check_choice(self, "init", _WORDS)
        elif not callable(self.init) and np.ndim(self.init) != 2:
            refuse(self, "init", self.init, "be 'k-means++', 'random', centres or a function")


class InnerKMeans(machines.KMeans):
    """The Mercer machine, with parameters that are checked, and with as few as no steps."""

    def _check_parameters(self) -> None:
        pass


class _Called:
    """A function that gives centres, whose answer is checked."""

    def __init__(self, machine: KMeans, function: Any) -> None:
        self._machine, self._function = machine, function

    def __call__(self, X: Any, n_clusters: int, random_state: Any) -> Array:
        found = self._function(X, n_clusters, random_state=random_state)
        return self._machine._centres(found, X)


# --- spectral ------------------------------------------------------------------------------------
#
# Drop-in for `sklearn.cluster.SpectralClustering`.

_SOLVERS = ("arpack", "lobpcg", "amg")
_ASSIGNMENTS = ("kmeans", "discretize", "cluster_qr")
_KERNELS = (
    *("rbf", "nearest_neighbors", "precomputed", "precomputed_nearest_neighbors"),
    *("additive_chi2", "chi2", "linear", "poly", "polynomial", "laplacian", "sigmoid", "cosine"),
)
_TOL = 1e-5
_SMALLEST_TOL = 1e-12
_ROUNDING = 1e-12  # of the largest affinity


class SpectralClustering(ClusterMixin, BaseEstimator):
    """`sklearn.cluster.SpectralClustering` on Mercer's solvers: normalised cuts, relaxed.

    What differs is listed in the user guide.

    Parameters
    ----------
    n_clusters : int, default=8
        How many clusters.
    eigen_solver : {None, "arpack", "lobpcg", "amg"}, default=None
        Accepted; the solver is chosen by what the affinity is.
    n_components : int or None, default=None
        Eigenvectors that place the rows; None for n_clusters.
    random_state : int, RandomState or None, default=None
        Where the starts of k-means and of "discretize" come from.
    n_init : int, default=10
        Restarts of k-means.
    gamma : float, default=1.0
        Of the kernels "rbf", "poly", "sigmoid", "laplacian" and "chi2".
    affinity : str or callable, default="rbf"
        "nearest_neighbors", "rbf", "precomputed" (a matrix of affinities),
        "precomputed_nearest_neighbors" (a sparse graph of distances), another kernel of
        scikit-learn, or a function of two rows.
    n_neighbors : int, default=10
        Of the graphs of neighbours; a row itself is one of them.
    eigen_tol : float or "auto", default="auto"
        Largest residual of the eigenvectors; "auto" is 1e-5, and 0 as good as can be had.
    assign_labels : {"kmeans", "discretize", "cluster_qr"}, default="kmeans"
        How places become clusters.
    degree : float, default=3
        Of "poly".
    coef0 : float, default=1
        Of "poly" and "sigmoid".
    kernel_params : dict or None, default=None
        Further arguments of the kernel.
    n_jobs : int or None, default=None
        Accepted; `mercer.config(threads=...)` sets what may be used.
    verbose : bool, default=False
        Whether to say how clusters are assigned.

    Attributes
    ----------
    labels_ : int array of shape (n_samples,)
        The cluster of each row.
    affinity_matrix_ : array or sparse matrix of shape (n_samples, n_samples)
        The similarities; for "rbf" and "laplacian" evaluated when first read.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.SpectralClustering
        The Mercer machine inside.
    solution_ : Solution
        How the eigensolver ended.
    certificate_ : Certificate
        Residuals and orthogonality of the eigenvectors, from the data in float64 when first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import SpectralClustering
    >>> X = np.array([[1, 1], [2, 1], [1, 0], [4, 7], [3, 5], [3, 6]])
    >>> labels = SpectralClustering(n_clusters=2, random_state=0).fit(X).labels_
    >>> len(set(labels[:3])), len(set(labels[3:])), labels[0] != labels[3]
    (1, 1, np.True_)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        eigen_solver: str | None = None,
        n_components: int | None = None,
        random_state: Any = None,
        n_init: int = 10,
        gamma: float = 1.0,
        affinity: Any = "rbf",
        n_neighbors: int = 10,
        eigen_tol: float | str = "auto",
        assign_labels: str = "kmeans",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.eigen_solver = eigen_solver
        self.n_components = n_components
        self.random_state = random_state
        self.n_init = n_init
        self.gamma = gamma
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.eigen_tol = eigen_tol
        self.assign_labels = assign_labels
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; affinities or distances for the precomputed kinds.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X = self._read(X)
        if self.n_clusters > X.shape[0]:
            raise ValueError(
                f"SpectralClustering: n_samples={X.shape[0]} should be >= "
                f"n_clusters={self.n_clusters}"
            )
        if self.affinity == "nearest_neighbors" and self.n_neighbors > X.shape[0]:
            must = f"be at most the number of rows: n_samples={X.shape[0]}"
            refuse(self, "n_neighbors", self.n_neighbors, must)
        kernel, points, neighbors = self._translated(X)
        if isinstance(kernel, Precomputed):
            self._refuse_negative(points)
        self._source = (kernel, points)
        self.machine_ = self._machine(kernel, neighbors).fit(points)
        if self.machine_.n_connected_ > 1:
            warnings.warn(
                f"SpectralClustering: Graph is not fully connected: it has "
                f"{self.machine_.n_connected_} components, and no cluster crosses a gap",
                UserWarning,
                stacklevel=3,
            )
        if self.verbose:
            print(f"Computing label assignment using {self.assign_labels}")
        self.labels_ = self._labels()
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Find the clusters of rows, and give them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Not used.

        Returns
        -------
        int array of shape (n_samples,)
            The cluster of each row.
        """
        return self.fit(X).labels_

    @property
    def affinity_matrix_(self) -> Any:
        """The similarities of the rows."""
        check_is_fitted(self, "machine_")
        kernel, points = self._source
        if self.affinity == "nearest_neighbors":
            graph = self.machine_.graph_
            return sparse.csr_matrix(graph + sparse.eye_array(graph.shape[0]))
        return points if isinstance(kernel, Precomputed) else kernel(points)

    @property
    def solution_(self) -> Solution:
        """How the eigensolver ended."""
        check_is_fitted(self, "machine_")
        return self.machine_.solution_

    @property
    def certificate_(self) -> Certificate:
        """The judgement of the eigenvectors, from the data, in float64."""
        check_is_fitted(self, "machine_")
        return self.machine_.certificate_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = ("precomputed", "precomputed_nearest_neighbors")
        tags.input_tags.pairwise = isinstance(self.affinity, str) and self.affinity in given
        tags.input_tags.sparse = True
        return tags

    def _read(self, X: Any) -> Any:
        """Check rows, or a graph, whose entries stay in their order: it says which are nearest."""
        options: dict[str, Any] = {"accept_sparse": ["csr", "csc", "coo"], "dtype": np.float64}
        with explaining(type(self).__name__, X):
            X = validate_data(self, X, ensure_min_samples=2, ensure_all_finite=False, **options)
        refuse_nonfinite(self, X.tocsr() if is_sparse(X) else X)
        return X

    def _translated(self, X: Any) -> tuple[Kernel, Any, int | None]:
        """Return kernel, rows or matrix, and number of neighbours, in Mercer's terms."""
        gamma, kind = float(self.gamma), self.affinity
        if kind == "nearest_neighbors":
            return Linear(), X, int(self.n_neighbors) - 1
        if kind == "precomputed_nearest_neighbors":
            search = NearestNeighbors(n_neighbors=self.n_neighbors, metric="precomputed").fit(X)
            graph = search.kneighbors_graph(X, mode="connectivity")
            return Precomputed(), sparse.csr_array(0.5 * (graph + graph.T)), None
        if kind == "precomputed":
            return Precomputed(), _averaged(X), None
        if kind == "rbf" and not self.kernel_params:
            return Gaussian(np.sqrt(0.5 / gamma)) if gamma > 0 else Constant(1.0), X, None
        if kind == "laplacian" and not self.kernel_params:
            return Laplacian(1.0 / gamma) if gamma > 0 else Constant(1.0), X, None
        params = dict(self.kernel_params or {})
        if not callable(kind):
            params |= {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        K = pairwise_kernels(X, metric=kind, filter_params=True, **params)
        return Precomputed(), np.asarray((K + K.T) / 2), None

    def _refuse_negative(self, K: Any) -> None:
        least = float(K.min())
        if least < -_ROUNDING * float(abs(K).max()):
            raise ValueError(
                "Negative values in data passed to SpectralClustering: an affinity of "
                f"{least:.3g}, but a graph is cut, whose weights must not be negative. Use "
                f"affinity='rbf' or 'nearest_neighbors' in place of affinity={self.affinity!r}, "
                "or a matrix without negative entries"
            )

    def _machine(self, kernel: Kernel, neighbors: int | None) -> machines.SpectralClustering:
        tol = _TOL if self.eigen_tol == "auto" else max(float(self.eigen_tol), _SMALLEST_TOL)
        return machines.SpectralClustering(
            int(self.n_components or self.n_clusters),
            kernel,
            approximation=None,
            neighbors=neighbors,
            self_loops=False,
            n_init=int(self.n_init) if self._is_plain() else 1,
            tol=tol,
            random_state=self.random_state,
        )

    def _is_plain(self) -> bool:
        same = self.n_components is None or self.n_components == self.n_clusters
        return bool(self.assign_labels == "kmeans" and same)

    def _labels(self) -> Array:
        """Return clusters from the places of the rows."""
        machine = self.machine_
        if self._is_plain():
            return machine.labels_.astype(np.int32)
        places = machine.embedding_
        if self.assign_labels == "cluster_qr":
            return by_pivots(places)
        if self.assign_labels == "discretize":
            return by_rotation(places, utils_check_random_state(self.random_state))
        one = np.zeros(len(places), dtype=np.int64)
        share, seed = np.array([int(self.n_clusters)]), seed_of(self.random_state)
        return by_means(places, one, share, np.ones(1), int(self.n_init), seed)[0].astype(np.int32)

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "n_neighbors"):
            check_whole(self, name, least=1)
        if self.affinity == "nearest_neighbors" and self.n_neighbors < 2:
            refuse(self, "n_neighbors", self.n_neighbors, "be at least 2: a row itself is one")
        if self.n_components is not None:
            check_whole(self, "n_components", least=1)
        if self.eigen_solver is not None:
            check_choice(self, "eigen_solver", _SOLVERS)
        if not callable(self.affinity):
            check_choice(self, "affinity", _KERNELS)
        check_choice(self, "assign_labels", _ASSIGNMENTS)
        for name in ("gamma", "degree"):
            check_real(self, name, least=0)
        check_real(self, "coef0")
        if self.eigen_tol != "auto":
            check_real(self, "eigen_tol", least=0)
        extra: Any = self.kernel_params
        if extra is not None and not isinstance(extra, dict):
            refuse(self, "kernel_params", extra, "be None or a dictionary")
        jobs: Any = self.n_jobs
        if jobs is not None and not (is_real(jobs) and isinstance(jobs, Integral)):
            refuse(self, "n_jobs", jobs, "be None or an integer")
        check_verbose(self)
        check_seed(self)


def _averaged(X: Any) -> Any:
    """Average a matrix with its transpose, with scikit-learn's warning if they differ."""
    gap = abs(X - X.T)
    if gap.max() > 1e-10:
        warnings.warn(
            "Array is not symmetric, and will be converted to symmetric by average with its "
            "transpose.",
            UserWarning,
            stacklevel=5,
        )
    mean = 0.5 * (X + X.T)
    return sparse.csr_array(mean) if is_sparse(X) else mean
