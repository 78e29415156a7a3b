"""Drop-in for `sklearn.svm.OneClassSVM`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import NOTHING, DropIn
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_share
from mercer.machines.base.sharing import Sharing


class OneClassSVM(OutlierMixin, DropIn):
    """`sklearn.svm.OneClassSVM` on Mercer's solver: where rows are common.

    What differs is listed in the user guide.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default="rbf"
        What similarity is. A function is called with two collections of rows, as they came, and
        gives their matrix; a kernel of `mercer.kernels` is taken as it is.
    degree : int, default=3
        Of kernel="poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of "rbf", "poly" and "sigmoid"; "scale" is 1 / (n_features * X.var()), "auto" is
        1 / n_features.
    coef0 : float, default=0.0
        Constant of "poly" and "sigmoid".
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    nu : float, default=0.5
        Upper bound on the share of training rows called outliers, lower bound on that of support
        vectors.
    shrinking : bool, default=True
        Accepted; the solver decides by itself.
    cache_size : float, default=200
        Accepted; `mercer.config(memory=...)` sets what may be used.
    verbose : bool, default=False
        Accepted; nothing is printed.
    max_iter : int, default=-1
        Largest number of pair steps; -1 for max(10^7, 100 n).

    Attributes
    ----------
    support_ : int32 array of shape (n_SV,)
        Rows with a nonzero coefficient.
    support_vectors_ : array or sparse matrix of shape (n_SV, n_features)
        These rows; empty for a precomputed kernel and for functions.
    n_support_ : int32 array of shape (1,)
        How many there are.
    dual_coef_ : array or sparse matrix of shape (1, n_SV)
        Their coefficients.
    coef_ : array or sparse matrix of shape (1, n_features)
        Weights of the columns; only for kernel="linear".
    intercept_ : array of shape (1,)
        The constant of the function.
    offset_ : array of shape (1,)
        The score at the border: minus `intercept_`.
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    n_iter_ : int
        Pair steps.
    shape_fit_ : tuple of int
        The shape of X.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.OneClassSVM
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> from mercer.compat.sklearn import OneClassSVM
    >>> machine = OneClassSVM(gamma="auto").fit([[0], [0.44], [0.45], [0.46], [1]])
    >>> machine.predict([[0.45], [3.0]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix itself for kernel="precomputed"; anything for a function.
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
        self._solve(X, NOTHING, sample_weight)
        self._keep_support(np.arange(len(self.machine_.support_)))
        self.offset_ = -self.intercept_
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.n_iter_ = int(self.machine_.n_iter_)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the score less `offset_`: negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The decision values.
        """
        return np.asarray(self.score_samples(X) - self.offset_)

    def score_samples(self, X: Any) -> Array:
        """Score new rows: the larger, the more common.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The scores.
        """
        return np.asarray(self._values(X)[:, 0])

    def predict(self, X: Any) -> Array:
        """Tell common rows (1) from outliers (-1).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        int array of shape (n_samples,)
            1 where the decision is zero or more, else -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1).astype(np.intp)

    def sharing(self) -> Sharing | None:
        """Return how fits for several nu are solved together."""
        return self._sharing(("nu",))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share(self, "nu")

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.OneClassSVM:
        return machines.OneClassSVM(kernel, float(self.nu), **self._solving())
