"""The posterior of several tasks for K = F F': nothing is larger than n rows of features.

With B = R R, R symmetric, a reading of task t at x has the features R_t (x) phi(x), and C =
Phi Phi' + noise S^-1. Where every task was read at every row, F'SF = P diag(l) P' and B =
V diag(m) V' make Phi'S Phi diagonal; where not, it is factored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.host_matrix import HostFactor
from mercer.backends.lapack import interruptible
from mercer.problems.multitask.regression import (
    TaskPosterior,
    TaskRegression,
    task_log_likelihood,
    task_root,
)
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.weighted_gram import weighted_gram

_EPS = float(np.finfo(np.float64).eps)
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
        value, status = _whole(problem) if problem.readings.whole else _with_gaps(problem)
        watch.tick(1, np.nan)
        return report(self, value, status, 1, watch)


def _whole(problem: TaskRegression) -> tuple[TaskPosterior, Status]:
    F, noise = problem.gram.factor, problem.noise
    normal = weighted_gram(F, problem.row_weights)
    try:
        values, P = interruptible(np.linalg.eigh, normal)
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
    held = HostFactor(nearest_factor(matrix, noise)) if factor is None else factor
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


def nearest_factor(matrix: Array, noise: float) -> Array:
    """Return the factor of matrix + noise without eigenvalues at the level of rounding."""
    values, vectors = interruptible(np.linalg.eigh, matrix)
    values = values + noise
    floor = len(values) * _EPS * float(np.abs(values).max(initial=np.finfo(float).tiny))
    half = vectors * np.sqrt(np.maximum(values, floor))
    R = interruptible(np.linalg.qr, half.T, mode="r")
    return np.ascontiguousarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)
