"""Up to a local maximum: fixed-point steps while they help, then Newton's with a search.

Fixed-point steps take no care of heights and may go in circles on rows that are no mixture of
independent sources. Where they no longer help, steps of Newton, turned uphill and shortened until
they rise, come to a point without slope and, where second derivatives can be had, without a way up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.solvers.base import Status, Watch
from mercer.solvers.independent.landscapes import Landscape, Place

PATIENCE = 10  # fixed-point steps in which the slope must fall by a tenth
RISING = 1e-6  # second derivatives above lead upwards, those below may be rounding
_FALL = 0.9
_LONGEST = 0.5  # radians of a step of Newton's
_HALVINGS = 30
_ROUNDING = 1e-13  # of J: steps within it are judged by their slope


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where a climb ended, why, and after how many steps."""

    place: Place
    status: Status
    steps: int


def climb(
    land: Landscape, start: Array, tol: float, max_iter: int, watch: Watch, done: int = 0
) -> Ascent:
    """Climb from a point.

    Parameters
    ----------
    land : Landscape
        J and its derivatives.
    start : Array
        A rotation or a unit vector.
    tol : float
        The largest derivative that counts as none.
    max_iter : int
        Most steps.
    watch : Watch
        Time limit and callback.
    done : int
        Steps before these, for the record.
    """
    here = land.at(start)
    best, since, newton = np.inf, 0, False
    for step in range(max_iter + 1):
        if here.steepness <= tol:
            up = way_up(land.curvature(here))
            if up is None:
                return Ascent(here, Status.SOLVED, step)
            newton, rise = True, up
        elif newton:
            rise = _uphill(here.slope, land.curvature(here))
        if watch.tick(done + step, here.steepness):
            return Ascent(here, watch.stopped or Status.STOPPED, step)
        if step == max_iter:
            break
        if not newton:
            since = 0 if here.steepness < _FALL * best else since + 1
            best = min(best, here.steepness)
            newton = since >= PATIENCE
            here = land.at(land.fixed_step(here))
            continue
        found = _search(land, here, rise)
        if found is None:
            return Ascent(here, Status.INACCURATE, step)
        here = found
    return Ascent(here, Status.ITERATION_LIMIT, max_iter)


def way_up(curvature: Array) -> Array | None:
    """Return the steepest direction in which a point without slope is no maximum; None if it is.

    Where only the diagonal is known, nothing is said: None.
    """
    if curvature.ndim == 1 or not curvature.size:
        return None
    values, vectors = np.linalg.eigh(curvature)
    return None if values[-1] <= RISING else np.asarray(_LONGEST * vectors[:, -1])


def _uphill(slope: Array, curvature: Array) -> Array:
    """Return Newton's step with every second derivative taken as that of a maximum."""
    if curvature.ndim == 1:
        step = slope / np.maximum(np.abs(curvature), RISING)
    else:
        values, vectors = np.linalg.eigh(curvature)
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), RISING))
    length = float(np.abs(step).max(initial=0.0))
    return np.asarray(step * min(1.0, _LONGEST / length) if length > 0 else step)


def _search(land: Landscape, here: Place, step: Array) -> Place | None:
    """Shorten the step until it rises; both ways, since a way up has two ends."""
    for halving in range(_HALVINGS):
        for sign in (1.0, -1.0):
            there = land.at(land.moved(here, sign * step * 0.5**halving))
            gain = float(here.signs @ (there.excess - here.excess))
            level = _ROUNDING * max(float(np.abs(here.excess).sum()), 1.0)
            if gain > level or (gain >= -level and there.steepness < 0.5 * here.steepness):
                return there
    return None
