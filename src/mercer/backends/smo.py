"""Sequential minimal optimisation in NumPy, on rows of K as they come: the specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import Array
from mercer.backends.contract import Poll


def smo(
    row: Any,
    diag: Array,
    linear: Array,
    lower: Array,
    upper: Array,
    start: Array,
    tol: float,
    max_iter: int,
    poll: Poll | None,
) -> tuple[Array, int, float]:
    """Sequential minimal optimisation; `row(i)` gives row i of K.

    With F = linear - K b, a pair (i, j) with b_i below its upper and b_j above its lower bound can
    improve the objective exactly when F_i > F_j. Take i with the largest F, then j by the largest
    second-order gain, and solve for the step along e_i - e_j inside the box.
    """
    b = np.array(start, dtype=np.float64)
    F = np.asarray(linear, dtype=np.float64).copy()
    for i in np.flatnonzero(b).tolist():
        F -= b[i] * row(i)
    violation = np.inf
    for iteration in range(max_iter + 1):
        rising, falling = np.where(b < upper, F, -np.inf), np.where(b > lower, F, np.inf)
        i = int(rising.argmax())
        violation = float(rising[i] - falling.min())
        asked = poll is not None and iteration % 64 == 0 and poll(iteration, violation)
        stopped = asked or iteration == max_iter
        if not violation > tol or stopped:
            break
        Ki = row(i)
        curvature = np.maximum(diag[i] + diag - 2.0 * Ki, 1e-12)
        difference = rising[i] - falling
        gain = np.where(difference > 0, difference**2 / curvature, -np.inf)
        j = int(np.argmax(gain))
        step = min((F[i] - F[j]) / curvature[j], upper[i] - b[i], b[j] - lower[j])
        at_upper, at_lower = step == upper[i] - b[i], step == b[j] - lower[j]
        b[i] = upper[i] if at_upper else b[i] + step
        b[j] = lower[j] if at_lower else b[j] - step
        F -= step * (Ki - row(j))
    return b, iteration, violation
