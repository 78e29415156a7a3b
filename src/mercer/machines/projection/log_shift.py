"""log(a + x): for columns whose entries span orders of magnitude."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.machines.base.inputs import new_rows, training_rows_alone
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.base.targets import check_weights

_LOW = 0.1


class LogShift(OneToOneFeatureMixin, TransformerMixin, Machine, BaseEstimator):
    """Takes the logarithm of each entry, shifted: log(a + x), one a for each column.

    Chosen from the data, a is 0 for columns whose entries are all positive. For others it is h less
    the smallest entry, h being half the lower decile of how far the entries that are not smallest
    lie above it: for counts with zeros, log(1/2 + x). A column without variation gets h = 1.

    Parameters
    ----------
    shift : {"auto"}, float or array of shape (n_features,), default="auto"
        The shifts a.

    Attributes
    ----------
    shift_ : array of shape (n_features,)
        The shifts used.

    Examples
    --------
    >>> from mercer import LogShift
    >>> counts = [[0.0, 10.0], [1.0, 100.0], [7.0, 1000.0]]
    >>> LogShift().fit(counts).shift_.tolist()
    [0.5, 0.0]
    >>> LogShift(1.0).fit_transform(counts).round(2).tolist()
    [[0.0, 2.4], [0.69, 4.62], [2.08, 6.91]]
    """

    def __init__(self, shift: float | str | npt.ArrayLike = "auto") -> None:
        self.shift = shift

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Choose the shifts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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
        X = training_rows_alone(self, X, True)
        weights = check_weights(self, sample_weight, len(X))
        if isinstance(self.shift, str):
            X, weights = X[weights > 0].astype(np.float64, copy=False), weights[weights > 0]
            self.shift_ = np.array([_shift(column, weights) for column in X.T])
            self._refuse_overflow(X)
        else:
            shift = np.asarray(self.shift, dtype=np.float64)
            if shift.ndim and shift.shape != (X.shape[1],):
                must = f"be one number or {X.shape[1]}, one per column"
                refuse(self, "shift", self.shift, must)
            self.shift_ = np.broadcast_to(shift, (X.shape[1],)).copy()
            self._shifted(X[weights > 0])
        return self

    def transform(self, X: Any) -> Array:
        """Take logarithms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; a + x must be positive.

        Returns
        -------
        array of shape (n_samples, n_features)
            log(a + x).
        """
        check_is_fitted(self)
        return np.log(self._shifted(new_rows(self, X, True)))

    def inverse_transform(self, X: Any) -> Array:
        """Undo `transform`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Logarithms.

        Returns
        -------
        array of shape (n_samples, n_features)
            exp(x) - a.
        """
        check_is_fitted(self)
        return np.asarray(np.exp(new_rows(self, X, True)) - self.shift_)

    def _shifted(self, X: Points) -> Array:
        shifted = np.asarray(X + self.shift_)
        bad = np.argwhere(shifted <= 0)
        if len(bad):
            row, column = bad[0]
            raise ValueError(
                f"LogShift: {len(bad)} entries have no logarithm: in row {row}, column {column}, "
                f"x = {X[row, column]:g} and a + x = {shifted[row, column]:g}. Negative values in "
                "data passed to LogShift need a larger shift"
            )
        return shifted

    def _refuse_overflow(self, X: Points) -> None:
        with np.errstate(over="ignore"):
            bad = np.flatnonzero(~np.isfinite(X.max(axis=0) + self.shift_))
        if len(bad):
            raise ValueError(
                f"LogShift: the entries of column {bad[0]} of X lie further apart than float64 "
                "holds; scale the column"
            )

    def _check_parameters(self) -> None:
        if isinstance(self.shift, str):
            if self.shift != "auto":
                refuse(self, "shift", self.shift, "be a number, an array, or 'auto'")
            return
        try:
            values = np.asarray(self.shift, dtype=np.float64)
        except (TypeError, ValueError):
            refuse(self, "shift", self.shift, "be a number, an array, or 'auto'")
            return
        single = values.ndim == 0 and not is_real(self.shift)
        if values.ndim > 1 or not np.isfinite(values).all() or single:
            refuse(self, "shift", self.shift, "hold finite numbers, one or one per column")


def _shift(column: Array, weights: Array) -> float:
    least = float(column.min())
    if least > 0:
        return 0.0
    above = column > least
    if not above.any():
        return 1.0 - least
    with np.errstate(over="ignore"):  # refused later, with the column named
        distance, weights = column[above] - least, weights[above]
    order = np.argsort(distance, kind="stable")
    reached = np.cumsum(weights[order])
    decile = distance[order][np.searchsorted(reached, _LOW * reached[-1] * (1 - 1e-12))]
    # h must outlive the addition of the smallest entry
    return max(0.5 * float(decile), 4 * float(np.finfo(float).eps) * abs(least)) - least
