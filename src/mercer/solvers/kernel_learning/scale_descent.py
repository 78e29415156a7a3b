"""Scales of features by a quasi-Newton descent within bounds, from several starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer.array_types import Array
from mercer.problems.kernel_learning.relevance import Relevance
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.kernel_learning.ridge_slopes import measured

_SAME = 1e-8  # values that differ by less are the same: one part in 10^8 of an error
_UNUSABLE = 1e3  # above any value: where K + penalty cannot be factored


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
        way = _Way(problem, watch)
        ends = []
        bounds = list(zip(problem.lower, problem.upper, strict=True))
        options: Any = {
            "maxiter": self.max_iter,
            "gtol": 0.5 * self.tol,
            "ftol": 1e-14,
            "maxls": 40,
        }

        def descend(begin: Array) -> tuple[float, bool]:
            found: Any = minimize(
                way, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=options
            )
            return float(found.fun), bool(found.status == 1)

        try:
            for begin in starts:
                ends.append(descend(begin))
            if way.steepest > self.tol and not min(ends)[1]:
                descend(way.best)  # with nothing remembered: what is, misled it
        except _StopError:
            pass
        status = self._status(way, min(ends)[1] if ends else False)
        detail = f"best of {len(ends)} starts" if len(ends) > 1 else ""
        return report(self, problem.at(way.best), status, way.count, watch, detail)

    def _status(self, way: _Way, limited: bool) -> Status:
        if way.watch.stopped:
            return way.watch.stopped
        if not np.isfinite(way.lowest):
            return Status.NOT_DEFINITE
        if way.steepest <= self.tol:
            return Status.SOLVED
        return Status.ITERATION_LIMIT if limited else Status.INACCURATE


class _StopError(Exception):
    """A limit was reached, or the callback asked to stop."""


@dataclass
class _Way:
    """The function to be minimised, and the best place seen.

    Attributes
    ----------
    problem : Relevance
        What is asked.
    watch : Watch
        The clock.
    count : int
        How often it was measured.
    lowest : float
        The lowest value.
    best : (d + 1,) array
        Where it is flattest among places of that value.
    value, steepest : float
        The value there, and its largest slope.
    """

    problem: Relevance
    watch: Watch
    count: int = 0
    lowest: float = np.inf
    best: Array = field(default_factory=lambda: np.empty(0))
    value: float = np.inf
    steepest: float = np.inf

    def __post_init__(self) -> None:
        self.best = self.problem.starts[0]

    def __call__(self, logs: Array) -> tuple[float, Array]:
        """Measure, remember, and ask whether to go on."""
        value, gradient = measured(self.problem, self.problem.at(logs))
        self.count += 1
        shown = float(np.abs(self.problem.uphill(logs, gradient)).max())
        self.lowest = min(self.lowest, value)
        low = value <= self.lowest + _SAME
        if low and (self.value > self.lowest + _SAME or shown < self.steepest):
            self.value, self.best, self.steepest = value, logs.copy(), shown
        if self.watch.tick(self.count, shown):
            raise _StopError
        return (value, gradient) if np.isfinite(value) else (_UNUSABLE, gradient)
