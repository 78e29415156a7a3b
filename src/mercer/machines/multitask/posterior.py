"""Solvers of multi-task Gaussian processes: posterior, and likelihood with its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import eigh
from mercer.backends.host import HostFactor
from mercer.gram import Source
from mercer.gram.base import written_out
from mercer.machines.gaussian_process.marginal_likelihood import contracted, nearest_factor
from mercer.machines.gaussian_process.problem import LogParameters
from mercer.machines.multitask.problem import (
    Readings,
    TaskEvidence,
    TaskPosterior,
    TaskRegression,
    readings_of,
    task_log_likelihood,
    task_root,
)
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.bounded_descent import bounded_descent
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import weighted_gram

# --- posterior by the kernel matrix --------------------------------------------------------------
#
# By the eigenvectors of K and B, or one Cholesky factor of the covariance of all readings.

_EPS = float(np.finfo(np.float64).eps)


class Kronecker(NamedTuple):
    """B (x) K + noise I (x) S^-1 in the basis where it is diagonal.

    Attributes
    ----------
    U : (n, n) array
        Eigenvectors of S^1/2 K S^1/2.
    l : (n,) array
        Its eigenvalues.
    V : (T, T) array
        Eigenvectors of B.
    m : (T,) array
        Its eigenvalues.
    root : (n,) array
        S^1/2.
    noise : float
        Variance of the noise.
    """

    U: Array
    l: Array  # noqa: E741  as in the formulas
    V: Array
    m: Array
    root: Array
    noise: float

    @property
    def spectrum(self) -> Array:
        """Return l_i m_j + noise."""
        return np.asarray(np.outer(self.l, self.m) + self.noise)

    def solve(self, Y: Array) -> Array:
        """Return the A of K A B + noise S^-1 A = Y."""
        inner = (self.U.T @ (self.root[:, None] * Y) @ self.V) / self.spectrum
        return np.asarray(self.root[:, None] * (self.U @ inner @ self.V.T))


def kronecker(K: Array, tasks: Array, s: Array, noise: float) -> Kronecker:
    """Decompose K and B; eigenvalues that rounding made negative are zero."""
    root = np.sqrt(s)
    weighted = K * root
    weighted *= root[:, None]
    try:
        values, U = eigh(weighted)
    except np.linalg.LinAlgError:  # numbers that are none, or near the end of their range
        values, U = np.full(len(K), np.nan), np.full(K.shape, np.nan)
    m, V = np.linalg.eigh(tasks)
    return Kronecker(U, np.maximum(values, 0.0), V, np.maximum(m, 0.0), root, noise)


@dataclass(frozen=True)
class KroneckerPosterior(Solver):
    """Eigenvectors of K and of B, at cost n^3 + T^3; the covariance of all readings is not formed.

    Every task must have been read at every row.
    """

    answers = TaskRegression

    def _obstacle(self, problem: TaskRegression) -> str | None:
        if problem.readings.whole:
            return None
        return (
            "KroneckerPosterior needs every task at every row; use solver=TaskCholesky(), which "
            "takes readings one by one"
        )

    def run(self, problem: TaskRegression, watch: Watch, start: Any = None) -> Solution:
        """Decompose and divide."""
        n = problem.gram.shape[0]
        require_memory(
            4 * 8 * n * n,
            f"the eigenvectors of {n} points",
            "Use approximation=Nystrom(1000), or fewer rows.",
            held=problem.gram.nbytes,
        )
        K = written_out(problem.gram)
        s, Y = problem.row_weights, problem.targets
        found = kronecker(K, problem.tasks, s, problem.noise)
        coef = found.solve(Y)
        # what rounding left of the equations, once more
        coef = coef + found.solve(Y - K @ coef @ problem.tasks - problem.noise / s[:, None] * coef)
        watch.tick(1, np.nan)
        log_determinant = float(np.sum(np.log(found.spectrum)))
        squares = float(np.sum(coef * Y))
        likelihood = task_log_likelihood(
            squares, log_determinant, problem.readings, s, problem.noise
        )
        value = TaskPosterior(coef, found.U, found.l, None, likelihood)
        singular = bool(problem.noise <= n * _EPS * float(found.spectrum.max(initial=0.0)))
        status = Status.SINGULAR if singular else Status.SOLVED
        return report(self, value, status, 1, watch)


@dataclass(frozen=True)
class TaskCholesky(Solver):
    """One Cholesky factor of the covariance of all readings, however they are spread over tasks."""

    answers = TaskRegression

    def run(self, problem: TaskRegression, watch: Watch, start: Any = None) -> Solution:
        """Factor and solve."""
        readings, s = problem.readings, problem.row_weights
        r = len(readings.row)
        require_memory(
            3 * 8 * r * r,
            f"the covariance of {r} readings",
            "Fill the gaps of y, so that every task has every row; or use "
            "approximation=Nystrom(1000), or fewer rows.",
            held=problem.gram.nbytes,
        )
        C = readings_matrix(np.asarray(problem.gram.dense()), problem.tasks, readings)
        C.flat[:: r + 1] += problem.noise / s[readings.row]
        diagonal = C.diagonal().copy()
        singular = choose_backend().cholesky(C) != 0
        singular = singular or bool((np.square(C.diagonal()) <= r * _EPS * diagonal).any())
        if singular:
            C = readings_matrix(np.asarray(problem.gram.dense()), problem.tasks, readings)
            C.flat[:: r + 1] += problem.noise / s[readings.row]
            C = nearest_factor(*eigh(C))
        factor = HostFactor(C).lower()
        y = problem.targets.T[readings.task, :][np.arange(r), readings.row]
        a = linalg.cho_solve((factor, True), y, check_finite=False)
        coef = np.zeros(problem.targets.shape)
        coef[readings.row, readings.task] = a
        watch.tick(1, np.nan)
        log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())))
        log_determinant += float(np.sum(np.log(s[readings.row])))
        likelihood = task_log_likelihood(float(a @ y), log_determinant, readings, s, problem.noise)
        value = TaskPosterior(coef, None, None, factor, likelihood)
        status = Status.SINGULAR if singular else Status.SOLVED
        return report(self, value, status, 1, watch)


def readings_matrix(K: Array, tasks: Array, readings: Readings) -> Array:
    """Return B[t, u] K[i, j] for all pairs of readings."""
    row, task = readings.row, readings.task
    C = np.empty((len(row), len(row)))
    for some in deadline.row_slices(len(C), len(C)):
        np.multiply(K[row[some]][:, row], tasks[task[some]][:, task], out=C[some])
    return C


# --- posterior by features -----------------------------------------------------------------------
#
# The posterior of several tasks for K = F F': nothing is larger than n rows of features.
#
# With B = R R, R symmetric, a reading of task t at x has the features R_t (x) phi(x), and C = Phi
# Phi' + noise S^-1. Where every task was read at every row, F'SF = P diag(l) P' and B = V diag(m)
# V' make Phi'S Phi diagonal; where not, it is factored.

_ROUNDS = 4  # of the equations: the first, and what rounding left of them
_SHRINKS = 0.5  # of what was left: a round that leaves more is the last


@dataclass(frozen=True)
class TaskFeatures(Solver):
    """For K = F F' of D features: the eigenvectors of F'SF and B, or a factor of order T D.

    The former where every task was read at every row, at cost n D^2 + D^3 + T^3; the latter where
    y has gaps.
    """

    answers = TaskRegression

    def _obstacle(self, problem: TaskRegression) -> str | None:
        if problem.gram.factor is not None:
            return None
        return (
            "TaskFeatures needs K = F F': a kernel with a small explicit feature map, or "
            "approximation=Nystrom(1000)"
        )

    def run(self, problem: TaskRegression, watch: Watch, start: Any = None) -> Solution:
        """Decompose or factor in the space of the features."""
        D, T = problem.gram.factor.shape[1], problem.tasks.shape[0]
        order = D if problem.readings.whole else D * T
        require_memory(
            4 * 8 * order * order,
            f"the covariance of {order} weights of {T} tasks",
            "Use fewer features; or fill the gaps of y, so that every task has every row.",
            held=problem.gram.nbytes,
        )
        value, status = _features_whole(problem) if problem.readings.whole else _with_gaps(problem)
        watch.tick(1, np.nan)
        return report(self, value, status, 1, watch)


def _features_whole(problem: TaskRegression) -> tuple[TaskPosterior, Status]:
    F, noise = problem.gram.factor, problem.noise
    normal = weighted_gram(F, problem.row_weights)
    try:
        values, P = eigh(normal)
    except np.linalg.LinAlgError:  # numbers that are none, or near the end of their range
        values, P = np.full(len(normal), np.nan), np.full(normal.shape, np.nan)
    m, V = np.linalg.eigh(problem.tasks)
    values = np.maximum(values, 0.0)
    spectrum = np.outer(values, np.maximum(m, 0.0)) + noise
    coef, U = _refined(problem, lambda G: P @ ((P.T @ G @ V) / spectrum) @ V.T)
    log_determinant = float(np.sum(np.log(spectrum)))
    log_determinant += (F.shape[0] - F.shape[1]) * len(m) * float(np.log(noise))
    likelihood = _likelihood(problem, coef, U, log_determinant)
    value = TaskPosterior(coef, P, values, None, likelihood, weights=U @ task_root(problem.tasks))
    singular = bool(noise <= len(values) * _EPS * float(spectrum.max(initial=0.0)))
    return value, Status.SINGULAR if singular else Status.SOLVED


def _with_gaps(problem: TaskRegression) -> tuple[TaskPosterior, Status]:
    F, noise, T = problem.gram.factor, problem.noise, len(problem.tasks)
    R, D = task_root(problem.tasks), F.shape[1]
    normal = np.zeros((T, D, T, D))
    for t in range(T):
        deadline.check()
        part = weighted_gram(F, np.where(problem.seen[:, t], problem.row_weights, 0.0))
        for u, v in np.ndindex(T, T):
            normal[u, :, v, :] += R[u, t] * R[v, t] * part
    matrix = normal.reshape(T * D, T * D)
    largest = float(matrix.diagonal().max(initial=0.0))
    factor = choose_backend().stored(matrix).cholesky(np.full(T * D, noise))
    singular = factor is None or noise <= T * D * _EPS * largest
    held = factor
    if held is None:
        values, vectors = eigh(matrix)
        held = HostFactor(nearest_factor(values + noise, vectors))
    coef, U = _refined(problem, lambda G: held.solve(G.T.reshape(-1, 1)).reshape(T, D).T)
    log_determinant = 2.0 * float(np.sum(np.log(held.diagonal())))
    log_determinant += (len(problem.readings.row) - T * D) * float(np.log(noise))
    likelihood = _likelihood(problem, coef, U, log_determinant)
    value = TaskPosterior(coef, None, None, held.lower(), likelihood, weights=U @ R)
    return value, Status.SINGULAR if singular else Status.SOLVED


def _refined(problem: TaskRegression, solve: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return A, and the weights U of the features of readings, of K A B + noise S^-1 A = Y.

    What rounding left of the equations is solved again. A = S (Y - F U R) / noise, of which little
    is right where the noise is near rounding; U, which predicts, is right then, too.

    Parameters
    ----------
    problem : TaskRegression
        What is asked.
    solve : callable
        Multiplies weights (D, T) of the features of readings by (Phi'S Phi + noise)^-1.
    """
    F, B, seen = problem.gram.factor, problem.tasks, problem.seen
    R, s = task_root(B), problem.row_weights[:, None]
    left = Y = np.where(seen, problem.targets, 0.0)
    A, U, size = np.zeros_like(Y), np.zeros((F.shape[1], len(B))), np.inf
    for _ in range(_ROUNDS):
        deadline.check()
        step = solve(np.asarray(F.T @ (s * left)) @ R)
        ahead = A + np.where(seen, s * (left - np.asarray(F @ (step @ R))) / problem.noise, 0.0)
        image = np.asarray(F @ (np.asarray(F.T @ ahead) @ B))
        left = np.where(seen, Y - image - problem.noise / s * ahead, 0.0)
        now = float(np.linalg.norm(left))
        if not now < _SHRINKS * size and np.isfinite(size):
            break
        A, U, size = ahead, U + step, now
    return A, U


