"""Gaussian processes of several tasks: what one is read of helps the others."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.certificates import certify
from mercer.gram import Need, make_gram
from mercer.gram.base import RKHSFunction
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.approximate import refuse_features
from mercer.machines.base.certificate import Certified, lazy_certificate, not_convex
from mercer.machines.base.inputs import new_rows, refuse_overflown
from mercer.machines.base.machine import KernelMachine, all_or_nothing, kernel_of
from mercer.machines.base.parameters import (
    check_count,
    check_limits,
    check_real,
    check_seed,
    refuse,
    seed_of,
)
from mercer.machines.base.similarity import warn_of_similarity
from mercer.machines.base.targets import check_weights
from mercer.machines.multitask.learning import learnt_names, task_problem
from mercer.machines.multitask.spread import spread_of
from mercer.machines.process.latent import LatentSpread
from mercer.machines.process.learning import (
    check_learning,
    given_variance,
    refuse_large,
    together,
)
from mercer.machines.process.left_out import variance_left_out
from mercer.points import take
from mercer.problems.multitask.regression import TaskEvidence, TaskPosterior, TaskRegression
from mercer.solvers import Callback, Solution, TaskAscent, solve

_SEARCH = 0.7  # of the time limit: the rest is for the posterior at what was found
_REMEDY = "GaussianProcess, one task at a time"
_ROUNDING = 1e-10  # of the largest: what entries of B may differ by, and eigenvalues be below zero


class MultiTaskGaussianProcess(Certified, MultiOutputMixin, RegressorMixin, KernelMachine):
    """Gaussian process regression of several tasks: cov(f_t(x), f_u(z)) = B[t, u] k(x, z).

    The mean is multi-task kernel ridge regression, with the noise for its penalty. Where every task
    was read at every row, the covariance B (x) K + noise I of all readings is never formed: its
    eigenvectors are those of B and K. Where y has gaps (NaN), the readings there are count one by
    one.

    Parameters
    ----------
    kernel : Kernel, str or callable, default="gaussian"
        Covariance k of the rows.
    approximation : Approximation, str or None, default="auto"
        Features in place of the kernel, such as `Nystrom(1000)` or "random_features:2000"; None for
        the kernel itself. "auto" takes the kernel itself as long as that is not refused, and past
        the limit landmarks, with a warning that says so.
    task_covariance : array-like of shape (n_tasks, n_tasks) or None, default=None
        B, positive semidefinite; where to start if it is learnt. None is the identity, of tasks
        that have nothing in common; all ones is one function for all.
    noise : float, default=1.0
        Variance of the noise, positive.
    optimize : bool or list of str, default=False
        Whether B, the noise and the parameters of the kernel are learnt by maximising the marginal
        likelihood; a list names those that are: "task_covariance", "noise", and names as
        `kernel.get_params` has them. A factor before the kernel is a multiple of B, and stays.
    bounds : pair of float, default=(1e-6, 1e6)
        How far a parameter may go, as multiples of where it starts.
    starts : int, default=1
        How many starts of the search; those after the first are drawn around it.
    tol : float, default=1e-5
        What slopes may be at the end of the search: of the log-likelihood of one reading.
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
    task_covariance_ : array of shape (n_tasks, n_tasks)
        B.
    noise_ : float
        The variance of the noise.
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_tasks)
        Coefficients A of K A B + noise A = Y; zero where a task was not read.
    log_marginal_likelihood_value_ : float
        The logarithm of the marginal likelihood of all readings.
    n_iter_ : int
        Steps of the search; 1 without one.
    solution_ : Solution
        How the solver ended, and the way of the search.
    certificate_ : Certificate
        Residual of the equations, bounds on errors of variances, slopes by what was learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MultiTaskGaussianProcess
    >>> x = np.linspace(0, 6, 40)
    >>> Y = np.column_stack([np.sin(x), 2 * np.sin(x)])
    >>> Y += 0.1 * np.random.default_rng(0).normal(size=Y.shape)
    >>> Y[20:, 1] = np.nan  # the second task was not read there
    >>> machine = MultiTaskGaussianProcess(noise=0.1, optimize=True).fit(x[:, None], Y)
    >>> bool(abs(machine.predict([[4.7]])[0, 1] - 2 * np.sin(4.7)) < 0.2)
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | Any = "gaussian",
        *,
        approximation: Approximation | str | None = "auto",
        task_covariance: npt.ArrayLike | None = None,
        noise: float = 1.0,
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
        self.task_covariance = task_covariance
        self.noise = noise
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
        """Fit to rows and readings.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; the Gram matrix itself for a precomputed kernel; strings for string kernels.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Readings, one column for each task; NaN where a task was not read.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row was read.

        Returns
        -------
        self
            The fitted machine.
        """
        self._check_parameters()
        X, y = self._read(X, y)
        refuse_large(self, y)
        weights = check_weights(self, sample_weight, len(y))
        targets, rows = y.reshape(len(y), -1), np.flatnonzero(weights)
        B, names = self._tasks(targets.shape[1]), self._column_names()
        kernel = kernel_of(self.kernel, X, weights, names)
        seen = (targets[rows], weights[rows])
        if np.isnan(seen[0]).all():
            raise ValueError(f"{type(self).__name__}: y has no reading in rows of positive weight")
        search, found = self._search(kernel, (take(X, rows), *seen), B)
        place = None if search is None or found is None else found.value.logs
        self.task_covariance_, self.noise_ = B, float(self.noise)
        if search is not None and place is not None:
            kernel, self.noise_ = search.kernel_at(place), search.noise_at(place)
            self.task_covariance_ = search.tasks_at(place)
        self._use_kernel(kernel, X, weights, names)
        gram = make_gram(self.kernel_, X, Need.MATRIX, rows=rows, names=names, remedy=_REMEDY)
        question = partial(
            TaskRegression,
            targets=seen[0],
            tasks=self.task_covariance_,
            noise=self.noise_,
            row_weights=seen[1],
            search=search,
        )
        options: dict[str, Any] = {"time_limit": self.time_limit}
        if found is None:
            options["callback"] = self.callback
        solution = together(not_convex(solve(question(gram), **options), gram), found)
        self.solution_: Solution = solution
        self._judgement = lazy_certificate(
            gram, question, solution.value, certify, seen[1], self.noise_
        )
        self._keep(question(gram), solution.value, rows, y)
        warn_of_similarity(self, gram, X)
        return self

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        include_noise: bool = False,
        prior_var: npt.ArrayLike | None = None,
    ) -> Any:
        """Predict all tasks for new rows, with their uncertainty.

        With landmarks in place of the kernel, what they leave out of k(z, z) is added to the
        spread: without, it would be zero far from all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; for a precomputed kernel the matrix of new rows against training rows.
        return_std : bool
            Whether standard deviations are wanted, too.
        include_noise : bool
            Whether the spread is that of new readings, or else of the functions.
        prior_var : array-like of shape (n_samples,), optional
            For a precomputed kernel: k(z, z) of the new rows.

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_tasks)
            Posterior means.
        std : array of the same shape
            Standard deviations, if `return_std`.
        """
        mean = self._values(X)
        flat = self.dual_coef_.ndim == 1
        if not return_std:
            return mean[:, 0] if flat else mean
        points = new_rows(self, X, isinstance(self.kernel_, Precomputed))
        prior = given_variance(self, prior_var, len(mean))
        noise = self.noise_ if include_noise else 0.0
        own = self.task_covariance_.diagonal()

        def spread() -> Array:
            left_out = np.outer(variance_left_out(self.kernel_, points), own)
            return np.asarray(np.sqrt(self._spread.variance(points, prior) + left_out + noise))

        std = refuse_overflown(self, spread)
        return (mean[:, 0], std[:, 0]) if flat else (mean, std)

    def _read(self, X: Any, y: Any) -> tuple[Points, Array]:
        """Check rows and readings, of which some may be missing."""
        missing = None
        try:
            values = np.asarray(y)
        except ValueError:  # rows of different lengths: refused below
            values = np.zeros(0)
        if values.dtype.kind == "f" and np.isnan(values).any():
            missing, y = np.isnan(values), np.where(np.isnan(values), 0.0, values)
        X, y = self._training_points(X, y, multi_output=True, y_numeric=True)
        return X, y if missing is None else np.where(missing, np.nan, y)

    def _tasks(self, count: int) -> Array:
        """Check B."""
        if self.task_covariance is None:
            return np.eye(count)
        try:
            B = np.array(self.task_covariance, dtype=np.float64)
        except (TypeError, ValueError):
            B = np.full((1, 1), np.nan)
        given, size = self.task_covariance, float(np.abs(B).max(initial=0.0))
        if B.shape != (count, count) or not np.isfinite(B).all():
            must = f"be {count} by {count} finite numbers, for the {count} columns of y"
            refuse(self, "task_covariance", given, must)
        if float(np.abs(B - B.T).max(initial=0.0)) > _ROUNDING * size:
            refuse(self, "task_covariance", given, "be symmetric")
        B = 0.5 * B + 0.5 * B.T
        least = float(np.linalg.eigvalsh(B)[0])
        if least < -_ROUNDING * size:
            must = f"be positive semidefinite; its smallest eigenvalue is {least:.3g}"
            refuse(self, "task_covariance", given, must)
        return np.asarray(B)

    def _search(
        self, kernel: Kernel, seen: tuple[Points, Array, Array], B: Array
    ) -> tuple[TaskEvidence | None, Solution | None]:
        """Maximise the evidence, if that is asked for."""
        if self.optimize is False:
            return None, None
        refuse_features(self, f"optimize={self.optimize!r}")
        learnt, seed = learnt_names(self, kernel), seed_of(self.random_state)
        problem = task_problem(self, kernel, seen, B, self._column_names(), learnt, seed)
        solver = TaskAscent(tol=float(self.tol), max_iter=int(self.max_iter))
        limit = None if self.time_limit is None else _SEARCH * float(self.time_limit)
        return problem, solve(problem, solver, callback=self.callback, time_limit=limit)

    def _keep(self, problem: TaskRegression, value: TaskPosterior, rows: Array, y: Array) -> None:
        B = problem.tasks
        self._expansion = RKHSFunction(problem.gram, value.coef @ B, value.weights).expand()
        self._spread: LatentSpread = spread_of(problem, value, len(y), rows)
        full = np.zeros((len(y), value.coef.shape[1]))
        full[rows] = value.coef
        self.dual_coef_ = full.reshape(y.shape)
        self.log_marginal_likelihood_value_ = value.log_likelihood
        self.n_iter_ = self.solution_.iterations

    def _check_parameters(self) -> None:
        check_real(self, "noise", above=0.0)
        check_learning(self)
        check_count(self, "starts")
        check_real(self, "tol", above=0.0)
        check_count(self, "max_iter")
        check_seed(self)
        check_limits(self)
