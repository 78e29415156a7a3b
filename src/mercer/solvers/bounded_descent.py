"""Bounded quasi-Newton descent over logarithms of parameters, from several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from mercer.array_types import Array
from mercer.solvers.base import Status, Watch

# --- bounded descent -----------------------------------------------------------------------------
#
# Parameters by a quasi-Newton descent within bounds, from several starts.

_SAME = 1e-8  # values that differ by less are the same: one part in 10^8 of an error
_UNUSABLE = 1e3  # above any value: where K + penalty cannot be factored

Measure = Callable[[Array], tuple[float, Array]]
"""Returns a value and its gradient; infinite where there is none."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Where the descents ended.

    Attributes
    ----------
    best : (p,) array
        The lowest place, and the flattest among places of that value.
    status : Status
        Why they ended.
    steps : int
        Steps of all starts together.
    detail : str
        How many starts there were, if there were several.
    """

    best: Array
    status: Status
    steps: int
    detail: str


def bounded_descent(
    problem: BoundedSearch, measure: Measure, watch: Watch, tol: float, max_iter: int, starts: Array
) -> Descent:
    """Descend from each start by L-BFGS-B; the best of all is kept.

    Parameters
    ----------
    problem : BoundedSearch
        The bounds.
    measure : callable
        The function and its gradient.
    watch : Watch
        The clock.
    tol : float
        What the largest slope that does not point out of the bounds may be.
    max_iter : int
        Largest number of steps of one start.
    starts : (k, p) array
        Where to start from.
    """
    way = BestSeen(problem, measure, watch, starts[0])
    ends: list[tuple[float, bool]] = []
    bounds = list(zip(problem.lower, problem.upper, strict=True))
    options: Any = {"gtol": 0.5 * tol, "ftol": 1e-14, "maxls": 40}
    ways: Any = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "callback": way.step}

    search: Any = minimize

    def descend(begin: Array, most: int) -> tuple[float, bool]:
        found = search(way, begin, options={**options, "maxiter": most}, **ways)
        return float(found.fun), bool(found.status == 1)

    try:
        for begin in starts:
            ends.append(descend(begin, max_iter))
        left = max_iter * len(starts) - way.steps
        if way.steepest > tol and not min(ends)[1] and left > 0:
            descend(way.best, left)  # with nothing remembered: what is, misled it
    except _StopError:
        pass
    status = way.status(tol, limited=min(ends)[1] if ends else False)
    detail = f"best of {len(ends)} starts" if len(ends) > 1 else ""
    return Descent(way.best, status, max(1, way.steps), detail)


class _StopError(Exception):
    """A limit was reached, or the callback asked to stop."""


@dataclass
class BestSeen:
    """The function to be minimised, and the best place seen.

    Attributes
    ----------
    problem : BoundedSearch
        The bounds.
    measure : callable
        The function.
    watch : Watch
        The clock.
    best : (p,) array
        Where it is flattest among places of the lowest value.
    count, steps : int
        How often it was measured, and how many steps were taken.
    lowest : float
        The lowest value.
    value, steepest : float
        The value at the best place, and its largest slope.
    """

    problem: BoundedSearch
    measure: Measure
    watch: Watch
    best: Array
    count: int = 0
    steps: int = 0
    lowest: float = np.inf
    value: float = np.inf
    steepest: float = np.inf

    def __call__(self, logs: Array) -> tuple[float, Array]:
        """Measure, remember, and ask whether to go on."""
        value, gradient = np.inf, np.zeros_like(logs)
        with self.watch.keeping(lambda: np.isfinite(self.lowest)):
            value, gradient = self.measure(logs)
        if self.watch.stopped:
            raise _StopError
        if not np.isfinite(gradient).all():  # from there no step leads anywhere
            value, gradient = np.inf, np.zeros_like(gradient)
        self.count += 1
        shown = float(np.abs(self.problem.uphill(logs, gradient)).max())
        self.lowest = min(self.lowest, value)
        low = value <= self.lowest + _SAME
        if low and (self.value > self.lowest + _SAME or shown < self.steepest):
            self.value, self.best, self.steepest = value, logs.copy(), shown
        if self.watch.tick(self.count, shown):
            raise _StopError
        return (value, gradient) if np.isfinite(value) else (_UNUSABLE, gradient)

    def step(self, logs: Array) -> None:
        """Count a step."""
        self.steps += 1

    def status(self, tol: float, limited: bool) -> Status:
        """Say why it ended."""
        if self.watch.stopped:
            return self.watch.stopped
        if not np.isfinite(self.lowest):
            return Status.NOT_DEFINITE
        if self.steepest <= tol:
            return Status.SOLVED
        return Status.ITERATION_LIMIT if limited else Status.INACCURATE


# --- bounded -------------------------------------------------------------------------------------
#
# What searches for parameters share: logarithms between bounds, and where to start.

FLAT = 1e-4  # slopes of the log-likelihood of one row up to this count as none


class BoundedSearch:
    """A function of numbers between bounds, to be minimised from several starts.

    Attributes
    ----------
    lower, upper : (p,) array
        Bounds.
    starts : (k, p) array
        Where to start from.
    """

    lower: Array
    upper: Array
    starts: Array

    def uphill(self, logs: Array, gradient: Array) -> Array:
        """Return the gradient without what only points out of the bounds."""
        at_bound = ((logs <= self.lower) & (gradient > 0)) | ((logs >= self.upper) & (gradient < 0))
        return np.where(at_bound, 0.0, gradient)

    def at_bounds(self, logs: Array) -> Array:
        """Return the numbers with those that are at a bound, but for rounding, put there."""
        rounding = 1e-12 * (1.0 + np.abs(logs))
        near = np.where(logs <= self.lower + rounding, self.lower, logs)
        return np.where(logs >= self.upper - rounding, self.upper, near)
