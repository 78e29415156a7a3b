"""Drop-ins for `sklearn.svm`: SVR and NuSVR."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import svm

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import DropIn
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.sharing import Sharing

# --- regressor -----------------------------------------------------------------------------------
#
# What the two kernel regressions share.


class TubeRegressor(DropIn):
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
        self._validate_params()
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


# --- svr -----------------------------------------------------------------------------------------
#
# Drop-ins for `sklearn.svm.SVR` and `sklearn.svm.NuSVR`.


class SVR(TubeRegressor, svm.SVR):
    """`sklearn.svm.SVR` on Mercer's solver: regression with a tube.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. `shrinking`,
    `cache_size` and `verbose` are accepted: the solver decides by itself, and
    `mercer.config(memory=...)` sets what may be used.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import SVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> machine = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 0.06)
    True
    """

    def sharing(self) -> Sharing | None:
        """Return how fits for several C and tubes are solved together."""
        return self._sharing(("C", "epsilon"))

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVR:
        return machines.SVR(kernel, float(self.C), float(self.epsilon), **self._solving())


class NuSVR(TubeRegressor, svm.NuSVR):
    """`sklearn.svm.NuSVR` on Mercer's solver: regression whose tube leaves out a share nu.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. `shrinking`,
    `cache_size` and `verbose` are accepted: the solver decides by itself, and
    `mercer.config(memory=...)` sets what may be used.

    What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import NuSVR
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> machine = NuSVR(C=10.0, nu=0.3).fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 0.06)
    True
    """

    def sharing(self) -> Sharing | None:
        """Return how fits for several C and nu are solved together."""
        return self._sharing(("C", "nu"))

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.SVR:
        return machines.SVR(kernel, float(self.C), nu=float(self.nu), **self._solving())
