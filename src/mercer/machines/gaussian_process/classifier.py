"""Estimator `GaussianProcessClassifier`: Laplace's approximation, and averaged probabilities."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.gram import Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.approximate import refuse_features, warn_of_similarity
from mercer.machines.base.certificate import Certified, lazy_certificate, not_convex
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import (
    KernelMachine,
    all_or_nothing,
    kernel_of,
)
from mercer.machines.base.parameters import (
    check_count,
    check_limits,
    check_real,
    check_seed,
    seed_of,
)
from mercer.machines.base.targets import check_weights, classes_of, refuse_targets
from mercer.machines.gaussian_process.covariance import (
    LatentSpread,
    latent_spread_of,
    variance_left_out,
)
from mercer.machines.gaussian_process.hyperparameters import (
    by_name,
    check_learning,
    given_variance,
    laplace_problem,
    names_to_learn,
    together,
)
from mercer.machines.gaussian_process.laplace import LaplaceAscent, LaplaceMode, laplace_evidence
from mercer.machines.gaussian_process.problem import LaplaceEvidence, ProcessClassification
from mercer.resources import rows_at_once
from mercer.rows.chunks import slices
from mercer.rows.points import take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

_SEARCH = 0.7  # of the time limit: the rest is for the posterior at what was found
_REMEDY = "LogisticRegression"


class GaussianProcessClassifier(Certified, ClassifierMixin, KernelMachine):
    """Gaussian process classification: P(y) is the sigmoid of f ~ GP(0, k), by Laplace.

    The posterior of f is taken for the Gaussian that has its mode and the curvature there. The mode
    is that of `LogisticRegression` with penalty 1 and no bias; new are the variance of f, which
    draws probabilities far from all rows towards one half, and the evidence, which chooses the
    parameters of the kernel. More than two classes are each asked against the rest, with one
    kernel, and their probabilities divided by the sum.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Covariance of f. Write a factor before it, such as "1 * gaussian", to have its variance
        learnt, too: it says how sharply classes are told apart.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    optimize : bool or list of str, default=False
        Whether parameters of the kernel (scales, factors, constants, offsets) are learnt by
        maximising the approximate evidence; a list names those that are, as `kernel.get_params`
        does.
    bounds : pair of float, default=(1e-6, 1e6)
        How far a parameter may go, as multiples of where it starts.
    starts : int, default=1
        How many starts of the search; those after the first are drawn around it.
    tol : float, default=1e-5
        What slopes may be at the end of the search: of the log-evidence of one row, by the
        logarithm of a parameter.
    max_iter : int, default=200
        Largest number of steps: of one start of the search, and of Newton's for each class.
    random_state : int, RandomState or None, default=0
        Seed of further starts.
    callback : callable or None, default=None
        Called with `mercer.solvers.Progress`; a true return value stops the search of parameters.
    time_limit : float or None, default=None
        Seconds after which the search stops with what it has.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kernel_ : Kernel
        The kernel used, with what was learnt.
    approximation_error_ : StatedError
        With features in place of the kernel: how far they are from it.
    dual_coef_ : array of shape (n_samples, 1) or (n_samples, n_classes)
        Coefficients of the mode, of the second class against the first or of each against the rest.
    log_marginal_likelihood_value_ : float
        The logarithm of the approximate evidence, summed over the questions.
    n_iter_ : int
        Steps of the search, of all starts together; Newton steps without one.
    solution_ : Solution
        How the solver ended, and the way of the search.
    certificate_ : Certificate
        Duality gap of the mode; variance and evidence computed another way; slopes by the
        parameters that were learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import GaussianProcessClassifier
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    >>> machine = GaussianProcessClassifier("1 * gaussian", optimize=True).fit(X, y)
    >>> machine.predict([[0.0, 0.0], [2.0, 1.0]]).tolist()
    ['in', 'out']
    >>> machine.predict_proba([[50.0, 0.0]]).round(3).tolist()
    [[0.5, 0.5]]
    >>> machine.certificate_.ok
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        approximation: Approximation | str | None = "auto",
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
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row was observed.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, signs, weights = self._read(X, y, sample_weight)
        rows, names = np.flatnonzero(weights), self._column_names()
        seen = (signs[rows], weights[rows])
        kernel = kernel_of(self.kernel, X, weights, names)
        search, found = self._search(kernel, take(X, rows), *seen)
        if search is not None and found is not None:
            kernel = search.kernel_at(found.value.logs)
        self._use_kernel(kernel, X, weights, names)
        gram = make_gram(self.kernel_, X, Need.MATRIX, rows=rows, names=names, remedy=_REMEDY)
        question = partial(ProcessClassification, signs=seen[0], row_weights=seen[1], search=search)
        options: dict[str, Any] = {"time_limit": self.time_limit}
        if found is None:
            options["callback"] = self.callback
        solver = LaplaceMode(max_iter=int(self.max_iter))
        solution = together(not_convex(solve(question(gram), solver, **options), gram), found)
        self.solution_: Solution = solution
        self._judgement = lazy_certificate(gram, question, solution.value, certify, seen[1], 1.0)
        value = solution.value
        self._expansion = RKHSFunction(gram, value.coef, value.weights).expand()
        self._spread: LatentSpread = latent_spread_of(gram, value, len(signs), rows)
        self.dual_coef_ = np.zeros((len(signs), value.coef.shape[1]))
        self.dual_coef_[rows] = value.coef
        self.log_marginal_likelihood_value_ = value.log_likelihood
        self.n_iter_ = solution.iterations
        warn_of_similarity(self, gram, X)
        return self

    def latent_mean_and_variance(
        self, X: Any, prior_var: npt.ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Return mean and variance of f at new rows.

        With landmarks in place of the kernel, what they leave out of k(z, z) is added to the
        variance: without, it would be zero far from all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.
        prior_var : array-like of shape (n_samples,), optional
            For a precomputed kernel: k(z, z) of the new rows.

        Returns
        -------
        mean, variance : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes those of the f whose sigmoid is the probability of the second; for more,
            of each class against the rest.
        """
        mean = self._values(X)
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        prior = given_variance(self, prior_var, len(mean))
        variance = refuse_overflown(self, lambda: self._spread.variance(points, prior))
        variance += variance_left_out(self.kernel_, points)[:, None]
        return (mean[:, 0], variance[:, 0]) if mean.shape[1] == 1 else (mean, variance)

    def predict(self, X: Any) -> Array:
        """Label new rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        array of shape (n_samples,)
            The most probable label, the first among equals; with a precomputed kernel, that of the
            largest latent mean.
        """
        check_is_fitted(self)
        scores = self._values(X)
        if scores.shape[1] == 1:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        chosen = scores if isinstance(self.kernel_, Precomputed) else self.predict_proba(X)
        return np.asarray(self.classes_[chosen.argmax(axis=1)])

    def predict_proba(self, X: Any, prior_var: npt.ArrayLike | None = None) -> Array:
        """Return the probabilities of the classes, averaged over the posterior of f.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.
        prior_var : array-like of shape (n_samples,), optional
            For a precomputed kernel: k(z, z) of the new rows. Without it nothing is averaged, and
            the probabilities are those of the mean of f: farther from one half.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one.
        """
        check_is_fitted(self)
        if prior_var is None and isinstance(self.kernel_, Precomputed):
            mean = self._values(X).squeeze(axis=1) if len(self.classes_) == 2 else self._values(X)
            variance = np.zeros_like(mean)
        else:
            mean, variance = self.latent_mean_and_variance(X, prior_var)
        if mean.ndim == 1:
            upper = averaged_sigmoid(mean, variance)
            return np.column_stack([averaged_sigmoid(-mean, variance), upper])
        each = np.column_stack(
            [averaged_sigmoid(mean[:, t], variance[:, t]) for t in range(mean.shape[1])]
        )
        return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), 1e-300))

    def predict_log_proba(self, X: Any, prior_var: npt.ArrayLike | None = None) -> Array:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.
        prior_var : array-like of shape (n_samples,), optional
            For a precomputed kernel: k(z, z) of the new rows. Without it nothing is averaged, and
            the probabilities are those of the mean of f: farther from one half.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Logarithms of `predict_proba`.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X, prior_var)))

    def log_marginal_likelihood(
        self,
        X: Any,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        eval_gradient: bool = False,
    ) -> Any:
        """Compute the approximate evidence with the parameter `kernel` as it is set.

        Parameters
        ----------
        X, y, sample_weight : array-like
            As in `fit`; nothing is fitted.
        eval_gradient : bool
            Whether the gradient is wanted, too.

        Returns
        -------
        value : float
            The logarithm of the approximate evidence, summed over the questions.
        gradient : dict of str to float or array
            Derivatives by the logarithm of each parameter, if `eval_gradient`.
        """
        other = type(self)(**{**self.get_params(deep=False), "optimize": True})
        other._check_parameters()
        X, signs, weights = other._read(X, y, sample_weight)
        rows, names = np.flatnonzero(weights), other._column_names()
        kernel = kernel_of(self.kernel, X, weights, names)
        seen = (take(X, rows), signs[rows], weights[rows])
        refuse_features(other, "its evidence as a function of the parameters")
        problem = laplace_problem(other, kernel, seen, names, names_to_learn(other, kernel, ()))
        value, gradient = laplace_evidence(problem, problem.kernel.logs)
        return (value, by_name(problem.kernel, gradient)) if eval_gradient else value

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Points, Array, Array]:
        """Check rows, labels and weights; return the questions as signs, one column for each."""
        X, y = self._training_points(X, y)
        refuse_targets(y)
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        count = len(self.classes_)
        asked = np.ones(1, int) if count == 2 else np.arange(count)
        return X, np.where(codes[:, None] == asked, 1.0, -1.0), weights

    def _search(
        self, kernel: Kernel, X: Points, signs: Array, weights: Array
    ) -> tuple[LaplaceEvidence | None, Solution | None]:
        """Maximise the evidence, if that is asked for."""
        if self.optimize is False:
            return None, None
        refuse_features(self, f"optimize={self.optimize!r}")
        learnt, seed = names_to_learn(self, kernel, ()), seed_of(self.random_state)
        seen = (X, signs, weights)
        problem = laplace_problem(self, kernel, seen, self._column_names(), learnt, seed)
        solver = LaplaceAscent(tol=float(self.tol), max_iter=int(self.max_iter))
        limit = None if self.time_limit is None else _SEARCH * float(self.time_limit)
        return problem, solve(problem, solver, callback=self.callback, time_limit=limit)

    def _check_parameters(self) -> None:
        check_learning(self)
        check_count(self, "starts")
        check_real(self, "tol", above=0.0)
        check_count(self, "max_iter")
        check_seed(self)
        check_limits(self)


# The trapezoidal rule on a line converges like exp(-2 pi w / h) for functions analytic within w of
# it: pi here, the first poles of the sigmoid. With h = 1/4 that is 1e-34.
_STEP = 0.25
_NARROW = 9.0  # standard deviations: beyond, a Gaussian has 1e-19 of its mass
_ROWS_AT_ONCE = 4096  # each has hundreds of terms
_WIDE = 42.0  # a logistic variable has 1e-18 of its mass beyond


def averaged_sigmoid(mean: Array, variance: Array) -> Array:
    """Return the mean of 1 / (1 + exp(-z)) for z ~ N(mean, variance), to about 1e-14.

    Where the Gaussian is narrower than the sigmoid, the sum is over the Gaussian; where it is
    wider, over the density of which the sigmoid is the distribution function.

    Parameters
    ----------
    mean, variance : (n,) array
        Of the Gaussians.

    Examples
    --------
    >>> import numpy as np
    >>> averaged_sigmoid(np.array([0.0, 2.0, 2.0]), np.array([5.0, 0.0, 5.0])).round(4).tolist()
    [0.5, 0.8808, 0.76]
    """
    found = np.empty(len(mean))
    terms = int(2 * max(_NARROW, _WIDE) / _STEP) + 2
    for rows in slices(0, len(mean), rows_at_once(terms, _ROWS_AT_ONCE, arrays=3)):
        found[rows] = _averaged(mean[rows], variance[rows])
    return found


def _averaged(mean: Array, variance: Array) -> Array:
    spread, narrow = np.sqrt(variance), variance < 1.0
    found = np.empty(len(mean))
    z = np.arange(-_NARROW, _NARROW + _STEP, _STEP)
    mass = np.exp(-0.5 * z**2)
    scores = mean[narrow, None] + spread[narrow, None] * z
    found[narrow] = expit(scores) @ (mass / mass.sum())
    z = np.arange(-_WIDE, _WIDE + _STEP, _STEP)
    mass = expit(z) * expit(-z)
    found[~narrow] = ndtr((mean[~narrow, None] + z) / spread[~narrow, None]) @ (mass / mass.sum())
    return found
