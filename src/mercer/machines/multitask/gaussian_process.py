"""Estimator `MultiTaskGaussianProcess`, its hyperparameter search and posterior variances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.base import MultiOutputMixin, RegressorMixin

from mercer import deadline
from mercer.approximation import Approximation
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.gram import Need, Source, make_gram
from mercer.gram.base import RKHSFunction
from mercer.gram.factored import FeatureFunction
from mercer.kernels import Kernel, Precomputed
from mercer.machines.base.approximate import refuse_features, warn_of_similarity
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
from mercer.machines.base.targets import check_weights
from mercer.machines.gaussian_process.covariance import (
    LatentSpread,
    across_of,
    features_of,
    variance_left_out,
)
from mercer.machines.gaussian_process.hyperparameters import (
    NOISE,
    check_learning,
    check_targets,
    flat_at,
    given_variance,
    names_to_learn,
    range_of,
    refuse_large,
    require_matrices,
    together,
)
from mercer.machines.gaussian_process.problem import KernelParameters
from mercer.machines.multitask.posterior import TaskAscent
from mercer.machines.multitask.problem import TaskEvidence, TaskPosterior, TaskRegression, task_root
from mercer.resources import rows_at_once
from mercer.rows.points import row_count, take
from mercer.solvers.base import Callback, Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- estimator -----------------------------------------------------------------------------------

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


# --- hyperparameters -----------------------------------------------------------------------------
#
# Which hyperparameters are learned, their bounds, and where the search starts.

TASKS = "task_covariance"
_SPREAD = 0.5  # of the size of W: standard deviation of its entries at further starts
_SLANT = 0.1  # of the size of W: where all tasks are apart, slopes by what they share are zero


def learnt_names(machine: Any, kernel: Kernel) -> tuple[str, ...]:
    """Return what is learnt: with B, a factor before the kernel is none of it."""
    found = names_to_learn(machine, kernel, (TASKS, NOISE))
    every = isinstance(machine.optimize, bool | np.bool_)
    return tuple(name for name in found if not (every and name == "factor"))


def task_problem(
    machine: Any,
    kernel: Kernel,
    rows: tuple[Points, Array, Array],
    B: Array,
    names: list[str] | None,
    learnt: tuple[str, ...],
    seed: int = 0,
) -> TaskEvidence:
    """Return the search for B, parameters and noise.

    Parameters
    ----------
    machine : MultiTaskGaussianProcess
        With noise, bounds and starts.
    kernel : Kernel
        To start from.
    rows : (Points, (n, T) array, (n,) array)
        Rows of positive weight, their readings and weights.
    B : (T, T) array
        To start from.
    names : list of str or None
        Names of the columns.
    learnt : tuple of str
        What is learnt.
    seed : int
        Of the further starts.
    """
    X, targets, weights = rows
    whole = not np.isnan(targets).any()
    require_matrices(machine, len(targets) if whole else int(np.sum(~np.isnan(targets))))
    check_targets(machine, targets)
    known = tuple(name for name in learnt if name not in (TASKS, NOISE))
    inner = KernelParameters(kernel, known, names)
    begin, noise = inner.logs, float(machine.noise)
    if NOISE in learnt:
        begin = np.append(begin, np.log(noise))
    read = ~np.isnan(targets)
    squares = weights @ np.where(read, np.square(targets), 0.0)
    size = float(squares.sum() / (weights @ read).sum())
    size = size if np.isfinite(size) and size > 0 else 1.0
    variances = [False] * inner.size + [True] * (NOISE in learnt)
    found = range_of(machine, begin, variances, size, seed)
    lower, upper, starts = found.lower, found.upper, found.starts
    if TASKS in learnt:
        W = _root(B, size if machine.task_covariance is None else None)
        places = np.tril_indices(len(B))
        first = W[places]
        reach = np.sqrt(float(machine.bounds[1])) * max(np.abs(W).max(), np.sqrt(size))
        drawn = np.random.default_rng(seed).standard_normal((len(starts), len(first)))
        drawn[0] = 0.0
        moved = first + _SPREAD * np.abs(W).max() * drawn
        lower = np.concatenate([np.full(len(first), -reach), lower])
        upper = np.concatenate([np.full(len(first), reach), upper])
        starts = np.hstack([moved, starts])
    return TaskEvidence(
        X,
        inner,
        targets,
        weights,
        B,
        TASKS in learnt,
        noise,
        NOISE in learnt,
        lower,
        upper,
        starts,
        flat_at(machine),
    )


def _root(B: Array, size: float | None) -> Array:
    """Return W with W W' = B, lower triangular; slightly slanted, of the targets' size, for None.

    Where tasks start with nothing in common, signs of what they share are undecided: some slant
    lets the search begin.
    """
    if size is not None:
        count = len(B)
        slanted = np.eye(count) + _SLANT * np.tril(np.ones((count, count)), -1)
        return np.asarray(np.sqrt(size) * slanted)
    values, vectors = np.linalg.eigh(B)
    half = vectors * np.sqrt(np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300)))
    R: Any = np.linalg.qr(half.T, mode="r")
    return np.asarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)


# --- posterior variances -------------------------------------------------------------------------
#
# Posterior variances of all tasks at new samples.

_ROWS_AT_ONCE = 512  # new rows: one product or solve between two chances to hear Ctrl-C


@dataclass(frozen=True, eq=False)
class TaskSpread(LatentSpread):
    """Variances of f_t at new rows, from what the fit decomposed.

    Attributes
    ----------
    source : Source or None
        The kernel on the training rows; None for a given matrix.
    given : int
        How many training rows there were.
    rows : (n,) int array
        Those of positive weight.
    tasks : (T, T) array
        B.
    basis : (n, n) array or None
        S^1/2 U, where every task was read at every row.
    shares : (n, T) array or None
        What each direction of the basis explains of the variance of each task.
    factor : (r, r) array or None
        Lower Cholesky factor of the covariance of all readings, where not.
    task, row : (r,) int array or None
        Of these readings.
    """

    source: Source | None
    given: int
    rows: Array
    tasks: Array
    basis: Array | None
    shares: Array | None
    factor: Array | None
    task: Array | None
    row: Array | None

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Take what was read off the prior, which a given matrix does not hold."""
        if prior is None:
            if self.source is None:
                raise ValueError(
                    "MultiTaskGaussianProcess: with a precomputed kernel the spread at new rows "
                    "needs their own k(z, z), which is not in X; pass prior_var"
                )
            prior = choose_backend().diagonal(self.source.expression, Z, np.float64)
        found = np.outer(prior, self.tasks.diagonal())
        step = rows_at_once(self.given * len(self.tasks), _ROWS_AT_ONCE, arrays=3)
        for first in range(0, row_count(Z), step):
            deadline.check()
            some = slice(first, first + step)
            across = across_of(self.source, self.given, self.rows, take(Z, some))
            found[some] -= self._explained(across)
        return np.asarray(np.maximum(found, 0.0))  # below by rounding only

    def _explained(self, across: Array) -> Array:
        if self.basis is not None and self.shares is not None:
            return squares_times(across @ self.basis, self.shares)
        assert self.factor is not None
        columns = []
        for t in range(len(self.tasks)):
            c = self.tasks[t, self.task][:, None] * across.T[self.row]
            half = linalg.solve_triangular(self.factor, c, lower=True, check_finite=False)
            columns.append(np.einsum("ij,ij->j", half, half))
        return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class TaskFeatureSpread(LatentSpread):
    """The same from features, of which nothing is taken off: noise |L^-1 (R_t (x) phi(z))|^2.

    Attributes
    ----------
    features : callable
        The feature map phi.
    root : (T, T) array
        R, the symmetric root of B.
    noise : float
        Variance of the noise.
    basis : (D, D) array or None
        Eigenvectors of F'SF, where every task was read at every row.
    shares : (D, T) array or None
        What of each direction of the basis is left in the variance of each task.
    factor : (T D, T D) array or None
        L, where not.
    """

    features: FeatureFunction
    root: Array
    noise: float
    basis: Array | None
    shares: Array | None
    factor: Array | None

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Multiply, or solve with the factor."""
        T = len(self.root)
        found = np.empty((row_count(Z), T))
        width = (self.basis if self.factor is None else self.factor).shape[0]  # type: ignore[union-attr]
        step = rows_at_once(width, _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            some = slice(first, first + step)
            found[some] = self._left(features_of(self.features, take(Z, some)))
        return found

    def _left(self, phi: Array) -> Array:
        if self.basis is not None and self.shares is not None:
            return squares_times(phi @ self.basis, self.shares)
        assert self.factor is not None
        columns = []
        for row in self.root:
            half = linalg.solve_triangular(
                self.factor, np.kron(row[:, None], phi.T), lower=True, check_finite=False
            )
            columns.append(self.noise * np.einsum("ij,ij->j", half, half))
        return np.column_stack(columns)


def squares_times(H: Array, shares: Array) -> Array:
    """Return the squares of H, times shares; of a kernel of size 1e300 they are out of range.

    Powers of two are taken out before, and put back after: no bit changes within the range.

    Examples
    --------
    >>> squares_times(np.array([[3e200]]), np.array([[1e-200]]))
    array([[9.e+200]])
    """
    exponent = int(np.frexp(np.abs(H).max(initial=0.0))[1])
    squares = np.square(np.ldexp(H, -exponent))
    return np.asarray(np.ldexp(squares @ np.ldexp(shares, exponent), exponent))


def spread_of(
    problem: TaskRegression, value: TaskPosterior, given: int, rows: Array
) -> LatentSpread:
    """Return the variances at new rows.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    value : TaskPosterior
        The answer.
    given : int
        How many rows the fit was given.
    rows : (n,) int array
        Those of positive weight.
    """
    gram: Any = problem.gram
    B, noise, basis, shares = problem.tasks, problem.noise, value.basis, None
    if value.basis is not None and value.values is not None:
        m, V = np.linalg.eigh(B)
        m = np.maximum(m, 0.0)
        parts = 1.0 / (np.outer(value.values, m) + noise)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when they are asked for
            if value.weights is None:
                shares = (parts * m) @ (np.square(V) * m).T  # m^2 may be out of range
            else:
                shares = parts @ (np.square(V) * (m * noise)).T
    if value.weights is not None:
        return TaskFeatureSpread(gram.features, task_root(B), noise, basis, shares, value.factor)
    if basis is not None:
        basis = np.sqrt(problem.row_weights)[:, None] * basis
    task, row = (None, None)
    if value.factor is not None:
        task, row = problem.readings.task, problem.readings.row
    return TaskSpread(gram.source, given, rows, B, basis, shares, value.factor, task, row)
