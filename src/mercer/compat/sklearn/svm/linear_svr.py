"""Drop-in for `sklearn.svm.LinearSVR`."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.compat.sklearn.base.inputs import Rows
from mercer.compat.sklearn.base.masks import masked_weights
from mercer.compat.sklearn.base.origin import OriginMachine, OriginProgramme
from mercer.compat.sklearn.base.parameters import check_linear
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_choice, check_real
from mercer.machines.base.targets import distinct_rows
from mercer.problems.margin import svm

_LOSSES = {"epsilon_insensitive": svm.svr, "squared_epsilon_insensitive": svm.svr_l2}


class LinearSVR(OriginMachine, RegressorMixin, BaseEstimator):
    """`sklearn.svm.LinearSVR` on Mercer's solvers: linear regression with a tube.

    The constant is punished like a weight, as LIBLINEAR does. What differs is listed in the user
    guide.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube, in units of y.
    tol : float, default=1e-4
        Largest violation of the optimality conditions.
    C : float, default=1.0
        Weight of the errors beyond the tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        Whether errors beyond the tube count as they are or squared.
    fit_intercept : bool, default=True
        Whether there is a constant.
    intercept_scaling : float, default=1.0
        The larger, the less the constant is punished: its square is divided by the square of this.
    dual : bool or "auto", default="auto"
        Accepted; the solver decides by itself.
    verbose : int, default=0
        Accepted; nothing is printed.
    random_state : int, RandomState or None, default=None
        Accepted; nothing is random.
    max_iter : int, default=1000
        Largest number of passes over the rows; from 1000 on the solver's own limit holds.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of the columns.
    intercept_ : array of shape (1,), or 0.0 without a constant
        The constant.
    n_iter_ : int
        Steps of the solver.
    n_features_in_ : int
        The number of columns of X.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Duality gap, optimality conditions and feasibility, from the data in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.compat.sklearn import LinearSVR
    >>> X = np.arange(10.0)[:, None]
    >>> machine = LinearSVR(C=100.0).fit(X, 2.0 * X.ravel() + 1.0)
    >>> machine.coef_.round(2).tolist(), machine.intercept_.round(2).tolist()
    ([2.0], [1.0])
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: a factor on its C; rows of negative weight are left out.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = Rows().training(self, X, y, y_numeric=True)
        y = y.astype(np.float64)
        weights = masked_weights(self, sample_weight, len(y))
        rows = distinct_rows(X, y, weights)
        targets, costs = y[rows.first], float(self.C) * rows.weight
        # coefficients are at most their costs; squared, twice a cost times an error, and errors
        # cost no more than those of f = 0
        reach = 1.0 + float(costs.sum())
        if self.loss == "squared_epsilon_insensitive":
            reach = 1.0 + 2.0 * float(np.sqrt(costs.sum()) * np.sqrt(costs @ targets**2))
        write = partial(_LOSSES[self.loss], eps=float(self.epsilon))
        coef, constants = self._weigh(
            X, rows.first, (OriginProgramme(write, targets, costs, reach),)
        )
        self.coef_ = coef[0]
        self.intercept_ = constants if self.fit_intercept else 0.0
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
        check_is_fitted(self)
        return np.asarray(Rows().new(self, X) @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        check_real(self, "epsilon", least=0)
        check_choice(self, "loss", tuple(_LOSSES))
        check_linear(self)
