"""The perceptron on rows of numbers, in NumPy: the specification of the compiled walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.perceptron_state import LinearFunctions, PassCounts
from mercer.points import is_sparse, to_dense


def perceptron_pass(
    X: Any,
    codes: Array,
    order: Array | None,
    rules: LinearFunctions,
    step: float,
    interruptible: bool,
) -> PassCounts:
    """Score each row, and where its class is not ahead add the row to its function."""
    numbers = np.arange(len(codes)) if order is None else order
    with np.errstate(over="ignore", invalid="ignore"):
        squares = X.multiply(X).sum(axis=1) if is_sparse(X) else np.square(X).sum(axis=1)
    lengths = np.asarray(squares, dtype=np.float64).ravel()[numbers]
    bad = np.flatnonzero(~np.isfinite(lengths))
    if len(bad):
        return PassCounts(0, 0.0, int(numbers[bad[0]]))
    mistakes = 0
    for k, i in enumerate(numbers):
        x = to_dense(X[[i]])[0]
        plus, minus = _wrong(x @ rules.weights + rules.bias, int(codes[i]))
        for c, sign in ((plus, 1.0), (minus, -1.0)):
            if c >= 0:
                _add(rules, x, c, sign, step + k)
        wrong = plus >= 0 or minus >= 0
        mistakes += wrong
        if rules.tally is not None:
            rules.tally[:] = (
                rules.tally[0] + 1.0,
                rules.tally[1] + wrong,
                max(rules.tally[2], lengths[k]),
            )
    return PassCounts(mistakes, float(lengths.max(initial=0.0)), -1)


def _wrong(scores: Array, code: int) -> tuple[int, int]:
    """Return the function to raise and the one to lower; -1 for none. A tie is a mistake."""
    if len(scores) == 1:
        if (scores[0] if code == 1 else -scores[0]) > 0:
            return -1, -1
        return (0, -1) if code == 1 else (-1, 0)
    rival = rival_of(scores, code)
    return (-1, -1) if scores[code] > scores[rival] else (code, rival)


def rival_of(scores: Array, code: int) -> int:
    """Return the best of the other classes; of equals, the first."""
    others = scores.copy()
    others[code] = -np.inf
    best = int(np.argmax(others))
    return best if best != code else int(code == 0)


def _add(rules: LinearFunctions, x: Array, c: int, sign: float, step: float) -> None:
    rules.weights[:, c] += sign * x
    rules.bias[c] += sign * rules.has_bias
    if rules.late is not None and rules.late_bias is not None:
        rules.late[:, c] += sign * step * x
        rules.late_bias[c] += sign * step * rules.has_bias
