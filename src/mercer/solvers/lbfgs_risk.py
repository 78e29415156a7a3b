"""L-BFGS for smooth risks, in the metric of functions: one product with K for each gradient."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from mercer.problems.smooth_risk import SmoothRisk
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.newton_risk import detail_of, starts
from mercer.solvers.risk_descent import Arrival, descend
from mercer.solvers.risk_space import Element, Space, space_of


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

    tol: float = 1e-6
    max_iter: int = 5000
    memory: int = 20
    n_init: int = 4

    def refuses(self, problem: Any) -> str | None:
        """Take smooth risks."""
        if not isinstance(problem, SmoothRisk):
            return f"LBFGSRisk answers SmoothRisk problems, not {type(problem).__name__}"
        return None

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Descend from zero, or from every start."""
        space = space_of(problem)
        best: Arrival | None = None
        steps = 0
        for element in starts(space, self, watch):
            way = _Memory(space, self.memory)
            found = descend(space, element, way, self.tol, self.max_iter, watch)
            steps += found.steps
            if best is None or found.objective < best.objective:
                best = found
            if watch.stopped is not None:
                break
        assert best is not None  # there is always one start
        value = space.answer(best.element)
        return report(self, value, best.status, steps, watch, detail_of(self, space))


class _Memory:
    """The last changes of place and gradient, and the direction they suggest."""

    def __init__(self, space: Space, size: int) -> None:
        self._space = space
        self._changes: deque[tuple[Element, Element, float]] = deque(maxlen=size)
        self._last: tuple[Element, Element] | None = None

    def __call__(self, u: Element, g: Element) -> Element:
        space = self._space
        if self._last is not None:
            s, y = u.plus(-1.0, self._last[0]), g.plus(-1.0, self._last[1])
            product = space.inner(s, y)
            if product > 1e-12 * space.inner(y, y) ** 0.5 * space.inner(s, s) ** 0.5:
                self._changes.append((s, y, product))
        self._last = u, g
        return self._direction(g)

    def _direction(self, g: Element) -> Element:
        space, d = self._space, g.times(-1.0)
        if not self._changes:  # the first step: as long as the steepest curvature lets it be
            problem = space.problem
            most = problem.loss.steepest(problem.columns) * float(
                problem.weights @ (space.lengths**2 + space.scale)
            )
            return d.times(1.0 / (problem.penalty + most))
        shares = []
        for s, y, product in reversed(self._changes):
            share = space.inner(s, d) / product
            shares.append(share)
            d = d.plus(-share, y)
        s, y, product = self._changes[-1]
        d = d.times(product / space.inner(y, y))
        for (s, y, product), share in zip(self._changes, reversed(shares), strict=True):
            d = d.plus(share - space.inner(y, d) / product, s)
        return d
