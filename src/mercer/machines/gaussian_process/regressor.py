"""Estimator `GaussianProcess`: regression by the posterior of a function given noisy values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.backends.factorizations import eigh
from mercer.gram import Gram, Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.gram.build import refuse_overflow
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.approximate import landmarks_for, warn_of_similarity
from mercer.machines.base.certificate import Certified, lazy_certificate, not_convex
from mercer.machines.base.inputs import new_rows, read_array, refuse_overflown
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.origin import about_origin, constant_as_given
from mercer.machines.base.parameters import (
    check_count,
    check_flag,
    check_limits,
    check_number,
    check_real,
    check_seed,
    seed_of,
    source_of,
)
from mercer.machines.base.targets import check_weights
from mercer.machines.gaussian_process.covariance import (
    PosteriorSpread,
    covariance_left_out,
    spread_of,
    variance_left_out,
)
from mercer.machines.gaussian_process.hyperparameters import (
    by_name,
    check_learning,
    evidence_problem,
    names_to_learn,
    refuse_large,
    together,
)
from mercer.machines.gaussian_process.marginal_likelihood import EvidenceAscent, evidence
from mercer.machines.gaussian_process.problem import Evidence, ProcessPosterior, ProcessRegression
from mercer.rows.points import as_points, is_sequence_data, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

_SEARCH = 0.7  # of the time limit: the rest is for the posterior at what was found
_REMEDY = "a kernel with a small explicit feature map; or fewer rows"


class GaussianProcess(Certified, MultiOutputMixin, RegressorMixin, KernelMachine):
    """Gaussian process regression: y = f(x) + noise with f ~ GP(0, k); mean, variance, evidence.

    With C = K + noise I the posterior of f at z is Gaussian with mean k(z, X) C^-1 y, which is
    kernel ridge regression with the noise for its penalty, and covariance
    k(z, z') - k(z, X) C^-1 k(X, z').

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Covariance of f. Write a factor before it, such as "1 * gaussian", to have its variance
        learnt, too.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    noise : float, default=1.0
        Variance of the noise, positive.
    bias : bool, default=False
        Whether f has a constant of flat prior beside it, as `KernelRidge` has.
    optimize : bool or list of str, default=False
        Whether the noise and the parameters of the kernel (scales, factors, constants, offsets)
        are learnt by maximising the marginal likelihood; a list names those that are, as
        `kernel.get_params` does, and "noise". The search starts from the parameters given; where
        noise and kernel are learnt up to a common factor, that makes prior and targets of one size.
        With landmarks in place of the kernel a lower bound of the likelihood is maximised.
    bounds : pair of float, default=(1e-6, 1e6)
        How far a parameter may go, as multiples of where it starts; variances may also go so far
        from the mean square of the targets.
    starts : int, default=1
        How many starts of the search; those after the first are drawn around it.
    tol : float, default=1e-5
        What slopes may be at the end of the search: of the log-likelihood of one row, by the
        logarithm of a parameter.
    max_iter : int, default=200
        Largest number of steps of one start.
    random_state : int, RandomState or None, default=0
        Seed of further starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the search.
    time_limit : float or None, default=None
        Seconds after which the search stops with what it has.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel used, with what was learnt.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    noise_ : float
        The variance of the noise.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        C^-1 y, to `certificate_.quantities.dual_residual` of y.
    intercept_ : float or array of shape (n_targets,)
        The constant.
    log_marginal_likelihood_value_ : float
        The logarithm of the marginal likelihood of the targets.
    n_iter_ : int
        Steps of the search, of all starts together; 1 without one.
    solution_ : Solution
        How the solver ended, and the way of the search.
    certificate_ : Certificate
        Residual of the equations of the mean; variance and likelihood computed another way; slopes
        by the parameters that were learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcess
    >>> X = np.linspace(0, 6, 30)[:, None]
    >>> y = np.sin(X).ravel() + 0.1 * np.random.default_rng(0).normal(size=30)
    >>> machine = GaussianProcess("1 * gaussian", noise=0.1, optimize=True).fit(X, y)
    >>> mean, std = machine.predict([[1.5], [12.0]], return_std=True)
    >>> mean[:1].round(1).tolist(), std.round(1).tolist()
    ([1.0], [0.0, 0.8])
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        approximation: Approximation | str | None = "auto",
        noise: float = 1.0,
        bias: bool = False,
        optimize: bool | list[str] = False,
        bounds: tuple[float, float] = (1e-6, 1e6),
        starts: int = 1,
        tol: float = 1e-5,
        max_iter: int = 200,
        random_state: Any = 0,
        callback: Callback | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.approximation = approximation
        self.noise = noise
        self.bias = bias
        self.optimize = optimize
        self.bounds = bounds
        self.starts = starts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several share kernel and noise, and are independent.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row was observed.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = self._training_points(X, y, multi_output=True, y_numeric=True)
        refuse_large(self, y)
        weights = check_weights(self, sample_weight, len(y))
        targets, rows = y.reshape(len(y), -1), np.flatnonzero(weights)
        names = self._column_names()
        kernel = kernel_of(self.kernel, X, weights, names)
        seen = (targets[rows], weights[rows])
        search, found = self._search(kernel, X, rows, *seen)
        logs = None if search is None or found is None else found.value.logs
        kernel = kernel if search is None or logs is None else search.kernel_at(logs)
        self._use_kernel(kernel, X, weights, names)
        self.noise_ = float(self.noise)
        if search is not None and logs is not None:
            self.noise_ = search.noise_at(logs)
        gram = self._gram(X, rows)
        question = partial(
            ProcessRegression,
            targets=seen[0],
            noise=self.noise_,
            row_weights=seen[1],
            bias=self.bias,
            search=search,
        )
        problem = question(gram)
        options: dict[str, Any] = {"time_limit": self.time_limit}
        if found is None:
            options["callback"] = self.callback
        solution = together(not_convex(solve(problem, **options), gram), found)
        self.solution_: Solution = solution
        self._judgement = lazy_certificate(
            gram, question, solution.value, certify, seen[1], self.noise_
        )
        self._keep(problem, solution.value, rows, y, weights)
        warn_of_similarity(self, gram, X)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        include_noise: bool = False,
        prior_cov: npt.ArrayLike | None = None,
    ) -> Any:
        """Predict targets for new rows, with their uncertainty.

        With landmarks in place of the kernel, what they leave out of k(z, z') is added to the
        spread: without, it would be zero far from all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.
        return_std : bool
            Whether standard deviations are wanted, too.
        return_cov : bool
            Whether the covariance of all pairs of rows is wanted, too.
        include_noise : bool
            Whether the spread is that of new targets, or else of f.
        prior_cov : array-like of shape (n_samples, n_samples) or (n_samples,), optional
            For a precomputed kernel: k(z, z') of the new rows, or k(z, z) where standard deviations
            are enough.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_targets)
            Posterior mean.
        std : array of the same shape
            Standard deviations, if `return_std`.
        cov : array of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Covariances, if `return_cov`.
        """
        if return_std and return_cov:
            raise ValueError(
                "GaussianProcess: return_std and return_cov are both true; ask for one of them "
                "(the roots of the diagonal of the covariance are the standard deviations)"
            )
        mean = self._mean(X)
        if not (return_std or return_cov):
            return mean
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        noise = self.noise_ if include_noise else 0.0
        if return_cov:
            prior = _given_prior(prior_cov, len(mean), 2)
            cov = refuse_overflown(self, lambda: self._spread.covariance(points, prior))
            cov += covariance_left_out(self.kernel_, points)
            cov.flat[:: len(cov) + 1] += noise
            return mean, cov if mean.ndim == 1 else np.repeat(cov[:, :, None], mean.shape[1], 2)
        prior = _given_prior(prior_cov, len(mean), 1)
        variance = refuse_overflown(self, lambda: self._spread.variance(points, prior))
        variance += variance_left_out(self.kernel_, points)
        std = np.sqrt(variance + noise)
        return mean, std if mean.ndim == 1 else np.repeat(std[:, None], mean.shape[1], 1)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, prior: bool = False
    ) -> Array:
        """Draw functions at new rows: from the posterior, or the prior before a fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows.
        n_samples : int
            How many functions.
        random_state : int, RandomState or None
            Seed.
        prior : bool
            Whether to draw from the prior after a fit, too; its constant is zero.

        Returns
        -------
        array of shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)
            Values of f, without noise.
        """
        count = check_number(self, "n_samples", n_samples)
        source = source_of(self, random_state)
        if prior or not hasattr(self, "solution_"):
            return drawn(prior_matrix(self, X), count, source)
        mean, cov = self.predict(X, return_cov=True)
        if mean.ndim == 1:
            return np.asarray(mean[:, None] + drawn(cov, count, source))
        draws = [drawn(cov[:, :, 0], count, source) for _ in range(mean.shape[1])]
        return np.asarray(mean[:, :, None] + np.stack(draws, axis=1))

    def log_marginal_likelihood(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        eval_gradient: bool = False,
    ) -> Any:
        """Compute how likely targets are under the parameters `kernel` and `noise` as they are set.

        With landmarks, what they bound that by from below (Titsias 2009).

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in `fit`; nothing is fitted.
        eval_gradient : bool
            Whether the gradient is wanted, too.

        Returns
        -------
        value : float
            The logarithm of the marginal likelihood; minus infinity where K + noise is singular.
        gradient : dict of str to float or array
            Derivatives by the logarithm of each parameter, if `eval_gradient`.
        """
        other = type(self)(**{**self.get_params(deep=False), "optimize": True})
        other._check_parameters()
        X, y = other._training_points(X, y, multi_output=True, y_numeric=True)
        weights = check_weights(self, sample_weight, len(y))
        rows, names = np.flatnonzero(weights), other._column_names()
        kernel = kernel_of(self.kernel, X, weights, names)
        seen = (take(X, rows), y.reshape(len(y), -1)[rows], weights[rows])
        z = landmarks_for(other, kernel, seen[0], seen[2], names, "its evidence")
        learnt = names_to_learn(other, kernel)
        problem = evidence_problem(other, kernel, seen, names, learnt, landmarks=z)
        given = np.append(problem.kernel.logs, np.log(problem.noise))
        value, gradient = evidence(problem, given)
        if not eval_gradient:
            return value
        return value, {**by_name(problem.kernel, gradient), "noise": float(gradient[-1])}

    def leave_one_out(self) -> LeaveOneOutDensities:
        """Predict each training row from all others, in closed form.

        With G = C^-1 and a = G y the prediction without row i has mean y_i - a_i / G_ii and
        variance 1 / G_ii; of a row of weight above one, one copy is left out.

        Returns
        -------
        LeaveOneOutDensities
            Means, variances and log densities.
        """
        check_is_fitted(self)
        rows = np.flatnonzero(self._weights)
        s, y = self._weights[rows], self._targets[rows]
        if len(rows) == 1 and s[0] <= 1 and self.bias:
            raise ValueError(
                "GaussianProcess: leave-one-out with bias=True needs two rows, but n_samples = 1"
            )
        coef = self.dual_coef_.reshape(len(self._weights), -1)[rows]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            G = self._spread.inverse_diagonal(self.noise_ / s)
            stiff = np.maximum(s - 1.0, 0.0) / self.noise_ + G / np.maximum(s, 1.0)
            variance = np.maximum(s, 1.0) / stiff
            variance += self.noise_ * np.minimum(0.0, 1.0 - 1.0 / s)  # a copy has noise of one
            error = coef / stiff[:, None]
            spread = variance[:, None]
            density = -0.5 * (error**2 / spread + np.log(2 * np.pi * spread))
        shape = self.dual_coef_.shape
        return LeaveOneOutDensities(
            _among(y - error, rows, shape),
            _among(variance, rows, shape[:1]),
            _among(density, rows, shape),
        )

    def _mean(self, X: Any) -> Array:
        values = self._values(X)
        return values if np.ndim(self.intercept_) else values[:, 0]

    def _search(
        self, kernel: Kernel, X: Points, rows: Array, targets: Array, weights: Array
    ) -> tuple[Evidence | None, Solution | None]:
        """Maximise the evidence, if that is asked for."""
        if self.optimize is False:
            return None, None
        seen, names = (take(X, rows), targets, weights), self._column_names()
        wish = f"optimize={self.optimize!r}"
        z = landmarks_for(self, kernel, seen[0], weights, names, wish)
        learnt, seed = names_to_learn(self, kernel), seed_of(self.random_state)
        problem = evidence_problem(self, kernel, seen, names, learnt, seed, z)
        solver = EvidenceAscent(tol=float(self.tol), max_iter=int(self.max_iter))
        limit = None if self.time_limit is None else _SEARCH * float(self.time_limit)
        return problem, solve(problem, solver, callback=self.callback, time_limit=limit)

    def _gram(self, X: Points, rows: Array) -> Gram:
        near = about_origin(self.kernel_, X, rows) if self.bias else None
        if near is not None:
            refuse_overflow(near, self.kernel_, rows)
            return near
        return make_gram(
            self.kernel_,
            X,
            Need.MATRIX,
            rows=rows,
            copies=2,
            names=self._column_names(),
            remedy=_REMEDY,
        )

    def _keep(
        self, problem: ProcessRegression, value: ProcessPosterior, rows: Array, y: Array, s: Array
    ) -> None:
        f = RKHSFunction(problem.gram, value.coef, value.weights)
        self._expansion = f.expand().plus(value.intercept)
        self._spread: PosteriorSpread = spread_of(problem, value, len(y), rows)
        full = np.zeros((len(y), value.coef.shape[1]))
        full[rows] = value.coef
        self.dual_coef_ = full.reshape(y.shape)
        weights = getattr(self._expansion, "weights", None)
        constant = constant_as_given(problem.gram, weights, value.intercept)
        self.intercept_ = constant if y.ndim == 2 else float(constant[0])
        self.log_marginal_likelihood_value_ = value.log_likelihood
        self.n_iter_ = self.solution_.iterations
        self._weights, self._targets = s, y.reshape(len(y), -1)

    def _check_parameters(self) -> None:
        check_real(self, "noise", above=0.0)
        check_flag(self, "bias")
        check_learning(self)
        check_count(self, "starts")
        check_real(self, "tol", above=0.0)
        check_count(self, "max_iter")
        check_seed(self)
        check_limits(self)


