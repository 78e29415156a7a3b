"""Sequential minimal optimisation, pair by pair, on rows of K: the specification of the loop.

With F = p - (K + diag(shift)) b, moving the pair (i, j) by t > 0 (b_i up, b_j down) lowers the
objective when F_i + up_i > F_j + low_j. The offsets carry the slope of |b| and, as infinities, the
box: a variable at its upper bound cannot rise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.array_types import Array
from mercer.backends.box_programs import Box, BoxAnswer
from mercer.backends.contract import Poll

_FLAT = 1e-12  # of the diagonal: curvature below it is rounding
_POLL_EVERY = 64


def smo(
    row: Callable[[int], Array],
    diag: Array,
    box: Box,
    tol: float,
    max_iter: int,
    poll: Poll | None = None,
) -> BoxAnswer:
    """Descend along pairs of largest second-order gain; `row(i)` gives K[i] for the variables."""
    b, F = box.start.astype(np.float64), box.gradient.astype(np.float64)
    epsilon = np.zeros(len(b)) if box.epsilon is None else box.epsilon
    shift = np.zeros(len(b)) if box.shift is None else box.shift
    diag = np.asarray(diag, dtype=np.float64) + shift
    members = _members(box.group, len(b))
    iteration, violation = 0, -np.inf
    for iteration in range(max_iter + 1):
        rising, falling = F + up(b, box.upper, epsilon), F + low(b, box.lower, epsilon)
        if not np.isfinite(F).all():
            return BoxAnswer(b, F, iteration, np.nan)
        violation = max((_apart(rising[m], falling[m]) for m in members), default=-np.inf)
        asked = poll is not None and iteration % _POLL_EVERY == 0 and poll(iteration, violation)
        if not violation > tol or asked or iteration == max_iter:
            break
        i, j, curvature = _best_pair(row, diag, rising, falling, members)
        if j < 0:  # only a K that is not finite leads here
            return BoxAnswer(b, F, iteration, np.nan)
        step = (rising[i] - falling[j]) / curvature
        top = 0.0 if b[i] < 0 < epsilon[i] else box.upper[i]
        bottom = 0.0 if b[j] > 0 < epsilon[j] else box.lower[j]
        step = min(step, top - b[i], b[j] - bottom)
        at_top, at_bottom = step == top - b[i], step == b[j] - bottom
        b[i] = top if at_top else b[i] + step
        b[j] = bottom if at_bottom else b[j] - step
        F -= step * (row(i).astype(np.float64) - row(j))
        F[i] -= step * shift[i]
        F[j] += step * shift[j]
    return BoxAnswer(b, F, iteration, violation)


def on_stored(K: Array, box: Box, tol: float, max_iter: int, poll: Poll | None) -> BoxAnswer:
    """Run `smo` on a stored matrix, or on the rows of it that the box speaks of."""
    if box.rows is not None:
        K = K[np.ix_(box.rows, box.rows)]
    return smo(lambda i: K[i], np.diagonal(K), box, tol, max_iter, poll)


def up(b: Array, upper: Array, epsilon: Array) -> Array:
    """Return what is added to F where b may rise; -inf where it may not."""
    return np.where(b < upper, np.where(b < 0, epsilon, -epsilon), -np.inf)


def low(b: Array, lower: Array, epsilon: Array) -> Array:
    """Return what is added to F where b may fall; +inf where it may not."""
    return np.where(b > lower, np.where(b > 0, -epsilon, epsilon), np.inf)


def _members(group: Array | None, n: int) -> list[Array]:
    if group is None:
        return [np.arange(n)] if n else []
    return [np.flatnonzero(group == g) for g in np.unique(group)]


def _apart(rising: Array, falling: Array) -> float:
    top, bottom = float(rising.max()), float(falling.min())
    return top - bottom if np.isfinite(top) and np.isfinite(bottom) else -np.inf


def _best_pair(
    row: Callable[[int], Array], diag: Array, rising: Array, falling: Array, members: list[Array]
) -> tuple[int, int, float]:
    """Give, over groups, the pair of largest gain whose first member violates the most."""
    best, pair = 0.0, (-1, -1, 1.0)
    for m in members:
        i = int(m[np.argmax(rising[m])])
        difference = rising[i] - falling[m]
        level = diag[i] + diag[m]
        curvature = np.maximum(level - 2.0 * row(i)[m], _FLAT * level)
        curvature = np.maximum(curvature, np.finfo(float).tiny)
        gain = np.where(difference > 0, difference**2 / curvature, 0.0)
        at = int(np.argmax(gain))
        if gain[at] > best:
            best, pair = float(gain[at]), (i, int(m[at]), float(curvature[at]))
    return pair
