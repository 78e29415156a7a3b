"""Directions from the last changes of place and gradient, in the metric of functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mercer.solvers.risk.preconditioned import HessianPreconditioner
from mercer.solvers.risk.space import Element, Space


class LBFGSMemory:
    """The last changes of place and gradient, and the direction they suggest.

    Parameters
    ----------
    space : Space
        Where.
    size : int
        Changes that are remembered.
    shape : Shape or None
        What is known of the curvature before any change was seen; looked at anew after 1, 2, 4, 8,
        ... steps. None for nothing.
    """

    def __init__(self, space: Space, size: int, shape: HessianPreconditioner | None = None) -> None:
        self._space, self._shape, self.steps = space, shape, 0
        self._undo: Callable[[Element], Element] | None = None
        self._changes: deque[tuple[Element, Element, float]] = deque(maxlen=size)
        self._last: tuple[Element, Element] | None = None

    def __call__(self, u: Element, g: Element) -> Element:
        """Return where to go from u with gradient g."""
        space = self._space
        if self._last is not None:
            s, y = space.change(u, self._last[0]), space.change(g, self._last[1])
            product = space.inner(s, y)
            if product > 1e-12 * space.inner(y, y) ** 0.5 * space.inner(s, s) ** 0.5:
                self._changes.append((s, y, product))
        self._last = u, g
        if self._shape is not None and self.steps & (self.steps - 1) == 0:
            self._undo = self._shape.at(u)
        self.steps += 1
        return self._direction(g)

    def _direction(self, g: Element) -> Element:
        space, d = self._space, g.times(-1.0)
        if not self._changes:
            return self._first(d)
        shares = []
        for s, y, product in reversed(self._changes):
            share = space.inner(s, d) / product
            shares.append(share)
            d = d.plus(-share, y)
        s, y, product = self._changes[-1]
        if self._undo is None:
            d = d.times(product / space.inner(y, y))
        else:
            d = self._undo(d).times(product / space.inner(y, self._undo(y)))
        for (s, y, product), share in zip(self._changes, reversed(shares), strict=True):
            d = d.plus(share - space.inner(y, d) / product, s)
        return d

    def _first(self, d: Element) -> Element:
        """Go as far as the shape says, or as the steepest curvature lets it be."""
        if self._undo is not None:
            return self._undo(d)
        space, problem = self._space, self._space.problem
        most = problem.loss.steepest(problem.columns) * float(
            problem.weights @ (space.lengths**2 + space.scale)
        )
        return d.times(1.0 / (problem.penalty + most))
