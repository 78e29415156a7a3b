"""Box programmes that differ by factors: each starts where an earlier one ended.

This is what a grid over C, the width of the tube and nu asks of one kernel and one fold. The loop
here is the specification of the compiled one.
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
from mercer.backends.reference.smo import low, on_stored, up

_MOST_AT_BOUND = 0.5  # of the support vectors: with more, b is scaled with the bounds


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
