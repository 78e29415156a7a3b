"""Generalised iterative scaling: all multipliers at once, by the ratio of target to expectation.

For features f >= 0 whose sum at a point is at most C, l_j += ln(b_j / E[f_j]) / C raises the dual
in every step, without a step length. Features are shifted to be nonnegative first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems.entropy import Expectations, GibbsAnswer, span, tilted
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.entropy.face import face, refuse_outside

_NOTED = 50  # passes between two looks at the clock


@dataclass(frozen=True)
class IterativeScaling(Solver):
    """Generalised iterative scaling for `Expectations`.

    Parameters
    ----------
    tol : float
        Largest difference of an expectation from its target, in units of the feature.
    max_iter : int
        Largest number of passes.
    """

    answers = Expectations

    tol: float = 1e-8
    max_iter: int = 100_000

    def run(self, problem: Expectations, watch: Watch, start: Any = None) -> Solution:
        """Scale until expectations meet their targets, on the points that may have a chance."""
        refuse_outside(problem)
        stay, direction = face(problem)  # it would take for ever to push points out
        log_prior = np.where(stay, problem.log_prior, -np.inf)
        pull = np.zeros(len(problem.targets))
        if start is not None and not direction.any():
            pull = start.multipliers * problem.scale
        pull, p, status, passes = self._scale(problem, log_prior, pull, watch)
        return report(self, GibbsAnswer(pull / problem.scale, p, direction), status, passes, watch)

    def _scale(
        self, problem: Expectations, log_prior: Array, pull: Array, watch: Watch
    ) -> tuple[Array, Array, Status, int]:
        G, used = problem.gaps, log_prior > -np.inf
        ways, hidden = span(problem, used)
        low = G[used].min(axis=0)
        width = G[used].max(axis=0) - low
        # features that are constant where it counts, or repeat others, have nothing to scale
        free = ways.any(axis=1) & (width > problem.noise) & (low < 0)
        F = np.where(used[:, None], (G - low)[:, free] / width[free], 0.0)
        largest = max(float(F.sum(axis=1).max(initial=0.0)), 1e-300)
        targets = -low[free] / width[free]  # the targets are zero in gaps
        for step in range(self.max_iter + 1):
            p = tilted(log_prior, G, pull)[1]
            beyond = np.abs(p @ G) - hidden
            off = float(beyond.max(initial=0.0))
            if off <= self.tol:
                return pull, p, Status.SOLVED, step
            if step % _NOTED == 0 and watch.tick(step, off):
                return pull, p, watch.stopped or Status.STOPPED, step
            if step < self.max_iter:
                moved = np.log(targets / np.maximum(p @ F, 1e-300)) / largest
                pull = pull.copy()
                pull[free] += moved / width[free]
        return pull, p, Status.ITERATION_LIMIT, self.max_iter
