"""The engine on a stored K: compiled pair steps, all parts at once."""

from __future__ import annotations

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.build import descents_at_once
from mercer.solvers.base import Watch
from mercer.solvers.margin.descent import BoxState, Engine

_ROWS_AT_ONCE = 256  # summed in the type of K before float64 takes over


class StoredEngine(Engine):
    """Pair steps on a matrix.

    Parameters
    ----------
    K : (n, n) array
        float32 or float64.
    watch : Watch
        Told the steps of all runs together.
    limit : int
        Pair steps allowed for each programme.
    """

    def __init__(self, K: Array, watch: Watch, limit: int) -> None:
        super().__init__(watch, limit, float(np.finfo(K.dtype).eps))
        self.K = K

    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Run the compiled loop on all parts together, or on as many as the memory allows."""
        count = descents_at_once(self.K, max((len(part.b) for part in parts), default=1))
        for first in range(0, len(parts), count):
            self._descend(parts[first : first + count], tol)

    def _descend(self, parts: list[BoxState], tol: float) -> None:
        before = self.steps
        parts = [part for part in parts if part.steps < self.limit]
        if not parts:
            return
        left = self.limit - max(part.steps for part in parts)
        answers = choose_backend().box_qps(
            self.K,
            [part.box() for part in parts],
            tol,
            left,
            lambda steps, violation: self.watch.tick(before + steps, violation),
        )
        for part, answer in zip(parts, answers, strict=True):
            part.b, part.F, part.violation = answer.b, answer.gradient, answer.violation
            part.error, part.steps = np.inf, part.steps + answer.iterations
        self.steps += sum(answer.iterations for answer in answers)

    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Read the rows of the variables that moved; sums are in float64."""
        held = part.unwrapped
        product = rows_times(self.K, *part.on_base(changed, step))
        product = product if held.index is None else product[held.index]
        if held.shift is not None:
            product[changed] += held.shift[changed] * step
        return product


def rows_times(K: Array, points: Array, coef: Array) -> Array:
    """Return the rows `points` of K, each times its coefficient, summed in float64 over blocks.

    Row by row, so that none is copied; and by NumPy's own loops, because the threads of a BLAS
    wait for one another longer than such a sum takes when other work runs beside.
    """
    total, term = np.zeros(K.shape[1]), np.empty(K.shape[1], dtype=K.dtype)
    for first in range(0, len(points), _ROWS_AT_ONCE):
        deadline.check()
        few = slice(first, first + _ROWS_AT_ONCE)
        part = np.zeros(K.shape[1], dtype=K.dtype)
        for i, c in zip(points[few].tolist(), coef[few].astype(K.dtype), strict=True):
            np.multiply(K[i], c, out=term)
            np.add(part, term, out=part)
        total += part
    return total
