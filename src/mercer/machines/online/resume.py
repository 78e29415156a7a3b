"""From the answer of a fit to a stream that can go on from there."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends.perceptron_state import LinearFunctions
from mercer.machines.online.stream import LinearStream
from mercer.problems import Separator
from mercer.solvers.online.kernel_perceptron import Memory


def linear_stream(
    value: Separator, bias: bool, averaged: bool, steps: int, longest: float
) -> LinearStream:
    """Go on with weights."""
    late: tuple[Array | None, Array | None] = (None, None)
    assert value.weights is not None and value.mean_weights is not None
    if averaged:
        late = (
            (value.weights - value.mean_weights) * steps,
            (value.intercept - value.mean_intercept) * steps,
        )
    tally = np.array([steps, value.mistakes, longest], dtype=np.float64)
    # copies: what `fit` handed back stays what it was
    rules = LinearFunctions(
        value.weights.copy(), value.intercept.copy(), bias, late[0], late[1], tally
    )
    return LinearStream(rules)


def memory_of(
    value: Separator, bias: bool, voted: bool, steps: int, squares: Array
) -> tuple[Memory, Array]:
    """Go on with mistakes; gives the memory and the rows that it is about."""
    memory = Memory(
        value.coef,
        value.intercept.copy(),
        bias,
        (value.coef - value.mean_coef) * steps,
        (value.intercept - value.mean_intercept) * steps,
        np.zeros(len(squares), dtype=np.int64),
        squares,
    )
    memory.steps, memory.mistakes, memory.forgotten = steps, value.mistakes, value.forgotten
    if voted:
        return _one_by_one(memory, value)
    rows, memory.one_by_one = memory.used, False
    return memory.only(rows), rows


def _one_by_one(memory: Memory, value: Separator) -> tuple[Memory, Array]:
    """Return a column to each mistake, in their order: votes are those of all functions so far."""
    rows, right, rival, step = value.log.T
    coef, numbers = np.zeros((len(rows), memory.coef.shape[1])), np.arange(len(rows))
    if coef.shape[1] == 1:
        coef[:, 0] = np.where(right == 1, 1.0, -1.0)
    else:
        coef[numbers, right], coef[numbers, rival] = 1.0, -1.0
    one = memory.only(rows)
    one.coef, one.late, one.age = coef, coef * step[:, None], step
    return one, rows