def _likelihood(problem: TaskRegression, A: Array, U: Array, log_determinant: float) -> float:
    """Return log p(Y), with y'C^-1 y as a sum of squares."""
    s, noise = problem.row_weights, problem.noise
    squares = noise * float(np.sum(np.square(A) / s[:, None])) + float(np.sum(np.square(U)))
    return task_log_likelihood(squares, log_determinant, problem.readings, s, noise)


# --- log marginal likelihood ---------------------------------------------------------------------
#
# The log marginal likelihood and its gradient, whether or not all tasks have all readings.


class _Slopes(NamedTuple):
    """The likelihood, and its slopes in B, in K and in the noise."""

    value: float
    by_tasks: Array
    by_kernel: Array
    by_noise: float


@dataclass(frozen=True)
class TaskAscent(Solver):
    """L-BFGS-B on the entries of W and the logarithms of the parameters; B = W W'.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be: of the log-likelihood
        of one reading on the average.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = TaskEvidence

    tol: float = 1e-5
    max_iter: int = 200

    def run(self, problem: TaskEvidence, watch: Watch, start: Any = None) -> Solution:
        """Ascend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        readings = readings_of(problem.targets)
        unit = 1.0 / float(problem.row_weights[readings.row].sum())

        def measure(place: Array) -> tuple[float, Array]:
            value, gradient = task_evidence(problem, place)
            return -unit * value, -unit * gradient

        found = bounded_descent(problem, measure, watch, self.tol, self.max_iter, starts)
        value = LogParameters(found.best)
        return report(self, value, found.status, found.steps, watch, found.detail)


