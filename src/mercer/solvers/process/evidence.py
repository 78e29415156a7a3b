"""The marginal likelihood of a Gaussian process, and its gradient: n^3 once, n^2 a parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Source
from mercer.problems.process.evidence import Evidence, LogParameters, log_likelihood
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.kernel_learning.bounded_descent import bounded_descent
from mercer.solvers.kernel_learning.ridge_slopes import inverted
from mercer.solvers.process.landmark_evidence import evidence_by_landmarks
from mercer.solvers.process.slopes import contracted


@dataclass(frozen=True)
class EvidenceAscent(Solver):
    """L-BFGS-B on the logarithms of the parameters; the most likely end of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be: of the log-likelihood
        of one row and target on the average, by the logarithm of a parameter.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = Evidence

    tol: float = 1e-5
    max_iter: int = 200

    def run(self, problem: Evidence, watch: Watch, start: Any = None) -> Solution:
        """Ascend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        unit = 1.0 / (float(problem.row_weights.sum()) * problem.targets.shape[1])

        def measure(logs: Array) -> tuple[float, Array]:
            value, gradient = evidence(problem, logs)
            return -unit * value, -unit * gradient

        found = bounded_descent(problem, measure, watch, self.tol, self.max_iter, starts)
        value = LogParameters(found.best)
        return report(self, value, found.status, found.steps, watch, found.detail)


def evidence(problem: Evidence, logs: Array) -> tuple[float, Array]:
    """Return the log-likelihood of all targets, and its gradient by the logarithms.

    With landmarks, what they bound it by from below. Minus infinity, with a gradient of zero, where
    K + noise is not positive definite to working precision.

    Parameters
    ----------
    problem : Evidence
        What is asked.
    logs : (p,) array
        Logarithms of the parameters.
    """
    if problem.landmarks is not None:
        return evidence_by_landmarks(problem, logs)
    noise, inner = problem.noise_at(logs), logs[: problem.kernel.size]
    formula = problem.kernel.formula(inner)
    K = Source(formula, problem.X).pairs().dense()
    found = inverted(problem, K, noise)
    if found is None:
        return -np.inf, np.zeros(len(logs))
    t = problem.targets.shape[1]
    squares = float(np.sum(found.coef * problem.targets))
    s = problem.row_weights
    value = log_likelihood(squares, found.log_determinant, s, noise, problem.bias, t)
    if not np.isfinite(value):
        return -np.inf, np.zeros(len(logs))
    M = found.G  # dvalue = <M, dC>
    M *= -t
    M += found.coef @ found.coef.T
    M *= 0.5
    gradient = contracted(problem.kernel, inner, M, problem.X, {formula: K})
    if problem.learns_noise:
        copies = float(s.sum()) - len(s)
        gradient = np.append(gradient, noise * np.sum(M.diagonal() / s) - 0.5 * t * copies)
    return value, gradient
