"""What the two kernel regressions share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from mercer.array_types import Array
from mercer.compat.sklearn.base.margin import DropIn
from mercer.compat.sklearn.base.parameters import check_weight_of_slack
from mercer.machines.base.machine import all_or_nothing


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
