"""The tightest box around the positive rows: the first learner of the theory of learning."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.targets import check_weights


class AxisAlignedRectangle(ClassifierMixin, Machine, BaseEstimator):
    """Calls a row positive if it lies in the smallest box, sides along the axes, of the positives.

    If some such box tells the classes apart, then after (2d/eps) ln(2d/delta) independent rows the
    error is at most eps, but with probability delta, whatever the distribution
    (`mercer.theory.rectangle_sample_size`). There is nothing to solve: the box is known from the
    extremes of the positive rows.

    Parameters
    ----------
    positive : object, default=None
        The label of the rows to put in the box; None takes the last of the sorted labels.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels.
    low_, high_ : arrays of shape (n_features,)
        Corners of the box; with no positive row, +inf and -inf: nothing is inside.
    consistent_ : bool
        Whether the box holds no negative row of the fit: then, and only then, the theory applies.
    n_inside_ : int
        Negative rows of the fit that lie in the box.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import AxisAlignedRectangle
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> y = np.all((X > 0.2) & (X < 0.7), axis=1)
    >>> machine = AxisAlignedRectangle().fit(X, y)
    >>> machine.predict([[0.5, 0.5], [0.9, 0.5]]).tolist(), machine.consistent_
    ([True, False], True)
    """

    def __init__(self, positive: Any = None) -> None:
        self.positive = positive

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the box.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Two labels.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are left out; otherwise how often a row counts changes nothing.

        Returns
        -------
        self
            The fitted machine.
        """
        X, y = read_rows(self, X, y)
        refuse_nonfinite(self, X)
        check_classification_targets(y)
        kept = check_weights(self, sample_weight, len(y)) > 0
        X, y = X[kept], y[kept]
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported by AxisAlignedRectangle; y has "
                f"{len(self.classes_)} classes"
            )
        inside = y == self._positive()
        none = np.full(X.shape[1], np.inf)
        self.low_ = X[inside].min(axis=0) if inside.any() else none
        self.high_ = X[inside].max(axis=0) if inside.any() else -none
        self.n_inside_ = int(np.count_nonzero(self._holds(X) & ~inside))
        self.consistent_ = self.n_inside_ == 0
        return self

    def predict(self, X: Any) -> Array:
        """Label new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The positive label inside the box, the other one outside.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, fitting=False)
        refuse_nonfinite(self, rows)
        positive = self._positive()
        others = self.classes_[self.classes_ != positive]
        negative = others[0] if len(others) else positive
        return np.asarray(np.where(self._holds(rows), positive, negative))

    def _holds(self, X: Array) -> Array:
        return np.asarray(np.all((X >= self.low_) & (X <= self.high_), axis=1))

    def _positive(self) -> Any:
        if self.positive is None:
            return self.classes_[-1]
        if self.positive not in self.classes_ and len(self.classes_) > 1:
            raise ValueError(
                f"AxisAlignedRectangle: positive={self.positive!r} is not a label of y: "
                f"{self.classes_.tolist()}"
            )
        return self.positive

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags
