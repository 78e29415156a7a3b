"""Drop-in for `sklearn.kernel_ridge.KernelRidge`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import kernel_ridge
from sklearn.utils.validation import check_is_fitted

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import WrappedMachine
from mercer.compat.sklearn.kernels import kernel_matrix, known_kernel
from mercer.kernels import Precomputed
from mercer.machines.base.inputs import new_rows, read_rows, refuse_nonfinite
from mercer.machines.base.machine import all_or_nothing


class KernelRidge(WrappedMachine, kernel_ridge.KernelRidge):
    """`sklearn.kernel_ridge.KernelRidge` on Mercer's solver: ridge regression with a kernel.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. There is no
    constant, as in scikit-learn. What differs is listed in the user guide.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import KernelRidge
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> machine = KernelRidge(alpha=1e-3, kernel="rbf").fit(X, np.sin(X).ravel())
    >>> bool(abs(machine.predict([[1.5]])[0] - np.sin(1.5)) < 1e-2)
    True
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the kernel matrix itself for kernel="precomputed".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted machine.
        """
        self._validate_params()
        given = self._is_matrix()
        sparse = False if given else ("csr", "csc")
        X, y = read_rows(self, X, y, accept_sparse=sparse, multi_output=True, y_numeric=True)
        refuse_nonfinite(self, X)
        gamma = 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)
        known = known_kernel(self, gamma)
        rows = X if known is not None else kernel_matrix(self, X, None, self.gamma)
        machine = machines.KernelRidge(
            self._penalty(), known or Precomputed(), approximation=None, bias=False
        )
        self.machine_ = machine.fit(rows, y, sample_weight)
        # what predictions are made from is not changed with the caller's array
        self.dual_coef_, self.X_fit_ = machine.dual_coef_, X if known is not None else X.copy()
        self._known = known is not None
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets for new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            The values of f.
        """
        check_is_fitted(self)
        rows = new_rows(self, X, self._is_matrix())
        if not self._known:
            rows = kernel_matrix(self, rows, self.X_fit_, self.gamma)
        return np.asarray(self.machine_.predict(rows))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_matrix()
        return tags

    def _is_matrix(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _penalty(self) -> Any:
        return np.asarray(self.alpha, dtype=np.float64) if np.ndim(self.alpha) else self.alpha
