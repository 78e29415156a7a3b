"""Estimators `Whiten` and `LogShift`: whitening, and the transform log(a + x)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.kernels import Linear
from mercer.machines.base.inputs import new_rows, rows_with_gaps, training_rows_alone
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import check_flag, is_real, refuse
from mercer.machines.base.targets import check_weights
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import check_scores
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solution
from mercer.solvers.certificate import Certificate
from mercer.solvers.eigen.certificate import EigenQuantities

# --- whiten --------------------------------------------------------------------------------------
#
# Whitening: rows turned and scaled until their covariance is the identity.


@dataclass(frozen=True)
class WhiteningQuantities(EigenQuantities):
    """Measures of the directions, and of the whitened training samples.

    Attributes
    ----------
    whiteness : float
        Largest distance of a mean from 0, of a variance from 1, or of a covariance from 0.
    """

    whiteness: float = 0.0


class Whiten(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine, BaseEstimator):
    """Whitening: takes off the mean, turns rows to uncorrelated directions of variance one.

    Directions without variance, of which there are some whenever columns depend on one another or
    rows are no more than columns, are dropped; `n_dropped_` says how many.

    Parameters
    ----------
    rotate_back : bool, default=False
        Whether whitened rows are turned back to the axes they came from: the whitening that changes
        rows least. Dropped directions are zero then.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The mean of the rows.
    whitening_ : array of shape (n_features, n_columns)
        What rows less their mean are multiplied by; n_columns is `rank_`, or n_features with
        `rotate_back`.
    coloring_ : array of shape (n_columns, n_features)
        What takes whitened rows back.
    variances_ : array of shape (rank,)
        The variances along the directions, largest first.
    rank_ : int
        The number of directions with variance.
    n_dropped_ : int
        The number of directions without.
    solution_ : Solution
        How the directions were found.
    certificate_ : Certificate
        The judgement of the directions, as that of `PCA`, and of the whitened training samples.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Whiten
    >>> X = np.random.default_rng(0).normal(size=(50, 3)) @ [[2, 1, 0], [0, 1, 5], [0, 0, 3]]
    >>> white = Whiten().fit_transform(X)
    >>> bool(np.allclose(np.cov(white.T), np.eye(3), atol=1e-12))
    True
    """

    def __init__(self, *, rotate_back: bool = False) -> None:
        self.rotate_back = rotate_back

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
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
        check_flag(self, "rotate_back")
        X = rows_with_gaps(self, X, gaps=False, fitting=True)
        weights = check_weights(self, sample_weight, X.shape[0])
        machine = PCA(kernel=Linear()).fit(X, sample_weight=weights)
        self.rank_ = len(machine.solution_.value.values)
        self.n_dropped_ = int(X.shape[1]) - self.rank_
        self.mean_ = machine.mean_
        self.variances_ = machine.explained_variance_[: self.rank_]
        self.solution_: Solution = machine.solution_
        components = machine.components_[: max(self.rank_, 1)]
        self._keep(X, weights, components)
        self.certificate_: Certificate = machine.certificate_
        if self.rank_:
            self.certificate_ = self._judged(machine.certificate_, X, weights, components)
        return self

    def transform(self, X: Any) -> Array:
        """Whiten rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_columns)
            Whitened rows.
        """
        check_is_fitted(self)
        return self._white(new_rows(self, X, False), self.whitening_)

    def inverse_transform(self, X: Any) -> Array:
        """Return rows for whitened ones; what was dropped is that of the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_columns)
            Whitened rows.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        return np.asarray(check_scores(self, X, len(self.coloring_)) @ self.coloring_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return int(self.whitening_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _white(self, X: Points, whitening: Array) -> Array:
        if is_sparse(X):
            return np.asarray(X @ whitening - self.mean_ @ whitening)
        return np.asarray((X - self.mean_) @ whitening)

    def _keep(self, X: Points, weights: Array, components: Array) -> None:
        """Scale the directions, and make up for what their rounding leaves of correlation."""
        scale = np.ones(1) if self.rank_ == 0 else np.sqrt(self.variances_)
        whitening = components.T / scale
        _, covariance = _moments(self._white(X, whitening), weights)
        values, vectors = linalg.eigh(covariance if self.rank_ else np.eye(1))
        whitening = whitening @ (vectors / np.sqrt(values)) @ vectors.T
        coloring = (vectors * np.sqrt(values)) @ vectors.T @ (scale[:, None] * components)
        if self.rotate_back:
            whitening, coloring = whitening @ components, components.T @ coloring
        self.whitening_, self.coloring_ = whitening, coloring

    def _judged(
        self, directions: Certificate, X: Points, weights: Array, components: Array
    ) -> Certificate:
        """Measure what `transform` makes of the training samples, along the directions."""
        white = self._white(X, self.whitening_)
        mean, covariance = _moments(white @ components.T if self.rotate_back else white, weights)
        off = [np.abs(covariance - np.eye(self.rank_)).max(), np.abs(mean).max()]
        whiteness = float(np.max(off)) if np.isfinite(off).all() else float("inf")
        quantities = WhiteningQuantities(**asdict(directions.quantities), whiteness=whiteness)
        ok = directions.ok and whiteness <= directions.tol
        statement = (
            f"the whitened training samples have mean 0, variances 1 and covariances 0 within "
            f"{whiteness:.1e}; {directions.statement}"
        )
        return replace(directions, ok=bool(ok), quantities=quantities, statement=statement)


def _moments(white: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean and covariance of weighted samples."""
    total = float(weights.sum())
    free = total - 1.0 if total > 1 else total
    return weights @ white / total, (weights[:, None] * white).T @ white / free


# --- log shift -----------------------------------------------------------------------------------
#
# log(a + x): for columns whose entries span orders of magnitude.

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
