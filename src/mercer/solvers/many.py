"""Several programmes, one after another: for Grams that no solver takes as a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.problems import Duals, Many, MarginPath, PathDuals
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.margin.path import path_refusal, warm_starts


@dataclass(frozen=True)
class Each(Solver):
    """Answer every programme of `Many`, or of each setting of a `MarginPath`, with one solver.

    Parameters
    ----------
    solver : Solver
        What answers a single programme.
    """

    answers = (Many, MarginPath)

    solver: Solver

    def _obstacle(self, problem: Many | MarginPath) -> str | None:
        """Take what the inner solver takes."""
        if isinstance(problem, MarginPath):
            return path_refusal(problem) or self._obstacle(problem.at(problem.settings[0]))
        if not problem.problems:
            return "there is no programme to answer"
        refusals = (self.solver.refuses(part) for part in problem.problems)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def run(self, problem: Many | MarginPath, watch: Watch, start: Any = None) -> Solution:
        """Go through the programmes; a limit or the callback ends all of them."""
        if isinstance(problem, MarginPath):
            return self._along(problem, watch)
        found: list[Solution] = []
        for k, part in enumerate(problem.problems):
            begin = None if start is None else start.parts[k]
            found.append(self.solver.run(part, watch, begin))
        duals = Duals(tuple(solution.value for solution in found))
        return self._together(duals, found, watch, "programmes")

    def _along(self, problem: MarginPath, watch: Watch) -> Solution:
        """Answer one setting after another, each from the answer of a neighbour."""
        settings, starts, place = warm_starts(problem)
        found: list[Solution] = []
        for setting, start in zip(settings, starts, strict=True):
            before = None if start < 0 else found[start].value
            found.append(self.run(problem.at(setting), watch, before))
        value = _as_path(problem, [found[number] for number in place])
        return self._together(value, found, watch, "settings")

    def _together(self, value: Any, found: list[Solution], watch: Watch, what: str) -> Solution:
        wrong = [k for k, solution in enumerate(found) if not solution.status.ok]
        status = watch.stopped or (found[wrong[0]].status if wrong else Status.SOLVED)
        detail = f"{len(wrong)} of {len(found)} {what}; number {wrong[0]} first" if wrong else ""
        return report(self, value, status, sum(s.iterations for s in found), watch, detail)


def _as_path(problem: MarginPath, found: list[Solution]) -> PathDuals:
    """Put answers at all settings side by side, with their values at the rows asked for."""
    duals = [solution.value.parts for solution in found]
    numbers = range(len(problem.problems))
    return PathDuals(
        tuple(np.array([parts[k].coef for parts in duals]) for k in numbers),
        tuple(np.array([np.atleast_1d(parts[k].intercept) for parts in duals]) for k in numbers),
        np.stack(
            [problem.values(k, np.array([parts[k].coef for parts in duals])) for k in numbers], 1
        ),
        np.array([solution.status.ok for solution in found]),
    )
