"""Sequential minimal optimization of box QPs, one alone or a path of them, in NumPy.

This is the specification of the compiled loops.

With F = p - (K + diag(shift)) b, moving the pair (i, j) by t > 0 (b_i up, b_j down) lowers the
objective when F_i + up_i > F_j + low_j. The offsets carry the slope of |b| and, as infinities, the
box: a variable at its upper bound cannot rise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.backends.box_programs import (
    Box,
    BoxAnswer,
    BoxPath,
    BoxPathAnswer,
    PathStep,
    multiplier,
    with_sum,
)
from mercer.backends.contract import Poll

_FLAT = 1e-12  # of the diagonal: curvature below it is rounding
_POLL_EVERY = 64
_MOST_AT_BOUND = 0.5  # of the support vectors: with more, b is scaled with the bounds


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


# --- paths ---------------------------------------------------------------------------------------
#
# Box QPs that differ by factors: each starts from the solution of an earlier one. A grid over C,
# the width of the tube and nu asks this of one kernel and one fold.


def solve_path(
    K: Array, path: BoxPath, tol: float, max_iter: int, poll: Poll | None
) -> BoxPathAnswer:
    """Solve the steps of a path in turn."""
    own = np.arange(len(K)) if path.box.rows is None else path.box.rows
    cross = K[np.ix_(path.evaluation_rows, own)].astype(np.float64)
    answer = empty_answer(path)
    stopped = False

    def product(b: Array) -> Array:
        return np.asarray(K[np.ix_(own, own)].astype(np.float64) @ b)

    def asked(steps: int, violation: float) -> bool:
        nonlocal stopped
        stopped = stopped or (poll is not None and bool(poll(steps, violation)))
        return stopped

    for s, step in enumerate(path.steps):
        box = step_box(path, step, answer.b, product)
        done = on_stored(K, box, tol, max_iter, asked)
        answer.b[s], answer.gradient[s] = done.b, done.gradient
        answer.iterations[s] = done.iterations
        if stopped:
            break
        answer.violation[s] = done.violation
        answer.offsets[s] = offsets_of(box, done, len(path.totals))
        answer.values[s] = cross @ done.b
    return answer


def empty_answer(path: BoxPath) -> BoxPathAnswer:
    """Return the answer to a path of which no step was taken."""
    steps, m = len(path.steps), len(path.box.gradient)
    return BoxPathAnswer(
        np.zeros((steps, m)),
        np.zeros((steps, m)),
        np.zeros((steps, len(path.totals))),
        np.zeros((steps, len(path.evaluation_rows))),
        np.zeros(steps, dtype=np.int64),
        np.full(steps, np.inf),
    )


def step_box(
    path: BoxPath, step: PathStep, earlier: Array | None, product: Callable[[Array], Array]
) -> Box:
    """Return one programme of a path and where it starts.

    Parameters
    ----------
    path : BoxPath
        The path.
    step : PathStep
        Which programme.
    earlier : (steps, m) array or None
        Variables of the steps that were solved; None to start where the path does.
    product : callable
        Multiplies K between the rows of the path by variables.
    """
    base = path.box
    lower, upper = _times(step.bound, base.lower), _times(step.bound, base.upper)
    start = base.start
    if step.start >= 0 and earlier is not None:
        start = earlier[step.start]
        before = path.steps[step.start].bound
        low_end, high_end = _times(before, base.lower), _times(before, base.upper)
        used = start != 0
        at_low, at_high = used & (start == low_end), used & (start == high_end)
        if np.count_nonzero(at_low | at_high) > _MOST_AT_BOUND * np.count_nonzero(used):
            start = np.where(at_low, lower, start * (step.bound / before))
            start = np.where(at_high, upper, start)
    start = np.clip(start, lower, upper)
    groups = np.zeros(len(start), dtype=np.int64) if base.group is None else base.group
    for g, total in enumerate(path.totals):
        m = np.flatnonzero(groups == g)
        start[m] = with_sum(start[m], lower[m], upper[m], step.total * float(total))
    shift = None if base.shift is None else step.shift * base.shift
    F = base.gradient - product(start)
    return replace(
        base,
        gradient=F if shift is None else F - shift * start,
        start=start,
        lower=lower,
        upper=upper,
        epsilon=None if base.epsilon is None else step.epsilon * base.epsilon,
        shift=shift,
    )


def _times(factor: float, bounds: Array) -> Array:
    return np.asarray(factor * bounds)


def offsets_of(box: Box, done: BoxAnswer, groups: int) -> Array:
    """Return the multipliers of the sums where a descent ended."""
    epsilon = np.zeros(len(done.b)) if box.epsilon is None else box.epsilon
    rising = done.gradient + up(done.b, box.upper, epsilon)
    falling = done.gradient + low(done.b, box.lower, epsilon)
    group = np.zeros(len(done.b), dtype=np.int64) if box.group is None else box.group
    members = [group == g for g in range(groups)]
    return np.array([multiplier(rising[m], falling[m]) for m in members])