def task_evidence(problem: TaskEvidence, place: Array) -> tuple[float, Array]:
    """Return the log-likelihood of all readings, and its gradient by all that is learnt.

    Parameters
    ----------
    problem : TaskEvidence
        What is asked.
    place : (p,) array
        Entries of W, logarithms of the parameters of the kernel, logarithm of the noise.
    """
    logs, noise, B = problem.logs_at(place), problem.noise_at(place), problem.tasks_at(place)
    formula = problem.kernel.formula(logs)
    K = np.asarray(Source(formula, problem.X).pairs().dense())
    whole = not np.isnan(problem.targets).any()
    found = (_evidence_whole if whole else _readings)(problem, K, B, noise)
    if found is None or not np.isfinite(found.value):
        return -np.inf, np.zeros(len(place))
    parts = []
    if problem.learns_tasks:
        by_factor = 2.0 * found.by_tasks @ problem.factor_at(place)
        parts.append(by_factor[np.tril_indices(len(B))])
    parts.append(contracted(problem.kernel, logs, found.by_kernel, problem.X, {formula: K}))
    if problem.learns_noise:
        parts.append(np.array([noise * found.by_noise]))
    return found.value, np.concatenate(parts)


def _evidence_whole(problem: TaskEvidence, K: Array, B: Array, noise: float) -> _Slopes | None:
    """Use the decompositions of K and B."""
    s, Y = problem.row_weights, problem.targets
    found = kronecker(K, B, s, noise)
    spectrum = found.spectrum
    A = found.solve(Y)
    readings = readings_of(Y)
    value = task_log_likelihood(
        float(np.sum(A * Y)), float(np.sum(np.log(spectrum))), readings, s, noise
    )
    h = np.sum(found.l[:, None] / spectrum, axis=0)
    by_tasks = A.T @ K @ A - (found.V * h) @ found.V.T
    g = np.sum(found.m / spectrum, axis=1)
    half = found.root[:, None] * found.U
    by_kernel = A @ B @ A.T - (half * g) @ half.T
    copies = (float(s.sum()) - len(s)) * Y.shape[1]
    by_noise = float(np.sum(A**2 / s[:, None]) - np.sum(1.0 / spectrum) - copies / noise)
    return _Slopes(value, 0.5 * by_tasks, 0.5 * by_kernel, 0.5 * by_noise)


