"""Drop-ins for `sklearn.cluster`: KMeans and SpectralClustering."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn import cluster
from sklearn.cluster._spectral import cluster_qr
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import machines
from mercer.array_types import Array, Points
from mercer.compat.sklearn.base import WrappedMachine
from mercer.kernels import Constant, Gaussian, Kernel, Laplacian, Linear, Precomputed
from mercer.machines.base.inputs import explaining, read_rows, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import refuse, seed_of
from mercer.machines.base.targets import check_weights
from mercer.machines.clustering.spectral import by_means
from mercer.resources import thread_limit
from mercer.rows.points import is_sparse
from mercer.solvers.base import Status

# --- discretize ----------------------------------------------------------------------------------
#
# Clusters from rows of eigenvectors without k-means: rotation and rounding.

_ROUNDS = 30
_TRIES = 10


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


class KMeans(WrappedMachine, cluster.KMeans):
    """`sklearn.cluster.KMeans` on Mercer's solver: Lloyd's steps, then moves of single rows.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. The moves lower the objective where Lloyd's steps no longer do, so
    an end is never worse than that of the same start there, and no row gains by changing clusters
    alone. `tol`, `copy_x` and `algorithm` are accepted: steps are made until nothing changes, X is
    never written to, and both algorithms make the same steps.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> sorted(KMeans(n_clusters=2, random_state=0).fit(X).cluster_centers_.tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    """

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
        self._validate_params()
        X = read_rows(self, X, accept_sparse="csr")
        refuse_nonfinite(self, X)
        self._check_params_vs_input(X)
        del self._tol, self._algorithm  # which mean nothing here
        weights = check_weights(self, sample_weight, X.shape[0])
        with warnings.catch_warnings():  # told below, in scikit-learn's words
            warnings.filterwarnings("ignore", ".*rows differ")
            self.machine_ = self._machine(X).fit(X, sample_weight=weights)
        centres = self.machine_.cluster_centers_
        self.cluster_centers_ = np.ascontiguousarray(centres, dtype=X.dtype)
        self.n_iter_ = self._steps()
        squared = euclidean_distances(X, self.cluster_centers_, squared=True)
        self.labels_ = np.argmin(squared, axis=1).astype(np.int32)
        self.inertia_ = float(weights @ squared.min(axis=1).astype(np.float64))
        self._tell()
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    @property
    def _n_threads(self) -> int:
        """How many threads scikit-learn's code takes, which runs in `predict` and `score`."""
        return thread_limit()

    def _check_test_data(self, X: Any) -> Points:
        """Check rows; scikit-learn's code takes one type of numbers, and 32-bit indices."""
        options = {"accept_sparse": "csr", "order": "C", "dtype": self.cluster_centers_.dtype}
        rows: Points = read_rows(self, X, fitting=False, **options)
        refuse_nonfinite(self, rows)
        if is_sparse(rows) and rows.nnz < 2**31:
            index = (part.astype(np.int32, copy=False) for part in (rows.indices, rows.indptr))
            rows = sparse.csr_array((rows.data, *index), shape=rows.shape)
        return rows

    def _machine(self, X: Points) -> machines.KMeans:
        init = self.init
        if callable(init):
            init = self._called
        elif not isinstance(init, str):
            init = check_array(init, dtype=np.float64, input_name="init")
            self._validate_center_shape(X, init)
        return InnerKMeans(
            int(self.n_clusters),
            init=init,
            n_init=int(self._n_init),
            max_iter=int(self.max_iter) - 1,  # the first is the way to the start
            refine=True,
            random_state=self.random_state,
        )

    def _called(self, X: Points, n_clusters: int, random_state: Any) -> Array:
        """Call the function that gives centres, and check its answer."""
        found = self._init_centroids(X, None, self.init, random_state, None, None, n_clusters)
        return np.asarray(found)

    def _steps(self) -> int:
        """Count as scikit-learn: with the step to the start, and the one that changes nothing."""
        at_the_start = not isinstance(self.init, str) and not callable(self.init)
        if at_the_start and np.array_equal(self.cluster_centers_, np.asarray(self.init)):
            return 1
        last = 2 if self.solution_.status is Status.SOLVED else 1
        return min(self.solution_.iterations + last, int(self.max_iter))

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


class InnerKMeans(machines.KMeans):
    """The Mercer machine, with parameters that are checked, and with as few as no steps."""

    def _check_parameters(self) -> None:
        pass


# --- spectral ------------------------------------------------------------------------------------
#
# Drop-in for `sklearn.cluster.SpectralClustering`.

_TOL = 1e-5
_SMALLEST_TOL = 1e-12
_ROUNDING = 1e-12  # of the largest affinity


class SpectralClustering(WrappedMachine, cluster.SpectralClustering):
    """`sklearn.cluster.SpectralClustering` on Mercer's solvers: normalised cuts, relaxed.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `eigen_solver` and `n_jobs` are accepted: the solver is chosen by
    what the affinity is, and `mercer.config(threads=...)` sets what may be used. With "rbf" and
    "laplacian" `affinity_matrix_` is evaluated when it is read.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import SpectralClustering
    >>> X = np.array([[1, 1], [2, 1], [1, 0], [4, 7], [3, 5], [3, 6]])
    >>> labels = SpectralClustering(n_clusters=2, random_state=0).fit(X).labels_
    >>> len(set(labels[:3])), len(set(labels[3:])), labels[0] != labels[3]
    (1, 1, np.True_)
    """

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
        self._validate_params()
        if self.affinity == "nearest_neighbors" and self.n_neighbors < 2:
            refuse(self, "n_neighbors", self.n_neighbors, "be at least 2: a row itself is one")
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

    @property
    def affinity_matrix_(self) -> Any:
        """The similarities of the rows."""
        check_is_fitted(self, "machine_")
        kernel, points = self._source
        if self.affinity == "nearest_neighbors":
            graph = self.machine_.graph_
            return sparse.csr_matrix(graph + sparse.eye_array(graph.shape[0]))
        return points if isinstance(kernel, Precomputed) else kernel(points)

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
            return np.asarray(machine.labels_, dtype=np.int32)
        places = machine.embedding_
        if self.assign_labels == "cluster_qr":
            return np.asarray(cluster_qr(places))
        if self.assign_labels == "discretize":
            return by_rotation(places, check_random_state(self.random_state))
        one = np.zeros(len(places), dtype=np.int64)
        share, seed = np.array([int(self.n_clusters)]), seed_of(self.random_state)
        return by_means(places, one, share, np.ones(1), int(self.n_init), seed)[0].astype(np.int32)


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
