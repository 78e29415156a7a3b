"""Estimator `ProbabilisticPCA`, and its solution in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.kernels import Linear
from mercer.machines.base.inputs import refuse_empty_columns, rows_with_gaps
from mercer.machines.base.machine import Machine, all_or_nothing
from mercer.machines.base.parameters import (
    ParameterError,
    check_choice,
    check_count,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    is_real,
    refuse,
    seed_of,
)
from mercer.machines.base.targets import check_weights
from mercer.machines.decomposition.components import moments
from mercer.machines.decomposition.pca import PCA
from mercer.machines.decomposition.preimage import check_scores
from mercer.machines.decomposition.probabilistic_pca_em import (
    LatentEM,
    LatentGaussian,
    Plane,
    log_densities,
    posteriors,
)
from mercer.rows.points import is_sparse, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import Certificate, certify
from mercer.solvers.dispatch import solve
from mercer.solvers.eigen.dense import signs_of

# --- plane ---------------------------------------------------------------------------------------
#
# The plane of probabilistic PCA in closed form, and the one way to write it down.

_EPS = float(np.finfo(np.float64).eps)
_SMALLEST = 1e-12  # of the mean variance: less noise than this is none, and no density
_EXACT = 1e-10  # residual of eigenvectors, where they are iterated

_NOTHING = 1e-200  # the noise of rows that are all zero
_SQUARES = 1e-180, 1e250  # of the noise: here it changes with the unit of the rows to the last bit
_RANGE = 2.0**-470, 2.0**505  # of entries whose squares, and the smallest noise, are numbers


def smallest_noise(X: Points, weights: Array) -> float:
    """Return the smallest variance that the noise may have, for rows with gaps or without.

    Infinite where squares of the rows overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _smallest_noise(X, weights)


def _smallest_noise(X: Points, weights: Array) -> float:
    if is_sparse(X) or not np.isnan(X).any():
        spread = moments(X.astype(np.float64, copy=False), weights)[1]
        variance = spread / (float(weights.sum()) * X.shape[1])
    else:
        seen = ~np.isnan(X)
        count = weights @ seen
        mean = weights @ np.where(seen, X, 0.0) / count
        squares = weights @ np.where(seen, X - mean, 0.0) ** 2
        variance = float((squares / count).mean())
    values = X.data if is_sparse(X) else X
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    return float(max(_SMALLEST * variance, float(np.square(16 * _EPS * largest)))) or _NOTHING


def in_units(machine: Any, problem: LatentGaussian) -> tuple[LatentGaussian, float]:
    """Return the problem in units of its rows' largest entry, and the unit, a power of two."""
    values = problem.X.data if is_sparse(problem.X) else problem.X
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    if not _RANGE[0] < unit < _RANGE[1]:
        raise ValueError(
            f"{type(machine).__name__}: squares of X, whose largest entry is {largest:.0e}, are "
            "beyond float64, and so are the variances. Scale the features"
        )
    deadline.check()
    rows = problem.X * (1.0 / unit)
    floor = problem.floor / unit**2  # exact, where no square left the range of float64
    if not _SQUARES[0] < min(floor, problem.floor) <= max(floor, problem.floor) < _SQUARES[1]:
        floor = smallest_noise(rows, problem.weights)
    return replace(problem, X=rows, floor=floor), float(unit)


def in_rows(model: Plane, near: LatentGaussian, unit: float) -> Plane:
    """Return the plane in the units of the rows as they came."""
    seen = np.full(near.X.shape[0], near.X.shape[1])
    if not is_sparse(near.X):
        seen = seen - np.isnan(near.X).sum(axis=1)
    path = model.likelihoods
    if path is not None:
        path = path - float(near.weights @ seen) * np.log(unit)
    return Plane(model.mean * unit, model.loadings * unit, model.noise * unit**2, path)


def closed_form(problem: LatentGaussian, seed: int, **options: Any) -> Solution:
    """Return the most likely plane for rows without gaps, from their principal components."""
    n, d, q = problem.X.shape[0], problem.X.shape[1], problem.count
    found = min(q, n)
    machine = PCA(found, kernel=Linear(), tol=_EXACT, random_state=seed, **options)
    machine.fit(problem.X, sample_weight=problem.weights)
    total = float(problem.weights.sum())
    variances = machine.eigenvalues_ / total
    left = max(machine._subspace.total / total - float(variances.sum()), 0.0)
    noise = max(left / (d - q) if d > q else 0.0, problem.floor)
    loadings = np.zeros((d, q))
    loadings[:, :found] = machine.components_.T * np.sqrt(np.maximum(variances - noise, 0.0))
    return replace(machine.solution_, value=Plane(machine.mean_, loadings, noise))


