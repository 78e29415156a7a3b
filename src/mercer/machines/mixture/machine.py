"""What machines of mixtures share: the fit, the choice of the number of parts, assignments."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from math import log
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends.lapack import one_blas_thread
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.inputs import rows_with_gaps
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import (
    check_count,
    check_limits,
    check_number,
    check_real,
    check_seed,
    is_real,
    refuse,
    seed_of,
    source_of,
)
from mercer.machines.base.targets import check_weights, distinct_rows
from mercer.machines.mixture.em_loop import EM
from mercer.machines.mixture.problem import Mixture
from mercer.rows.points import take
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

_MANY = 100  # parts


class MixtureMachine(Certified, DensityMixin, Machine, BaseEstimator):
    """Base of mixtures: equal rows are merged, so that weights are repetition to the last bit."""

    n_components: Any
    max_components: int
    n_init: int
    tol: float
    max_iter: int
    random_state: Any
    callback: Any
    time_limit: float | None

    _problem: Any  # without its rows: what new rows are compared with
    _parts: Any

    @abstractmethod
    def _question(self, X: Points, weights: Array, k: int) -> Any:
        """Write the problem of fitting k parts."""

    @abstractmethod
    def _keep(self, problem: Any, parts: Any) -> None:
        """Set the attributes that users read."""

    @abstractmethod
    def _free(self, problem: Any, k: int) -> tuple[int, int]:
        """Count the free numbers of each part, and those that all parts share (shares not)."""

    def _small_sample(self, problem: Any, rows: Array) -> float:
        """Return what a length must add for parts of few rows: nothing where they are bounded."""
        return 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # no classifier, but scikit-learn's checks of sparse rows ask the tags of one about the
        # columns of predict_proba
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _rows(self, X: Any, *, fitting: bool) -> Points:
        return rows_with_gaps(self, X, gaps=False, fitting=fitting)

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
        rows = self._rows(X, fitting=True)
        weights = check_weights(self, sample_weight, rows.shape[0])
        deadline.check()  # of many rows each of these is a while
        merged = distinct_rows(rows, np.zeros(len(weights)), weights)
        deadline.check()
        rows, weights = take(rows, merged.first), merged.weight  # copies: the fit's own
        deadline.check()
        self._refuse_many(int(np.count_nonzero(weights)))
        problem, solution = self._chosen(rows, weights)
        self.solution_: Solution = solution
        self.n_components_ = int(problem.count)
        self.n_iter_ = int(solution.iterations)
        self.converged_ = bool(solution.status.ok)
        self.log_likelihoods_ = solution.value.likelihoods
        self._parts = solution.value
        self._problem = replace(problem, X=problem.X[:0], weights=problem.weights[:0])
        self._keep(problem, solution.value)
        self._warn_of_collapse(problem, solution.value)
        judge = partial(certify, tol=2.0 * self.tol)
        # judged before the fit ends: it takes a pass or two, and densities of parts on a few rows
        # are so large that rounding of them may be more than a step gains
        self._judgement = LazyDataCertificate(
            problem, solution.value, judge, eager=True, rows=len(weights)
        )
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit to rows, and give the most likely part of each.

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
        int array of shape (n_samples,)
            Parts.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> Array:
        """Return the most likely part of each row: a hard assignment.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        int array of shape (n_samples,)
            Parts.
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Return the chance of each part to be the source of each row: a soft assignment.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            Chances; rows sum to one.
        """
        return self._posterior(X)[1]

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Log-densities.
        """
        return self._posterior(X)[0]

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the mean log-density of rows.

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
        float
            The mean log-density.
        """
        found = self.score_samples(X)
        return float(np.average(found, weights=check_weights(self, sample_weight, len(found))))

    def bic(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return Bayes' information criterion, p ln n - 2 ln L; smaller is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        float
            The criterion.
        """
        total, n = self._total(X, sample_weight)
        return self._bic(self._problem, total, n)

    def description_length(self, X: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the length, in nats, of the rows told by way of the mixture; smaller is better.

        As half of `bic`, but that the N numbers of each part are told to the precision which its
        own share p_j of the rows deserves: N/2 sum_j ln(n p_j) + (k - 1)/2 ln n - ln L. So small
        parts cost less. Gaussians of few rows are likelier than the rows are to come again: by
        how much on average is added, N (d + 2) / (n p_j - d - 2) for a full covariance of d
        columns, which is infinite for parts of d + 2 rows or fewer.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        float
            The length.
        """
        total, n = self._total(X, sample_weight)
        return self._length(self._problem, total, n, self._parts.shares)

    def _posterior(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        rows = self._converted(self._rows(X, fitting=False))
        with one_blas_thread():
            found: tuple[Array, Array] = self._problem.posterior(self._parts, rows)
        return found

    def _converted(self, X: Points) -> Points:
        """Return new rows in the units of the problem."""
        return X

    def _total(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        found = self.score_samples(X)
        weights = check_weights(self, sample_weight, len(found))
        return float(weights @ found), float(weights.sum())

    def _bic(self, problem: Any, total: float, n: float) -> float:
        k = int(problem.count)
        each, common = self._free(problem, k)
        return (k * each + common + k - 1) * log(n) - 2.0 * total

    def _length(self, problem: Any, total: float, n: float, shares: Array) -> float:
        full = n * shares[shares * n > 1e-9]
        each, common = self._free(problem, len(full))
        parts = 0.5 * each * float(np.log(np.maximum(full, 1.0)).sum())
        shared = 0.5 * (len(full) - 1 + common) * log(n)
        return parts + shared + self._small_sample(problem, full) - total

    def _refuse_many(self, rows: int) -> None:
        """Refuse hundreds of parts without rows; a few empty ones cost nothing."""
        name = "max_components" if isinstance(self.n_components, str) else "n_components"
        count = int(getattr(self, name))
        if count > max(rows, _MANY):
            refuse(
                self, name, count, f"be at most {max(rows, _MANY)}: there are {rows} different rows"
            )

    def _chosen(self, X: Points, weights: Array) -> tuple[Any, Solution]:
        """Fit the number of parts asked for, or each and keep the best by the criterion.

        Parts that sit on single rows are as likely as the floor lets them be, whatever is true of
        the data: numbers that lead to them are passed over if others do not.
        """
        self.__dict__.pop("criteria_", None)
        if not isinstance(self.n_components, str):
            return self._solved(X, weights, int(self.n_components))
        best, values = None, []
        for k in range(1, int(self.max_components) + 1):
            problem, solution = self._solved(X, weights, k)
            values.append(self._criterion(problem, solution))
            rank = bool(problem.collapsed(solution.value).any()), values[-1]
            if best is None or rank < best[0]:
                best = rank, problem, solution
        assert best is not None  # max_components is at least one
        self.criteria_ = np.array(values)
        return best[1:]

    def _solved(self, X: Points, weights: Array, k: int) -> tuple[Any, Solution]:
        problem = self._question(X, weights, k)
        seed = seed_of(self.random_state)
        solver = EM(float(self.tol), int(self.max_iter), int(self.n_init), seed)
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        return problem, solve(problem, solver, **options)

    def _criterion(self, problem: Any, solution: Solution) -> float:
        total = problem.e_step(solution.value).log_likelihood
        if self.n_components == "bic":
            return self._bic(problem, total, problem.total)
        return self._length(problem, total, problem.total, solution.value.shares)

    def _warn_of_collapse(self, problem: Mixture, parts: Any) -> None:
        self.collapsed_ = problem.collapsed(parts)
        bad = np.flatnonzero(self.collapsed_)
        if len(bad):
            warnings.warn(
                f"{type(self).__name__}: collapsed components ({len(bad)} of {problem.count}): "
                f"{bad[:8].tolist()}. {self._remedy()}",
                UserWarning,
                stacklevel=4,
            )

    def _remedy(self) -> str:
        return "No row is theirs; use fewer components."

    def _check_parameters(self) -> None:
        if isinstance(self.n_components, str):
            if self.n_components not in ("bic", "mdl"):
                must = "be a positive integer, 'bic' or 'mdl'"
                refuse(self, "n_components", self.n_components, must)
        elif not is_real(self.n_components):
            refuse(self, "n_components", self.n_components, "be a positive integer, 'bic' or 'mdl'")
        else:
            check_count(self, "n_components")
        for name in ("max_components", "n_init", "max_iter"):
            check_count(self, name)
        check_real(self, "tol", above=0)
        check_seed(self)
        check_limits(self)


def drawn_parts(
    machine: Any, n_samples: Any, random_state: Any
) -> tuple[np.random.RandomState, Array]:
    """Draw the parts of so many rows, sorted, and give the source of random numbers."""
    rng, shares = source_of(machine, random_state), machine.weights_
    counts = rng.multinomial(check_number(machine, "n_samples", n_samples), shares / shares.sum())
    return rng, np.repeat(np.arange(len(shares)), counts)
