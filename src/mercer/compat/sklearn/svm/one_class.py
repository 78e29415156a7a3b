"""Drop-in for `sklearn.svm.OneClassSVM`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import svm

from mercer import machines
from mercer.array_types import Array
from mercer.compat.sklearn.base import NOTHING, DropIn
from mercer.kernels import Kernel
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.sharing import Sharing


class OneClassSVM(DropIn, svm.OneClassSVM):
    """`sklearn.svm.OneClassSVM` on Mercer's solver: where rows are common.

    Parameters, attributes and methods are scikit-learn's; `machine_`, `solution_` and
    `certificate_` come on top. `kernel` takes a kernel of `mercer.kernels` as well. `shrinking`,
    `cache_size` and `verbose` are accepted: the solver decides by itself, and
    `mercer.config(memory=...)` sets what may be used.

    What differs is listed in the user guide.

    Examples
    --------
    >>> from mercer.compat.sklearn import OneClassSVM
    >>> machine = OneClassSVM(gamma="auto").fit([[0], [0.44], [0.45], [0.46], [1]])
    >>> machine.predict([[0.45], [3.0]]).tolist()
    [1, -1]
    """

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
        self._validate_params()
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

    def _machine(self, kernel: Kernel, targets: Array, weights: Array) -> machines.OneClassSVM:
        return machines.OneClassSVM(kernel, float(self.nu), **self._solving())
