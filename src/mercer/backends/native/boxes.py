"""Box programmes for the compiled core: plain contiguous arrays in, answers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer import _native
from mercer.array_types import Array
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import Poll
from mercer.resources import call_threads

_STEPS_PER_VARIABLE = 2.0  # a guess, to tell whether a second thread is worth waking


def box_qps(
    K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
) -> list[BoxAnswer]:
    """Run the compiled loop on a stored float32 or float64 matrix.

    With a float32 matrix the gradient is kept in float32, too, and the one returned has its
    accuracy: about 1e-7 of its largest change, times the square root of the number of steps.
    """
    if len(K) > 1 and K.strides[1] != K.itemsize:
        K = np.ascontiguousarray(K)
    arrays = [_arrays(box) for box in boxes]
    work = _STEPS_PER_VARIABLE * sum(float(len(box.gradient)) ** 2 for box in boxes)
    answers = _native.box_qps(K, arrays, tol, max_iter, poll, call_threads(work))
    return [BoxAnswer(*answer) for answer in answers]


def box_paths(
    K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
) -> list[BoxPathAnswer]:
    """Solve the paths in compiled code, on a stored float32 or float64 matrix."""
    if len(K) > 1 and K.strides[1] != K.itemsize:
        K = np.ascontiguousarray(K)
    arrays = [_path_arrays(path) for path in paths]
    work = _STEPS_PER_VARIABLE * sum(
        len(path.steps) * float(len(path.box.gradient)) ** 2 for path in paths
    )
    answers = _native.box_chains(K, arrays, tol, max_iter, poll, call_threads(work))
    return [
        BoxPathAnswer(
            b.reshape(len(path.steps), len(path.box.gradient)),
            gradient.reshape(len(path.steps), len(path.box.gradient)),
            offsets.reshape(len(path.steps), len(path.totals)),
            values.reshape(len(path.steps), len(path.evaluation_rows)),
            np.array(iterations, dtype=np.int64),
            violation,
        )
        for path, (b, gradient, offsets, values, iterations, violation) in zip(
            paths, answers, strict=True
        )
    ]


def _path_arrays(path: BoxPath) -> tuple[Any, ...]:
    return (
        *_arrays(path.box),
        np.ascontiguousarray(path.totals, dtype=np.float64),
        [(s.bound, s.epsilon, s.shift, s.total, s.start) for s in path.steps],
        np.ascontiguousarray(path.evaluation_rows, dtype=np.int64),
    )


def _arrays(box: Box) -> tuple[Any, ...]:
    numbers = (box.gradient, box.start, box.lower, box.upper, box.epsilon, box.shift)
    indices = (box.group, box.rows)
    return (
        *(None if v is None else np.ascontiguousarray(v, dtype=np.float64) for v in numbers),
        *(None if v is None else np.ascontiguousarray(v, dtype=np.int64) for v in indices),
    )
