"""What slack may cost at most, and what targets are measured in.

A coefficient of the size of `HARDEST`, where max k(x, x) is not small, belongs to a margin so thin,
below 10^-6 of the longest feature vector, that rounding of the kernel hides it. So a finite weight
above it is taken as it: more would change the answer by less than rounding. With an infinite weight
solvers stop there, and say that the data cannot be separated.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, ShiftedGram

HARDEST = 1e12


def bounded(gram: Gram, C: Array) -> Array:
    """Return the weights, the finite ones at most `HARDEST`."""
    C = np.asarray(C, dtype=np.float64)
    if not C.max(initial=0.0) >= HARDEST:
        return C
    # in units of the kernel: with data on a small scale a large C may be meant as it is
    with np.errstate(over="ignore", divide="ignore"):
        most = HARDEST * np.maximum(1.0, 1.0 / np.abs(gram.diag().max(initial=0.0)))
    return np.where(np.isinf(C), np.inf, np.minimum(C, most))


def slackened(gram: Gram, C: Array) -> Gram:
    """Return the Gram with what squared slack of these weights adds to its diagonal."""
    with np.errstate(over="ignore", divide="ignore"):
        shift = 0.5 / bounded(gram, C)
    return ShiftedGram(gram, np.minimum(shift, np.finfo(float).max))


def spread_of(targets: Array) -> float:
    """Return what a tolerance in units of y is relative to where y spreads by less than a unit."""
    spread = float(np.ptp(targets)) if len(targets) else 0.0
    return min(1.0, spread) or 1.0
