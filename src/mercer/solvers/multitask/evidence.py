"""The likelihood of several tasks and its gradient, in either form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import Source
from mercer.problems.multitask.regression import TaskEvidence, readings_of, task_log_likelihood
from mercer.problems.process.evidence import LogParameters
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.kernel_learning.bounded_descent import bounded_descent
from mercer.solvers.multitask.posterior import kronecker, readings_matrix
from mercer.solvers.process.slopes import contracted


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
    found = (_whole if whole else _readings)(problem, K, B, noise)
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


def _whole(problem: TaskEvidence, K: Array, B: Array, noise: float) -> _Slopes | None:
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
