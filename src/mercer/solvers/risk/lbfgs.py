"""L-BFGS for smooth risks, in the metric of functions: one product with K for each gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.risk.newton import best_of
from mercer.solvers.risk.quasi_newton import LBFGSMemory
from mercer.solvers.risk.space import space_of


@dataclass(frozen=True)
class LBFGSRisk(Solver):
    """Quasi-Newton steps that remember a few changes of the gradient.

    Parameters
    ----------
    tol : float
        Gradient to reach, relative to what pulls on the function.
    max_iter : int
        Largest number of steps.
    memory : int
        Changes that are remembered.
    n_init : int
        Starts, for a loss that is not convex.
    """

    answers = SmoothRisk

    tol: float = 1e-7
    max_iter: int = 5000
    memory: int = 20
    n_init: int = 4

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Descend from zero, or from every start."""
        space = space_of(problem.of_weight_one())
        best = best_of(space, self, watch, lambda at: LBFGSMemory(at, self.memory))
        value = space.answer(best.arrival.element)
        return report(self, value, best.arrival.status, best.steps, watch, best.detail)