def turned(model: Plane, X: Points, weights: Array) -> Plane:
    """Turn the latent space so that loadings are orthogonal, longest first, with signs of PCA."""
    U, lengths, _ = np.linalg.svd(model.loadings, full_matrices=False)
    rank = model.loadings.shape[1]
    loadings = np.zeros_like(model.loadings)
    loadings[:, : len(lengths)] = (U * lengths)[:, :rank]
    found = Plane(model.mean, loadings, model.noise, model.likelihoods)
    latent = np.vstack([block.mean for block in posteriors(found, X)])
    return replace(found, loadings=loadings * signs_of(latent))


# --- probabilistic pca ---------------------------------------------------------------------------
#
# PCA as a model of the rows: likelihood, posterior, samples, missing entries.


@dataclass(frozen=True, eq=False)
class LatentPosterior:
    """What rows say about their latent variables.

    Attributes
    ----------
    mean : (n, q) array
        Posterior means.
    covariance : (n, q, q) array
        Posterior covariances; all equal where nothing is missing.
    """

    mean: Array
    covariance: Array


_GAPS = "method='em' takes them as missing, and estimates them."


class ProbabilisticPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Machine, BaseEstimator):
    """Probabilistic principal components: x = mean + W z + e, z ~ N(0, I), e ~ N(0, v I).

    The most likely W spans the leading principal components, scaled to sqrt(variance - v), and v is
    the mean variance of the others. With `method="em"` entries may be missing (NaN): they are
    integrated out, and `impute` gives what is expected in their place.

    Parameters
    ----------
    n_components : int, default=2
        Latent variables, at most the number of columns.
    method : {"closed", "em"}, default="closed"
        Closed form through eigenvectors, or expectation maximisation.
    tol : float, default=1e-6
        EM stops when no derivative of the mean log-likelihood is larger, parameters counted in
        standard deviations.
    max_iter : int or None, default=None
        Largest number of EM passes over the rows; None takes 2000.
    random_state : int, RandomState or None, default=0
        Start of EM, and of iterated eigenvectors.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress` while something is iterated; a true return value stops
        the fit.
    time_limit : float or None, default=None
        Seconds after which the fit stops with what it has.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        The mean.
    loadings_ : array of shape (n_features, n_components)
        W; columns are orthogonal, longest first. Signs are those of `PCA`.
    noise_variance_ : float
        v, never below 1e-12 of the mean variance of the columns.
    n_components_ : int
        The number of latent variables.
    n_iter_ : int
        Passes over the rows, of EM or of iterated eigenvectors.
    log_likelihood_ : float
        Mean log-likelihood of the training rows.
    log_likelihoods_ : array
        Log-likelihoods on the way there, each a sum over rows; of EM only.
    solution_ : Solution
        How the solver ended.
    certificate_ : Certificate
        Likelihood, its slope, and its distance from the optimum, from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import ProbabilisticPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1)) @ [[2.0, 1.0, -1.0]] + 0.1 * rng.normal(size=(300, 3))
    >>> X[0, 1] = np.nan
    >>> model = ProbabilisticPCA(1, method="em").fit(X)
    >>> bool(abs(model.impute(X)[0, 1] - X[0, 0] / 2) < 0.2)
    True
    >>> model.certificate_.ok
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        method: str = "closed",
        tol: float = 1e-6,
        max_iter: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; NaN for missing entries with method="em".
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
        X = rows_with_gaps(self, X, gaps=self.method == "em", fitting=True, remedy=_GAPS)
        weights = check_weights(self, sample_weight, X.shape[0])
        refuse_empty_columns(self, X, weights)
        kept = np.flatnonzero(weights)
        rows, s = X if len(kept) == len(weights) else take(X, kept), weights[kept]
        problem = LatentGaussian(rows, s, self._count(rows), smallest_noise(rows, s))
        near, unit = in_units(self, problem)
        solution = self._solve(near)
        model = turned(in_rows(solution.value, near, unit), rows, s)
        self.solution_: Solution = replace(solution, value=model)
        self.certificate_: Certificate = certify(problem, model)
        self._keep(model)
        return self

    def transform(self, X: Any) -> Array:
        """Return the posterior means of the latent variables.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
            E[z | x].
        """
        blocks = list(posteriors(self._model(), self._new(X)))
        return np.vstack([block.mean for block in blocks])

    def posterior(self, X: Any) -> LatentPosterior:
        """Return the posterior means and covariances of the latent variables.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        LatentPosterior
            `mean` and `covariance`.
        """
        blocks = list(posteriors(self._model(), self._new(X)))
        covariances = [block.covariance[block.pattern] for block in blocks]
        return LatentPosterior(np.vstack([b.mean for b in blocks]), np.concatenate(covariances))

    def inverse_transform(self, X: Any) -> Array:
        """Return the mean row for latent variables.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Latent variables.

        Returns
        -------
        array of shape (n_samples, n_features)
            mean + W z.
        """
        check_is_fitted(self)
        latent = check_scores(self, X, self.n_components_)
        return np.asarray(latent @ self.loadings_.T + self.mean_)

    def impute(self, X: Any) -> Array:
        """Fill missing entries with their conditional means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN for missing entries.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows without gaps; entries that were there are unchanged.
        """
        rows = rows_with_gaps(self._fitted(), X, gaps=True, fitting=False)
        if is_sparse(rows):
            return np.asarray(rows.toarray())
        found = [block.mean for block in posteriors(self._model(), rows)]
        expected = np.vstack(found) @ self.loadings_.T + self.mean_
        return np.where(np.isnan(rows), expected, rows)

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of rows: of what is observed of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Log-densities.
        """
        return log_densities(self._model(), self._new(X))

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

    def get_covariance(self) -> Array:
        """Return the covariance of the model, W W' + v I: (n_features, n_features)."""
        model = self._model()
        return np.asarray(model.loadings @ model.loadings.T + model.noise * np.eye(len(model.mean)))

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Array:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Source of random numbers.

        Returns
        -------
        array of shape (n_samples, n_features)
            Rows.
        """
        model, rng = self._model(), check_random_state(random_state)
        if not is_real(n_samples) or not float(n_samples).is_integer() or n_samples < 0:
            raise ParameterError(
                f"ProbabilisticPCA.sample: n_samples={n_samples!r} must be a number of rows, an "
                "integer from 0 on"
            )
        latent = rng.standard_normal((int(n_samples), model.loadings.shape[1]))
        noise = rng.standard_normal((int(n_samples), len(model.mean)))
        return np.asarray(model.mean + latent @ model.loadings.T + np.sqrt(model.noise) * noise)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.method == "em"
        return tags

    def _solve(self, problem: LatentGaussian) -> Solution:
        options: dict[str, Any] = {"callback": self.callback, "time_limit": self.time_limit}
        seed = seed_of(self.random_state)
        if self.method == "closed":
            return closed_form(problem, seed, **options)
        solver = LatentEM(float(self.tol), int(self.max_iter or 2000), seed)
        return solve(problem, solver, **options)

    def _keep(self, model: Plane) -> None:
        self.mean_, self.loadings_ = model.mean, model.loadings
        self.noise_variance_ = float(model.noise)
        self.n_components_ = int(model.loadings.shape[1])
        self.n_iter_ = int(self.solution_.iterations)
        self.log_likelihood_ = float(self.certificate_.quantities.log_likelihood)
        self.__dict__.pop("log_likelihoods_", None)
        if model.likelihoods is not None:
            self.log_likelihoods_ = model.likelihoods

    def _count(self, X: Points) -> int:
        d = int(X.shape[1])
        if self.n_components > d:
            must = f"be at most the number of columns: n_features = {d}"
            refuse(self, "n_components", self.n_components, must)
        return int(self.n_components)

    def _new(self, X: Any) -> Points:
        return rows_with_gaps(
            self._fitted(), X, gaps=self.method == "em", fitting=False, remedy=_GAPS
        )

    def _fitted(self) -> Self:
        check_is_fitted(self)
        return self

    def _model(self) -> Plane:
        self._fitted()
        return Plane(self.mean_, self.loadings_, self.noise_variance_)

    def _check_parameters(self) -> None:
        check_count(self, "n_components")
        check_choice(self, "method", ("closed", "em"))
        check_real(self, "tol", above=0)
        check_optional_count(self, "max_iter")
        check_seed(self)
        check_limits(self)
