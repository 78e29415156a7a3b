"""The box of a programme as the sums of its groups leave it: a presolve that changes no answer."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.problems import BoxQP

_ROUNDING = 1e-13  # of a sum


def implied_bounds(problem: BoxQP) -> tuple[Array, Array]:
    """Return the box, shut or narrowed where the sum of a group says more than its bounds do.

    Shut where the sum leaves all of a group at one side. Narrowed where one variable has more room
    than all others together could balance: a row of weight 10^12 among rows of weight 1 would drown
    them in every sum of the solver.
    """
    lower, upper = problem.lower.copy(), problem.upper.copy()
    for m, total in zip(problem.members(), problem.totals, strict=True):
        low, high = float(lower[m].sum()), float(upper[m].sum())
        rounding = _ROUNDING * abs(total)
        if total <= low + rounding:
            upper[m] = lower[m]
        elif total >= high - rounding:
            lower[m] = upper[m]
        else:
            widest = int(np.argmax(upper[m] - lower[m]))
            row = np.arange(len(lower))[m][widest]
            lower[row], upper[row] = _balanced(lower[m], upper[m], widest, float(total))
    return lower, upper


def _balanced(lower: Array, upper: Array, widest: int, total: float) -> tuple[float, float]:
    """Return the bounds of one variable, once more as far out as all others can balance.

    So far out, they are never reached: what rests on a bound is as it was. Zero stays inside.
    """
    own = float(lower[widest]), float(upper[widest])
    low, high = float(np.delete(lower, widest).sum()), float(np.delete(upper, widest).sum())
    room = high - low
    if not (0.0 < 3.0 * room < own[1] - own[0] < np.inf):
        return own
    return (
        max(own[0], min(0.0, total - high - room)),
        min(own[1], max(0.0, total - low + room)),
    )
