"""Box programmes whose Gram is factored, one variable at a time: for features too many to square.

Text has tens of thousands of columns, of which a row fills a hundred: F'F cannot be formed, but a
step on one variable costs only the row of it. The compiled descent (`Features.descend`) keeps the
sums by multipliers; here its answer is made feasible, judged in float64 on all rows, and carried
on with a smaller tolerance where it fell short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.problems import BoxQP, Dual
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.linear_margin.feature_box import feature_box
from mercer.solvers.linear_margin.linear_answer import (
    admissible,
    exact_gradient,
    fallen_short,
    linear_refusal,
    meets,
)
from mercer.solvers.linear_margin.screening import FeatureProgramme
from mercer.solvers.margin.descent import VIOLATION, Criterion

_EPOCHS = 1000
_ROUNDS = 20
_FIRST = 0.5  # of the tolerance
_SHARPER = 0.25
_NO_PULL = 1e-6  # of the length of the rows: a margin thinner than that is none


@dataclass(frozen=True)
class DualDescent(Solver):
    """Coordinate descent in random order with shrinking; repeatable.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end.
    max_iter : int or None
        Largest number of passes over the variables; None takes 1000.
    criterion : Violation or Gap
        What `tol` speaks of: the largest violation of a pair, or the relative duality gap.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = BoxQP

    def _obstacle(self, problem: BoxQP) -> str | None:
        """Take box programmes with a factored Gram that have a feasible point."""
        return linear_refusal("DualDescent", problem)

    def run(self, problem: BoxQP, watch: Watch, start: Any = None) -> Solution:
        """Descend, repair the sums, judge; go on while that helps."""
        P = FeatureProgramme.of(problem)
        rows = choose_backend().features(P.rows.factor, P.rows.index)
        n = len(problem.linear)
        b = problem.feasible_near(np.zeros(n) if start is None else start.coef)
        offsets = np.zeros(len(P.totals))
        F, epochs, most = exact_gradient(problem, P, b), 0, self.max_iter or _EPOCHS
        within, status = _FIRST * self.criterion.first(problem, F, self.tol), Status.INACCURATE
        if watch.tick(0, np.inf):
            return self._report(problem, b, F, watch.stopped or Status.STOPPED, 0, watch)
        for _ in range(_ROUNDS):
            box = feature_box(P, b, offsets)
            found = rows.descend(box, within, most - epochs, watch.tick)
            epochs, offsets = epochs + found.epochs, found.offsets
            b = admissible(problem, P, found.b)
            F = exact_gradient(problem, P, b)
            status = meets(self.criterion, problem, P, b, F, self.tol)
            if status.ok or status is Status.NOT_FINITE or watch.stopped:
                break
            if epochs >= most:
                status = Status.INFEASIBLE if _contradictory(P, b) else Status.ITERATION_LIMIT
                break
            allowed = self.criterion.allowed(problem, b, F, self.tol)
            within *= _SHARPER
            if self.criterion is VIOLATION and allowed > 0:
                within = min(within, _FIRST * allowed)
        status = status if status.ok or not watch.stopped else watch.stopped
        return self._report(problem, b, F, status, epochs, watch)

    def _report(
        self, problem: BoxQP, b: Array, F: Array, status: Status, epochs: int, watch: Watch
    ) -> Solution:
        status = fallen_short(status, problem, b, F)
        return report(self, Dual(b, problem.offsets(b, F)), status, epochs, watch)


def _contradictory(P: FeatureProgramme, b: Array) -> bool:
    """Return whether b, grown without bound, points where nothing pulls back but all is gained."""
    if not (np.isinf(P.upper - P.lower) & (P.shift == 0)).any():
        return False
    pull = float(np.linalg.norm(P.rows.rmatvec(b))) / P.rows.length()
    gain = float(P.linear @ b - P.epsilon @ np.abs(b))
    return gain > 0 and pull <= _NO_PULL * float(np.abs(b).sum())
