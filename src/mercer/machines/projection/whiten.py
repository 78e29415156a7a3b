"""Whitening: rows turned and scaled until their covariance is the identity."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.certificates import Certificate
from mercer.kernels import Linear
from mercer.machines.base.inputs import new_rows, rows_with_gaps
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import check_flag
from mercer.machines.base.targets import check_weights
from mercer.machines.projection.inversion import check_scores
from mercer.machines.projection.pca import PCA
from mercer.points import is_sparse
from mercer.solvers import Solution


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
        The judgement of the directions, as that of `PCA`.

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
        self.certificate_: Certificate = machine.certificate_
        self._keep(X, weights, machine.components_[: max(self.rank_, 1)])
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
        white, total = self._white(X, whitening), float(weights.sum())
        covariance = (weights[:, None] * white).T @ white / (total - 1.0 if total > 1 else total)
        values, vectors = linalg.eigh(covariance if self.rank_ else np.eye(1))
        whitening = whitening @ (vectors / np.sqrt(values)) @ vectors.T
        coloring = (vectors * np.sqrt(values)) @ vectors.T @ (scale[:, None] * components)
        if self.rotate_back:
            whitening, coloring = whitening @ components, components.T @ coloring
        self.whitening_, self.coloring_ = whitening, coloring
