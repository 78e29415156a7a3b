"""Drop-in for `sklearn.svm.LinearSVC`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import LinearSVC as LiblinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.compat.sklearn.base.inputs import Rows
from mercer.compat.sklearn.base.margin import as_configured
from mercer.compat.sklearn.base.masks import masked_weights
from mercer.compat.sklearn.base.origin import OriginMachine, OriginProgramme
from mercer.compat.sklearn.base.parameters import check_linear
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.parameters import check_choice
from mercer.machines.base.targets import (
    check_class_weight,
    class_weights,
    classes_of,
    distinct_rows,
    refuse_mixed_labels,
)
from mercer.points import to_dense
from mercer.problems.margin import svm

_LOSSES = {"hinge": svm.svc, "squared_hinge": svm.svc_l2}
_REACH = {"hinge": 1.0, "squared_hinge": 2.0}  # times the sum of the costs; see `_part`


class LinearSVC(OriginMachine, ClassifierMixin, BaseEstimator):
    """`sklearn.svm.LinearSVC` on Mercer's solvers: linear classification.

    The constant is punished like a weight, as LIBLINEAR does. What differs is listed in the user
    guide.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
        Norm of the weights; "l1" runs on scikit-learn's LIBLINEAR, without a certificate.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        Whether the slack counts as it is or squared.
    dual : bool or "auto", default="auto"
        Accepted; the solver decides by itself.
    tol : float, default=1e-4
        Largest violation of the optimality conditions.
    C : float, default=1.0
        Weight of the slack.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        Each class against the rest; "crammer_singer" runs on scikit-learn's LIBLINEAR, without a
        certificate.
    fit_intercept : bool, default=True
        Whether there is a constant.
    intercept_scaling : float, default=1.0
        The larger, the less the constant is punished: its square is divided by the square of this.
    class_weight : dict, "balanced" or None, default=None
        Factor on C for each label; with more than two classes, in the question for that label only.
    verbose : int, default=0
        Accepted; nothing is printed.
    random_state : int, RandomState or None, default=None
        Of LIBLINEAR, where that runs; else nothing is random.
    max_iter : int, default=1000
        Largest number of passes over the rows; from 1000 on the solver's own limit holds.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
        Weights of the columns.
    intercept_ : array of shape (1,) or (n_classes,), or 0.0 without a constant
        The constants.
    classes_ : array of shape (n_classes,)
        The labels, sorted.
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
    >>> from mercer.compat.sklearn import LinearSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> LinearSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]]).tolist()
    [1]
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Mapping[Any, float] | str | None = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: a factor on its C; rows of negative weight are left out.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        refuse_mixed_labels(self, y)
        X, y = Rows().training(self, X, y)
        check_classification_targets(y)
        weights = masked_weights(self, sample_weight, len(y))
        if self.penalty == "l1" or self.multi_class == "crammer_singer":
            return self._by_liblinear(X, y, weights)
        self.classes_, codes = classes_of(self, y, weights)
        rows = distinct_rows(X, codes, weights)
        labels, costs = codes[rows.first], float(self.C) * rows.weight
        totals = np.bincount(labels, rows.weight)
        found = class_weights(self, self.class_weight, self.classes_, totals)
        factors = np.ones(len(self.classes_)) if found is None else found
        if len(self.classes_) == 2:
            parts = [self._part(labels == 1, costs * factors[labels])]
        else:
            single = [labels == c for c in range(len(self.classes_))]
            parts = [
                self._part(mine, np.where(mine, factor, 1.0) * costs)
                for mine, factor in zip(single, factors, strict=True)
            ]
        self.coef_, constants = self._weigh(X, rows.first, tuple(parts))
        self.intercept_ = constants if self.fit_intercept else 0.0
        return self

    def decision_function(self, X: Any) -> Array:
        """Evaluate the decision at new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for `classes_[1]`; else one per class.
        """
        check_is_fitted(self)
        points = Rows().new(self, X)
        values = to_dense(points @ self.coef_.T) + self.intercept_
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def predict(self, X: Any) -> Array:
        """Predict labels of new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The label with the largest value; ties go to the first in `classes_`.
        """
        decision = self.decision_function(X)
        chosen = decision > 0 if decision.ndim == 1 else np.argmax(decision, axis=1)
        return np.asarray(self.classes_[chosen.astype(np.intp)])

    def sparsify(self) -> Self:
        """Turn `coef_` into a sparse matrix, in place.

        Returns
        -------
        self
            The fitted machine.
        """
        check_is_fitted(self)
        self.coef_ = as_configured(sparse.csr_array(self.coef_))
        return self

    def densify(self) -> Self:
        """Turn `coef_` back into an array, in place.

        Returns
        -------
        self
            The fitted machine.
        """
        check_is_fitted(self)
        self.coef_ = to_dense(self.coef_)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _by_liblinear(self, X: Points, y: Array, weights: Array) -> Self:
        """Let scikit-learn answer what is no box programme: the l1 norm, all classes at once."""
        theirs = LiblinearSVC(**self.get_params(deep=False)).fit(X, y, weights)
        for name in ("classes_", "coef_", "intercept_", "n_iter_"):
            setattr(self, name, getattr(theirs, name))
        for name in ("solution_", "_judgement"):  # there are none, not those of an earlier fit
            self.__dict__.pop(name, None)
        return self

    def _part(self, mine: Array, costs: Array) -> OriginProgramme:
        # a coefficient is at most its cost; squared, twice its cost times a slack, and the squares
        # of slacks cost no more than those of f = 0, which are 1: their sum is below twice the sum
        signs = np.where(mine, 1.0, -1.0)
        return OriginProgramme(
            _LOSSES[self.loss], signs, costs, _REACH[self.loss] * float(costs.sum())
        )

    def _check_parameters(self) -> None:
        check_choice(self, "penalty", ("l1", "l2"))
        check_choice(self, "loss", tuple(_LOSSES))
        check_choice(self, "multi_class", ("ovr", "crammer_singer"))
        check_class_weight(self)
        check_linear(self)
        if self.multi_class == "crammer_singer":
            return
        dual = self.dual != "auto" and bool(self.dual)
        no_l1 = self.penalty == "l1" and (self.loss == "hinge" or dual)
        if no_l1 or (self.loss == "hinge" and self.dual != "auto" and not dual):
            raise ValueError(
                f"LinearSVC: Unsupported set of arguments: penalty={self.penalty!r}, "
                f"loss={self.loss!r}, dual={self.dual}; the l1 penalty goes with "
                "loss='squared_hinge' and dual=False, loss='hinge' with dual=True, or dual='auto'"
            )
