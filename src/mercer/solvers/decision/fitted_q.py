"""Fitted Q iteration: regress on the targets of the last values, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.array_types import Array
from mercer.problems.bellman import BellmanEquation, KernelQ
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class FittedQIteration(Solver):
    """Sweeps of kernel ridge regression on r + discount max Q (Ernst et al., 2005).

    One factor of K + penalty W^-1 serves all sweeps. A sweep need not contract, as ridge regression
    is no average: that it ended says so.

    Parameters
    ----------
    tol : float
        Largest change of a value by a sweep, relative to the largest value.
    max_iter : int
        Largest number of sweeps.
    """

    answers = BellmanEquation

    tol: float = 1e-8
    max_iter: int = 5000

    def run(self, problem: BellmanEquation, watch: Watch, start: Any = None) -> Solution:
        """Sweep from zero, or from given values."""
        ridge = RidgeFactor(problem)
        answer = KernelQ(np.zeros(len(problem.points)), 0.0) if start is None else start
        after = problem.after(answer)
        status, steps = Status.ITERATION_LIMIT, 0
        for steps in range(1, self.max_iter + 1):
            answer = ridge.fit(problem.mean(problem.targets(after.max(axis=0))))
            before, after = after, problem.after(answer)
            change = float(np.abs(after - before).max())
            size = max(float(np.abs(after).max()), float(np.abs(problem.rewards).max()))
            if not np.isfinite(change):
                status = Status.NOT_FINITE
                break
            if watch.tick(steps, change / (size or 1.0)):
                status = watch.stopped or Status.STOPPED
                break
            if change <= self.tol * size:
                status = Status.SOLVED
                break
        return report(self, answer, status, steps, watch)


class RidgeFactor:
    """K + penalty W^-1, factored once.

    Parameters
    ----------
    problem : BellmanEquation
        Whose matrix it is.
    """

    def __init__(self, problem: BellmanEquation) -> None:
        shift = problem.penalty / problem.counts
        self.factor = cho_factor(problem.matrix + np.diag(shift), lower=True)
        self.ones = cho_solve(self.factor, np.ones(len(shift))) if problem.bias else None

    def fit(self, targets: Array) -> KernelQ:
        """Return the ridge solution for targets of the points."""
        coef = cho_solve(self.factor, targets)
        if self.ones is None:
            return KernelQ(coef, 0.0)
        intercept = float(coef.sum() / self.ones.sum())
        return KernelQ(coef - intercept * self.ones, intercept)
