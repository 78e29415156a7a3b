"""Newton's method on the dual of maximum entropy: a smooth convex function of the multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems.entropy import Expectations, GibbsAnswer, span, tilted
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.entropy.face import face, refuse_outside

_FAR = 15.0  # multipliers, in scaled features, that only targets near the border need
_FLAT = 1e-15  # share of the largest curvature that every direction is taken to have
_STRIDE = 10.0  # how much a step may change the logarithm of a chance
_ROUNDING = 1e-14  # of the dual: the last steps gain less than that, and are right all the same
_SMALLEST = 1e-8  # length of a step that is given up


@dataclass(frozen=True)
class EntropyNewton(Solver):
    """Damped Newton steps for `Expectations`.

    Parameters
    ----------
    tol : float
        Largest difference of an expectation from its target, in units of the feature.
    max_iter : int
        Largest number of steps.
    """

    answers = Expectations

    tol: float = 1e-10
    max_iter: int = 200

    def run(self, problem: Expectations, watch: Watch, start: Any = None) -> Solution:
        """Step; where multipliers run away, find out which points are pushed out, and go on."""
        refuse_outside(problem)
        first = np.zeros(len(problem.targets))
        if start is not None:
            first = start.multipliers * problem.scale
        pull, p, status, steps = self._descend(problem, problem.log_prior, first, watch)
        direction = np.zeros(len(pull))
        if watch.stopped is None and (status is not Status.SOLVED or np.abs(pull).max() > _FAR):
            stay, direction = face(problem)
            if direction.any():
                left = np.where(stay, problem.log_prior, -np.inf)
                pull, p, status, more = self._descend(problem, left, 0.0 * pull, watch)
                steps += more
        value = GibbsAnswer(pull / problem.scale, p, direction)
        return report(self, value, status, steps, watch)

    def _descend(
        self, problem: Expectations, log_prior: Array, pull: Array, watch: Watch
    ) -> tuple[Array, Array, Status, int]:
        """Step among the points that `log_prior` leaves a chance."""
        G, used = problem.gaps, log_prior > -np.inf
        ways, hidden = span(problem, used)
        dual, p = tilted(log_prior, G, pull)
        best = np.inf
        for step in range(self.max_iter):
            g = p @ G
            off = float(np.abs(g).max(initial=0.0))
            met = bool((np.abs(g) <= self.tol + hidden).all())
            if off <= self.tol * 1e-3 or (met and off >= 0.5 * best):
                return pull, p, Status.SOLVED, step
            best = min(best, off)
            if watch.tick(step, off):
                return pull, p, watch.stopped or Status.STOPPED, step
            way = _newton(G[used], p[used], g, ways)
            length, slope = 1.0, float(way @ g)
            while length > _SMALLEST:
                ahead, q = tilted(log_prior, G, pull + length * way)
                if ahead <= dual + 1e-4 * length * slope + _ROUNDING * (1.0 + abs(dual)):
                    break
                length *= 0.5
            else:
                return pull, p, Status.SOLVED if met else Status.INACCURATE, step
            pull, p, dual = pull + length * way, q, ahead
        return pull, p, Status.ITERATION_LIMIT, self.max_iter


def _newton(G: Array, p: Array, g: Array, ways: Array) -> Array:
    """Return the step -H^-1 g among directions in which points differ, no longer than is safe."""
    centred = (G - g) @ ways
    values, vectors = np.linalg.eigh((centred * p[:, None]).T @ centred)
    values = np.maximum(values, _FLAT * max(float(values.max(initial=0.0)), 1e-300))
    step = -vectors @ ((vectors.T @ (ways.T @ g)) / values)
    longest = float(np.abs(centred @ step).max(initial=0.0))
    return np.asarray(ways @ (step * min(1.0, _STRIDE / longest) if longest > 0 else step))
