"""The posterior of several tasks: by two small decompositions, or a factor of all readings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.lapack import interruptible
from mercer.gram.base import written_out
from mercer.problems.multitask.regression import (
    Readings,
    TaskPosterior,
    TaskRegression,
    task_log_likelihood,
)
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report

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
        values, U = interruptible(np.linalg.eigh, weighted)
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
            C = _nearest_factor(problem, readings)
        factor = np.tril(C)
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
    C = np.ascontiguousarray(K[np.ix_(readings.row, readings.row)], dtype=np.float64)
    C *= tasks[np.ix_(readings.task, readings.task)]
    return C


def _nearest_factor(problem: TaskRegression, readings: Readings) -> Array:
    """Return the factor of the nearest matrix without eigenvalues at the level of rounding."""
    C = readings_matrix(np.asarray(problem.gram.dense()), problem.tasks, readings)
    C.flat[:: len(C) + 1] += problem.noise / problem.row_weights[readings.row]
    values, vectors = interruptible(np.linalg.eigh, C)
    floor = len(C) * _EPS * float(np.abs(values).max(initial=np.finfo(float).tiny))
    half = vectors * np.sqrt(np.maximum(values, floor))
    R = interruptible(np.linalg.qr, half.T, mode="r")
    return np.ascontiguousarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)
