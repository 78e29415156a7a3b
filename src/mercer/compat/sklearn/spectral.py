"""Drop-in for `sklearn.cluster.SpectralClustering`."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import machines
from mercer.array_types import Array
from mercer.certificates import Certificate
from mercer.compat.sklearn.base.discretize import by_pivots, by_rotation
from mercer.compat.sklearn.base.parameters import check_random_state as check_seed
from mercer.compat.sklearn.base.parameters import check_verbose, check_whole
from mercer.kernels import Constant, Gaussian, Kernel, Laplacian, Linear, Precomputed
from mercer.machines.base.inputs import explaining, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_choice, check_real, is_real, refuse, seed_of
from mercer.machines.clustering.grouping import by_means
from mercer.points import is_sparse
from mercer.solvers import Solution

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
            return by_rotation(places, check_random_state(self.random_state))
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
