"""Drop-ins for `sklearn.svm`: SVR and NuSVR."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import DropIn, check_weight_of_slack
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_real, check_share
from mercer.machines.base.sharing import Sharing

# --- regressor -----------------------------------------------------------------------------------
#
# What the two kernel regressions share.


class TubeRegressor(RegressorMixin, DropIn):
    """Base of the regressions."""

    C: float

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix itself for kernel="precomputed"; anything for a function.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: a factor on its C.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        self._solve(X, y, sample_weight, y_numeric=True)
        self._keep_support(np.arange(len(self.machine_.support_)))
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.n_iter_ = int(self.machine_.n_iter_)
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The values of f.
        """
        return np.asarray(self._values(X)[:, 0])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_weight_of_slack(self)


# --- svr -----------------------------------------------------------------------------------------
#
# Drop-ins for `sklearn.svm.SVR` and `sklearn.svm.NuSVR`.


class SVR(TubeRegressor):
    """`sklearn.svm.SVR` on Mercer's solver: regression with a tube.

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
    C : float, default=1.0
        Weight of the errors beyond the tube; infinity allows none.
    epsilon : float, default=0.1
        Half the width of the tube, in units of y.
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
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    n_iter_ : int
        Pair steps.
    shape_fit_ : tuple of int
        The shape of X.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.SVR
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import SVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> machine = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 0.06)
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    def sharing(self) -> Sharing | None:
        """Return how fits for several C and tubes are solved together."""
        return self._sharing(("C", "epsilon"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real(self, "epsilon", least=0)

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVR:
        return machines.SVR(kernel, float(self.C), float(self.epsilon), **self._solving())


class NuSVR(TubeRegressor):
    """`sklearn.svm.NuSVR` on Mercer's solver: regression whose tube leaves out a share nu.

    What differs is listed in the user guide.

    Parameters
    ----------
    nu : float, default=0.5
        Upper bound on the share of rows outside the tube and lower bound on that of support
        vectors.
    C : float, default=1.0
        Weight of the errors beyond the tube.
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
    shrinking : bool, default=True
        Accepted; the solver decides by itself.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
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
    fit_status_ : int
        0 if the tolerance was reached, else 1.
    n_iter_ : int
        Pair steps.
    shape_fit_ : tuple of int
        The shape of X.
    n_features_in_ : int
        The number of columns of X.
    machine_ : mercer.SVR
        The Mercer machine inside.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, computed from the data in float64 when
        first read.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import NuSVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> machine = NuSVR(C=10.0, nu=0.3).fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 0.06)
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool | int = False,
        max_iter: int = -1,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter

    def sharing(self) -> Sharing | None:
        """Return how fits for several C and nu are solved together."""
        return self._sharing(("C", "nu"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share(self, "nu")

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVR:
        return machines.SVR(kernel, float(self.C), nu=float(self.nu), **self._solving())
