"""The descent that Newton's method and L-BFGS share: direction, a step that pays, the next look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mercer.solvers.base import Status, Watch
from mercer.solvers.risk.space import Element, Space

Direction = Callable[[Element, Element], Element]
"""Gives where to go from an element with its gradient."""

_PAYS = 1e-4  # share of the promised descent that a step must bring
_SHORTEST = 1e-10
_SHRINKS = 0.9
_ROUNDING = 1e-15
_CLOSE = 1e-6  # gradient, relative, up to which a descent stopped by rounding has arrived
_SMALL = 1e-7  # gradient, relative, a tenth of what certificates ask: above it, go on
_GAP = 1e-7  # of the objective: a tenth of what certificates ask
_FLAT = 1e-11  # descent still promised, relative, below which objectives no longer tell


@dataclass(frozen=True, eq=False)
class DescentResult:
    """Where a descent ended."""

    element: Element
    objective: float
    status: Status
    steps: int


def descend(
    space: Space, start: Element, direction: Direction, tol: float, max_iter: int, watch: Watch
) -> DescentResult:
    """Go downhill until the gradient is `tol` times what pulls on the function.

    Of a convex loss the duality gap, by which the answer will be judged, must be small, too.
    """
    at = DescentResult(start, space.objective(start), Status.ITERATION_LIMIT, 0)
    cut = True
    with watch.keeping():
        for place in _iterates(space, at, direction, tol, max_iter, watch):
            at = place
        cut = False
    return replace(at, status=Status.TIME_LIMIT) if cut else at


def _iterates(
    space: Space, at: DescentResult, direction: Direction, tol: float, max_iter: int, watch: Watch
) -> Iterator[DescentResult]:
    """Go from place to place; the last one says why it is the last."""
    for step in range(max_iter):
        u, value = at.element, at.objective
        g = space.gradient(u)
        size, scale = np.sqrt(max(space.inner(g, g), 0.0)), space.tolerance(u)
        left = size / scale if scale > 0 else 0.0
        ended = None
        if not np.isfinite(value) or not np.isfinite(left):
            ended = Status.NOT_FINITE
        elif left <= tol and _proven(space, value, size) and space.agrees(u, size):
            ended = Status.SOLVED
        elif watch.tick(step, left):
            ended = watch.stopped or Status.STOPPED
        if ended is not None:
            yield replace(at, status=ended)
            return
        d = direction(u, g)
        slope = space.inner(g, d)
        if not slope < 0:
            d, slope = g.times(-1.0), -(size**2)
        flat = -slope <= _FLAT * abs(value)
        ahead = _by_gradient(space, u, d, size) if flat else None
        if ahead is None and (not flat or left > _SMALL):
            ahead = _step(space, u, value, d, slope)
        if ahead is None:
            arrived = flat or left <= max(_CLOSE, tol)
            yield replace(at, status=Status.SOLVED if arrived else Status.INACCURATE)
            return
        at = DescentResult(*ahead, Status.ITERATION_LIMIT, step + 1)
        yield at


def _proven(space: Space, value: float, size: float) -> bool:
    """Return whether the gradient proves the objective, bent by the penalty at least."""
    problem = space.problem
    return not problem.loss.convex or size**2 <= _GAP * 2 * problem.penalty * abs(value)


def near(space: Space, u: Element, g: Element, tol: float) -> bool:
    """Return whether the gradient is small beside what pulls on the function."""
    return bool(space.inner(g, g) <= (tol * space.tolerance(u)) ** 2)


def _by_gradient(space: Space, u: Element, d: Element, size: float) -> tuple[Element, float] | None:
    """Take a whole step where the gradient shrinks by it: near the end it sees more digits."""
    ahead = u.plus(1.0, d)
    g = space.gradient(ahead)
    if space.inner(g, g) < (_SHRINKS * size) ** 2:
        return ahead, space.objective(ahead)
    return None


def _step(
    space: Space, u: Element, value: float, d: Element, slope: float
) -> tuple[Element, float] | None:
    """Halve the step until it pays; None where no step does, to rounding."""
    t = 1.0
    while t > _SHORTEST:
        ahead = u.plus(t, d)
        with np.errstate(over="ignore", invalid="ignore"):
            reached = space.objective(ahead)
        if reached <= value + _PAYS * t * slope:
            return ahead, reached
        if -t * slope <= _ROUNDING * abs(value):  # more than this nobody can see
            return None
        t *= 0.5
    return None