def _readings(problem: TaskEvidence, K: Array, B: Array, noise: float) -> _Slopes | None:
    """Use a factor of the covariance of all readings."""
    s, readings = problem.row_weights, readings_of(problem.targets)
    task, row, r = readings.task, readings.row, len(readings.row)
    C = readings_matrix(K, B, readings)
    C.flat[:: r + 1] += noise / s[row]
    factor = choose_backend().cholesky_factor(C)
    if factor is None:
        return None
    y = problem.targets[row, task]
    a = factor.solve(y)
    log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())))
    log_determinant += float(np.sum(np.log(s[row])))
    value = task_log_likelihood(float(a @ y), log_determinant, readings, s, noise)
    M = 0.5 * (np.outer(a, a) - factor.inverse())
    copies = float(s[row].sum()) - r
    by_noise = float(np.sum(M.diagonal() / s[row])) - 0.5 * copies / noise
    # sums over the readings of a task, and of a row
    of_task = np.eye(len(B))[:, task]
    by_tasks = of_task @ (M * K[np.ix_(row, row)]) @ of_task.T
    weighted = M * B[np.ix_(task, task)]
    by_kernel = np.zeros_like(K)
    for t in range(len(B)):
        for u in range(len(B)):
            pair = np.ix_(row[task == t], row[task == u])
            by_kernel[pair] += weighted[np.ix_(task == t, task == u)]
    return _Slopes(value, by_tasks, by_kernel, by_noise)


# --- choice --------------------------------------------------------------------------------------

choose.register(TaskEvidence)(lambda problem: TaskAscent())


@choose.register
def _(problem: TaskRegression) -> Solver:
    if problem.gram.factor is not None:
        return TaskFeatures()
    return KroneckerPosterior() if problem.readings.whole else TaskCholesky()