@dataclass(frozen=True, eq=False)
class LeaveOneOutDensities:
    """What a process predicts of each row from all others.

    Attributes
    ----------
    mean : array of shape (n_samples,) or (n_samples, n_targets)
        Predicted targets; of rows of weight zero, NaN.
    variance : array of shape (n_samples,)
        Variances of the targets around them, noise included.
    log_density : array of the shape of mean
        Logarithms of the densities of the targets that were seen; their sum is the
        pseudo-likelihood.
    """

    mean: Array
    variance: Array
    log_density: Array


def _given_prior(prior_cov: Any, n: int, dimensions: int) -> Array | None:
    """Check the prior covariance of new rows; its diagonal where that is enough."""
    if prior_cov is None:
        return None
    prior = np.array(prior_cov, dtype=np.float64)
    if prior.ndim == 2 and dimensions == 1 and prior.shape == (n, n):
        prior = prior.diagonal().copy()
    if prior.shape != (n,) * dimensions or not np.isfinite(prior).all():
        raise ValueError(
            f"GaussianProcess: prior_cov has shape {prior.shape}; for {n} new rows it must be "
            f"finite, of shape {(n,) * dimensions}"
        )
    return prior


def _among(values: Array, rows: Array, shape: tuple[int, ...]) -> Array:
    """Put values of the rows that were used back among all rows; NaN for the others."""
    full = np.full(shape, np.nan)
    full[rows] = values.reshape(len(rows), *shape[1:])
    return full


def drawn(covariance: Array, count: int, source: np.random.RandomState) -> Array:
    """Draw normal vectors of mean zero.

    Parameters
    ----------
    covariance : (n, n) array
        Positive semidefinite; eigenvalues that rounding made negative are taken for zero.
    count : int
        How many.
    source : RandomState
        Where random numbers come from.

    Returns
    -------
    (n, count) array
    """
    values, vectors = eigh(covariance)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(half @ source.standard_normal((len(values), count)))


def prior_matrix(machine: Any, X: Any) -> Array:
    """Return k(x, x') of rows: with the kernel of the fit, or of the parameter before one."""
    name = type(machine).__name__
    if not is_sequence_data(X):
        X = as_points(read_array(name, X, "X", accept_sparse="csr"))
    kernel = getattr(machine, "kernel_", None)
    kernel = kernel_of(machine.kernel, X) if kernel is None else kernel
    if isinstance(kernel, Precomputed):
        raise ValueError(
            f"{name}: a precomputed kernel has no prior at new rows; pass a kernel of rows"
        )
    return np.asarray(kernel(X), dtype=np.float64)
