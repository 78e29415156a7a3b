"""Many programmes, one after another: for Grams that no solver takes as a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mercer.problems import Duals, Many
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class Each(Solver):
    """Answer every programme of `Many` with one solver.

    Parameters
    ----------
    solver : Solver
        What answers a single programme.
    """

    answers = Many

    solver: Solver

    def _obstacle(self, problem: Many) -> str | None:
        """Take what the inner solver takes."""
        if not problem.problems:
            return "there is no programme to answer"
        refusals = (self.solver.refuses(part) for part in problem.problems)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def run(self, problem: Many, watch: Watch, start: Any = None) -> Solution:
        """Go through the programmes; a limit or the callback ends all of them."""
        found: list[Solution] = []
        for k, part in enumerate(problem.problems):
            begin = None if start is None else start.parts[k]
            found.append(self.solver.run(part, watch, begin))
        wrong = [k for k, solution in enumerate(found) if not solution.status.ok]
        status = watch.stopped or (found[wrong[0]].status if wrong else Status.SOLVED)
        detail = (
            f"{len(wrong)} of {len(found)} programmes; number {wrong[0]} first" if wrong else ""
        )
        duals = Duals(tuple(solution.value for solution in found))
        return report(self, duals, status, sum(s.iterations for s in found), watch, detail)
