"""What ICA and projection pursuit share: the fit, the way there and back, signs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.certificates import certify
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.inputs import new_rows, rows_with_gaps
from mercer.machines.base.machine import all_or_nothing
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    seed_of,
)
from mercer.machines.base.targets import check_weights, distinct_rows
from mercer.machines.independent.whitening import White, white_rows
from mercer.machines.projection.inversion import check_scores
from mercer.points import is_sparse, take
from mercer.problems import CONTRASTS, IndependentComponents, Unmixing
from mercer.problems.independent.contrasts import non_gaussianity
from mercer.solvers import FixedPointICA, Solution, Status, solve
from mercer.solvers.spectral.signs import signs_of


class UnmixingMachine(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified, Machine, BaseEstimator
):
    """Base of machines that look for directions far from Gaussian."""

    n_components: int | None
    contrast: str
    n_init: int
    tol: float
    max_iter: int
    random_state: Any
    callback: Any
    time_limit: float | None

    @abstractmethod
    def _question(self, white: White, weights: Array) -> IndependentComponents:
        """Write the problem on white rows."""

    @abstractmethod
    def _space(self) -> int | None:
        """Return how many principal components are kept; None for all that vary."""

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
        self._check_parameters()
        X = rows_with_gaps(self, X, gaps=False, fitting=True)
        given = check_weights(self, sample_weight, X.shape[0])
        # equal rows are one: a fit cannot tell repetition from weight, nor one order from another
        merged = distinct_rows(X, np.zeros(len(given)), given)
        rows, weights = take(X, merged.first), merged.weight
        white = white_rows(self, rows, weights, self._space())
        question = self._question(white, weights)
        solver = FixedPointICA(
            float(self.tol), int(self.max_iter), int(self.n_init), seed_of(self.random_state)
        )
        limits = {"callback": self.callback, "time_limit": self.time_limit}
        solution = solve(question, solver, **limits)
        turn = self._put_in_order(solution.value.components, question)
        value = Unmixing(white.mean, turn @ white.whitening.T)
        if solution.status.ok and not white.solution.status.ok:
            solution = replace(solution, status=white.solution.status)
        self.solution_: Solution = replace(solution, value=value)
        self._keep(value, turn @ white.coloring)
        found = non_gaussianity(question.rows @ turn.T, question.share, question.contrast)
        self.non_gaussianity_ = found
        problem = replace(question, rows=rows)
        self._judgement = LazyDataCertificate(
            problem, value, partial(certify, tol=10.0 * self.tol), eager=True, rows=len(weights)
        )
        return self

    def transform(self, X: Any) -> Array:
        """Return the components of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            y = W (x - mean).
        """
        check_is_fitted(self)
        return _components_of(new_rows(self, X, False), self.mean_, self.components_)

    def inverse_transform(self, X: Any) -> Array:
        """Return the rows that components belong to; what was left out is that of the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Components.

        Returns
        -------
        array of shape (n_samples, n_features)
            mean + A y.
        """
        check_is_fitted(self)
        scores = check_scores(self, X, len(self.components_))
        return np.asarray(scores @ self.mixing_.T + self.mean_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _put_in_order(self, turn: Array, question: IndependentComponents) -> Array:
        """Give directions their order and signs."""
        Y = question.rows @ turn.T
        if question.joint:
            far = non_gaussianity(Y, question.share, question.contrast)
            order = np.argsort(-far, kind="stable")
            turn, Y = turn[order], Y[:, order]
        return np.asarray(turn * signs_of(Y)[:, None])

    def _keep(self, value: Unmixing, mixing: Array) -> None:
        self.mean_, self.components_ = value.mean, value.components
        self.mixing_ = np.ascontiguousarray(mixing.T)
        self.n_components_ = len(value.components)
        self.n_iter_ = max(1, int(self.solution_.iterations))
        self.converged_ = self.solution_.status is Status.SOLVED

    def _check_parameters(self) -> None:
        check_optional_count(self, "n_components")
        check_choice(self, "contrast", tuple(CONTRASTS))
        check_count(self, "n_init")
        check_count(self, "max_iter")
        check_real(self, "tol", above=0)
        check_seed(self)
        check_limits(self)


def _components_of(X: Points, mean: Array, components: Array) -> Array:
    if is_sparse(X):
        return np.asarray(X @ components.T - mean @ components.T)
    return np.asarray((X - mean) @ components.T)
