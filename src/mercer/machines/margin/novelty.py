"""What one-class support vector machines share: fit to rows alone, then tell common from novel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.machines.base.machine import all_or_nothing, with_callbacks
from mercer.machines.base.similarity import warn_of_similarity
from mercer.machines.base.targets import check_weights
from mercer.machines.margin.margin_machine import MarginMachine
from mercer.machines.margin.zones import Zones, zones
from mercer.problems import BoxQP, Dual

_ZONES = ("inside", "on", "outside")


class NoveltyMachine(OutlierMixin, MarginMachine):
    """Base of machines that find a region which holds all but a few rows."""

    nu: float
    offset_: float
    _has_free_constant = False  # coefficients add up to one

    @all_or_nothing
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
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
        X = self._rows_alone(X)
        weights = check_weights(self, sample_weight, X.shape[0])
        rows = self._merged(X, np.zeros(X.shape[0]), weights)
        self._use_kernel(self._resolved(X, rows), X, weights, self._column_names())
        gram, question = self._gram(X, rows), self._question(rows.weight)
        dual = self._answer(gram, question).value
        self._keep_border(question, gram, dual)
        self._expansion = gram.expand(dual.coef)
        self._keep_support(X, rows.spread(dual.coef, weights))
        warn_of_similarity(self, gram, X)
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse what cannot be fitted."""

    @abstractmethod
    def _question(self, weights: Array) -> Callable[[Gram], BoxQP]:
        """Return what is asked of the Gram of rows of these weights."""

    @abstractmethod
    def _keep_border(self, question: Callable[[Gram], BoxQP], gram: Gram, dual: Dual) -> None:
        """Keep `offset_`, the score at the border, and what belongs to it."""

    @abstractmethod
    def _border_width(self) -> float:
        """Return how far from the border a score is still on it."""

    @abstractmethod
    def score_samples(self, X: Any) -> Array:
        """Score new rows: the larger, the more common."""

    def decision_function(self, X: Any) -> Array:
        """Return the score less `offset_`: negative for novel rows.

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

    def predict(self, X: Any) -> Array:
        """Tell common rows (1) from novel ones (-1).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            1 where the decision is zero or more, else -1.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def zones(self, X: Any) -> Zones:
        """Return which rows are inside, on or outside the border.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, such as those of the fit.

        Returns
        -------
        Zones
            `zone` and `slack` of each row.
        """
        return zones(self.decision_function(X), self._border_width(), _ZONES)
