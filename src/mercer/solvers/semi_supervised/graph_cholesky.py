"""Values of a graph by one factor of its equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.gram.sizes import factor_bytes
from mercer.points import to_dense
from mercer.problems import GraphLabels
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.semi_supervised.graph_answer import answer, error_of, right_sides
from mercer.solvers.spd import factor_spd


@dataclass(frozen=True)
class GraphCholesky(Solver):
    """Write D - alpha W out on the free rows, factor it, and solve: exact to rounding.

    Parameters
    ----------
    tol : float
        Largest error of a value, in units of the largest target, that counts as solved.
    """

    answers = GraphLabels

    tol: float = 1e-8

    def run(self, problem: GraphLabels, watch: Watch, start: Any = None) -> Solution:
        """Solve."""
        free = problem.free
        require_memory(
            2 * factor_bytes(len(free)),
            f"the equations of {len(free)} rows without a label",
            "Use neighbors=10, a graph with few edges, or solver GraphConjugateGradient().",
            held=problem.gram.nbytes,
        )
        found = np.empty((0, problem.targets.shape[1] + 1))
        if len(free):
            A = -problem.alpha * to_dense(problem.edges[np.ix_(free, free)])
            A.flat[:: len(A) + 1] = problem.degrees[free]
            factor = factor_spd(A)
            found = np.column_stack([factor(column) for column in right_sides(problem).T])
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        status = Status.SOLVED if error_of(problem, found) <= self.tol else Status.INACCURATE
        return report(self, answer(problem, found), status, 1, watch)
