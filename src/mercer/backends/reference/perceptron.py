"""The perceptron on rows of numbers, in NumPy: the specification of the compiled walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.contract import LinearFunctions, PassCounts
from mercer.rows.points import is_sparse, to_dense


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
        scores = x @ rules.weights + rules.bias
        wrong = not _is_ahead(scores, int(codes[i]))
        if wrong:
            learn_row(rules, x, scores, int(codes[i]), step + k)
        mistakes += wrong
        if rules.tally is not None:
            rules.tally[:] = (
                rules.tally[0] + 1.0,
                rules.tally[1] + wrong,
                max(rules.tally[2], lengths[k]),
            )
    return PassCounts(mistakes, float(lengths.max(initial=0.0)), -1)


def _is_ahead(scores: Array, code: int) -> bool:
    """Return whether the class of a row has the best score; a tie is a mistake."""
    if len(scores) == 1:
        return bool((scores[0] if code == 1 else -scores[0]) > 0)
    return bool(scores[code] > scores[rival_of(scores, code)])


def learn_row(rules: LinearFunctions, x: Array, scores: Array, code: int, step: float) -> None:
    """Add a row to the function of its class, and take it off that of its rival, if it has one.

    Parameters
    ----------
    rules : LinearFunctions
        What is changed.
    x : (d,) array
        The row.
    scores : (k,) array
        Its scores.
    code : int
        Its class.
    step : float
        How many rows were seen before.
    """
    plus, minus = _raised(scores, int(code))
    for c, sign in ((plus, 1.0), (minus, -1.0)):
        if c >= 0:
            _add(rules, x, c, sign, step)


def _raised(scores: Array, code: int) -> tuple[int, int]:
    if len(scores) == 1:
        return (0, -1) if code == 1 else (-1, 0)
    return code, rival_of(scores, code)


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
