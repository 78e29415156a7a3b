"""Scales of features by a quasi-Newton descent within bounds, from several starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.problems.kernel_learning.relevance import Relevance
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.kernel_learning.bounded_descent import bounded_descent
from mercer.solvers.kernel_learning.ridge_slopes import measured


@dataclass(frozen=True)
class ScaleDescent(Solver):
    """L-BFGS-B on the logarithms of scales and penalty; the best of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be; slopes are those of
        the logarithm of the error, or of the log-likelihood of a row, by logarithms of scales.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = Relevance

    tol: float = 1e-4
    max_iter: int = 200

    def run(self, problem: Relevance, watch: Watch, start: Any = None) -> Solution:
        """Descend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        found = bounded_descent(
            problem,
            lambda logs: measured(problem, problem.at(logs)),
            watch,
            self.tol,
            self.max_iter,
            starts,
        )
        return report(self, problem.at(found.best), found.status, found.steps, watch, found.detail)
