"""Box programmes whose Gram is factored, K = F F' + diag(shift), in the space of the features.

Samples of growing size say where the answer lies; then only rows near a corner of their loss are
given to the interior point method, all others being known (`screening`). Whether they were known
rightly is checked on every row, and the rows that were not join the next round, so the answer is
that of all rows. Cost: a few passes over F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.points import to_host
from mercer.problems import BoxQP, Dual
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.linear_margin.fallback import fall_back
from mercer.solvers.linear_margin.feature_search import FeatureSearch
from mercer.solvers.linear_margin.linear_answer import (
    admissible,
    exact_gradient,
    fallen_short,
    linear_refusal,
    meets,
    rounding_of,
)
from mercer.solvers.linear_margin.screening import FeatureProgramme
from mercer.solvers.margin.descent import VIOLATION, Criterion

_CLEARLY = 0.1  # of the last tolerance of residuals: so much finer is worth another search
_RESIDUAL_TOL = 1e-3  # of the violation allowed: what a residual is compared with to decide a bound
_SHARPER = 0.9  # of the tolerance, for descents that are judged by another sum


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Predictor-corrector steps on the rows that are not decided; exact for all rows.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end; the method itself goes on to the last digits.
    max_iter : int or None
        Largest number of predictor-corrector steps; None lets the method end by itself.
    criterion : Violation or Gap
        What `tol` speaks of: the largest violation of a pair, or the relative duality gap.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = BoxQP

    def _obstacle(self, problem: BoxQP) -> str | None:
        """Take box programmes with a factored Gram that have a feasible point."""
        return linear_refusal("InteriorPoint", problem)

    def run(self, problem: BoxQP, watch: Watch, start: Any = None) -> Solution:
        """Sample, screen, solve, check all rows."""
        given, programme = problem, FeatureProgramme.of(problem)
        problem = problem.placed()
        b = problem.feasible_near(np.zeros_like(problem.linear))
        F = problem.linear
        if problem.scale is None and self.criterion is VIOLATION:
            F = exact_gradient(problem, programme, b)
        residual_tol = _RESIDUAL_TOL * self.criterion.first(problem, F, self.tol)
        search = FeatureSearch(programme, watch, residual_tol, self.max_iter)
        if watch.tick(0, np.inf):
            b, status, F = self._found(problem, b, search)
        else:
            b, status, F = self._searched(problem, search)
        hopeless = self.criterion is VIOLATION and rounding_of(
            programme, b
        ) > self.tol * problem.unit(b, F)
        if status in (Status.INACCURATE, Status.NOT_FINITE) and not hopeless:
            problem, search.programme = given, programme.here()
            b, F = to_host(b), to_host(F)
            b, status, F = self._after_fallback(problem, b, status, F, search)
        status = fallen_short(status, problem, b, F)
        answer = Dual(to_host(b), problem.offsets(b, F))
        return report(self, answer, status, search.steps, watch)

    def _searched(self, problem: BoxQP, search: FeatureSearch) -> tuple[Array, Status, Array]:
        """Search; where the answer itself says what is allowed, once more with that in mind."""
        start = problem.feasible_near(np.zeros_like(problem.linear))
        while True:
            b = start  # stays so if time runs out
            # judged below, on all rows; between products of ours BLAS has little to do
            with np.errstate(all="ignore"), search.watch.keeping(), one_blas_thread():
                b = search.run().b
            b, status, F = self._found(problem, b, search)
            if status is not Status.INACCURATE or self.criterion.is_known_before(problem):
                return b, status, F
            residual_tol = _RESIDUAL_TOL * self.criterion.allowed(problem, b, F, self.tol)
            finer = 0 < residual_tol < _CLEARLY * search.residual_tol
            if self.criterion is not VIOLATION or not finer:
                return b, status, F
            search.residual_tol = residual_tol

    def _found(
        self, problem: BoxQP, b: Array, search: FeatureSearch
    ) -> tuple[Array, Status, Array]:
        b = admissible(problem, search.programme, b)
        return b, *self._judge(problem, b, search)

    def _judge(self, problem: BoxQP, b: Array, search: FeatureSearch) -> tuple[Status, Array]:
        F = exact_gradient(problem, search.programme, b)
        if search.unbounded:
            return Status.INFEASIBLE, F
        met = meets(self.criterion, problem, search.programme, b, F, self.tol)
        return met if met.ok or met is Status.NOT_FINITE else search.stopped or met, F

    def _after_fallback(
        self, problem: BoxQP, b: Array, status: Status, F: Array, search: FeatureSearch
    ) -> tuple[Array, Status, Array]:
        """Let descents go on; keep what is better."""
        P, criterion = search.programme, self.criterion
        left = None if self.max_iter is None else self.max_iter - search.steps
        found, watch = b, search.watch
        with watch.keeping():  # of the answer that there is
            found, steps = fall_back(problem, P, b, criterion, _SHARPER * self.tol, watch, left)
            search.steps += steps
        found = admissible(problem, P, found)
        ending, gradient = self._judge(problem, found, search)
        before = criterion.measure(problem, b, F) if np.isfinite(F).all() else np.inf
        if ending.ok or criterion.measure(problem, found, gradient) < before:
            return found, ending, gradient
        return b, search.stopped or status, F
