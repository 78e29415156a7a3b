"""Drop-in for `sklearn.cluster.KMeans`."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from mercer import machines
from mercer.array_types import Array, Points
from mercer.compat.sklearn.base.parameters import check_random_state, check_verbose, check_whole
from mercer.compat.sklearn.base.wrapped import WrappedMachine
from mercer.machines.base.inputs import read_array, read_rows, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_choice, check_flag, check_real, refuse
from mercer.machines.base.targets import check_weights
from mercer.solvers import Status

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
