"""Expectation maximisation, the one loop for all mixtures, with restarts and leaps.

Two steps, then a leap along both, kept only if the objective there is no lower than after the first
step; a leap that is kept costs nothing, since its pass is the next step's. Of several starts, each
goes a short way, and the most promising goes on; if parts of it collapse on the way, so does the
next, until one arrives whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.backends.lapack import one_blas_thread
from mercer.machines.mixture.problem import EStep, Mixture
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

_SHORT = 12  # passes before starts are compared


@dataclass(frozen=True)
class EM(Solver):
    """Expectation maximisation for a `Mixture`.

    Parameters
    ----------
    tol : float
        Stop when a step adds no more than this to the objective per row.
    max_iter : int
        Largest number of passes over the rows, the short runs of other starts not counted.
    n_init : int
        Starts to compare.
    random_state : int
        Seed of the starts.
    accelerate : bool
        Whether to leap; without, every step is a plain one.
    """

    answers = Mixture

    tol: float = 1e-6
    max_iter: int = 500
    n_init: int = 1
    random_state: int = 0
    accelerate: bool = True

    def run(self, problem: Mixture, watch: Watch, start: Any = None) -> Solution:
        """Go a short way from each start, and on from the best."""
        with one_blas_thread():  # blocks are small, and chunks of them have threads of their own
            if start is None:
                em_run = self._best(problem, watch)
            else:
                em_run = _EMRun(self, problem, watch, start)
                em_run.on(self.max_iter)
        value = replace(em_run.parts, likelihoods=np.array(em_run.objectives))
        status = em_run.status if em_run.status is Status.SOLVED else watch.stopped or em_run.status
        if status is Status.SOLVED and not self._is_flat_for_sure(problem, em_run):
            status = Status.INACCURATE
        return report(self, value, status, em_run.passes, watch)

    def _is_flat_for_sure(self, problem: Mixture, em_run: _EMRun) -> bool:
        """Return whether the last gain was seen, to twice the tolerance, as certificates ask."""
        return problem.resolves(em_run.parts, 2.0 * self.tol, em_run.objectives[-1])

    def _best(self, problem: Mixture, watch: Watch) -> _EMRun:
        rng, walks = np.random.RandomState(self.random_state), list[_EMRun]()
        for _ in range(self.n_init):
            with watch.keeping(lambda: any(em_run.objectives for em_run in walks)):
                walks.append(_EMRun(self, problem, watch, problem.start(rng)))
                if self.n_init > 1:
                    walks[-1].on(min(_SHORT, self.max_iter))
            if watch.stopped is not None:
                break
        walks = [em_run for em_run in walks if em_run.objectives] or walks
        walks.sort(key=lambda em_run: em_run.rank, reverse=True)
        whole = [em_run for em_run in walks if em_run.rank[0]]
        tried = list[_EMRun]()
        for em_run in whole or walks[:1]:
            em_run.on(self.max_iter)
            tried.append(em_run)
            if em_run.rank[0] or watch.stopped is not None:
                break
        return max(tried, key=lambda em_run: em_run.rank)


class _EMRun:
    """Where one run stands: parts, what the last pass found, objectives so far."""

    def __init__(self, solver: EM, problem: Mixture, watch: Watch, parts: Any) -> None:
        self._solver, self._problem, self._watch = solver, problem, watch
        self.parts, self.passes, self.objectives = parts, 0, list[float]()
        self._found: EStep | None = None
        self.status, self._ended = Status.ITERATION_LIMIT, False

    @property
    def rank(self) -> tuple[bool, float]:
        """The larger, the more promising: a part on a single row is likely, and says nothing."""
        whole = not self._problem.collapsed(self.parts).any()
        return whole, self.objectives[-1] if self.objectives else -np.inf

    def on(self, limit: int) -> None:
        """Walk until the objective is flat, or so many passes were made."""
        with self._watch.keeping(lambda: bool(self.objectives)):
            self._go(limit)

    def _go(self, limit: int) -> None:
        if self._found is None:
            self._found = self._e_step(self.parts)
            self.objectives.append(self._found.objective)
        while not self._ended and self.passes < limit and self._watch.stopped is None:
            zero = self.parts
            one, found = self._step(zero, self._found)
            if self._flat(one, found) or self.passes >= limit:
                return
            two = self._problem.m_step(one, found.sums)
            if not self._leapt(zero, one, two, found) and self.passes < limit:
                self._flat(two, self._e_step(two))

    def _step(self, parts: Any, found: EStep) -> tuple[Any, EStep]:
        after = self._problem.m_step(parts, found.sums)
        return after, self._e_step(after)

    def _e_step(self, parts: Any) -> EStep:
        self.passes += 1
        return self._problem.e_step(parts)

    def _flat(self, parts: Any, found: EStep) -> bool:
        """Move to the parts, note the gain, and tell whether the walk ends."""
        gain = (found.objective - self.objectives[-1]) / self._problem.total
        rounding = 1e-14 * abs(found.objective) / self._problem.total
        if gain < -rounding:  # no further than rounding lets a step go: stay where we were
            small = -gain <= max(self._solver.tol, self._problem.rounding(self.parts))
            self.status, self._ended = Status.SOLVED if small else Status.INACCURATE, True
            return True
        self.parts, self._found = parts, found
        self.objectives.append(found.objective)
        if gain <= max(self._solver.tol, rounding):
            self.status, self._ended = Status.SOLVED, True
        elif self._watch.tick(self.passes, gain):
            self.status, self._ended = self._watch.stopped or Status.STOPPED, True
        return self._ended

    def _leapt(self, zero: Any, one: Any, two: Any, found: EStep) -> bool:
        if not self._solver.accelerate:
            return False
        ahead = self._problem.extrapolate(zero, one, two)
        if ahead is None:
            return False
        beyond = self._e_step(ahead)
        if not beyond.objective >= found.objective:
            return False
        self.parts, self._found = ahead, beyond
        self.objectives.append(beyond.objective)
        gain = (beyond.objective - found.objective) / self._problem.total
        if self._watch.tick(self.passes, gain):
            self.status, self._ended = self._watch.stopped or Status.STOPPED, True
        return True


# --- choice -------------------------------------------------------------------------------------

choose.register(Mixture)(lambda problem: EM())
