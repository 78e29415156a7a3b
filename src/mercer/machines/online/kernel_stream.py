"""A perceptron of a kernel between two calls: its mistakes, and their coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.expression import Expression
from mercer.machines.online.stream import Stream, unprepared
from mercer.points import is_objects, is_sparse, row_count, take
from mercer.resources import rows_at_once
from mercer.solvers.online.kernel_perceptron import Memory

_BLOCK = 1 << 20  # entries of K evaluated together
_ROWS = 512
_VOTES = 4  # arrays of a block: entries, terms, their sums, and who wins


class MemoryStream(Stream):
    """Functions with a coefficient for each mistake.

    Attributes
    ----------
    memory : Memory
        The coefficients.
    """

    memory: Memory

    @property
    def steps(self) -> int:  # type: ignore[override]
        """Rows seen."""
        return self.memory.steps

    @property
    def mistakes(self) -> int:  # type: ignore[override]
        """Mistakes made."""
        return self.memory.mistakes

    def refuse(self, answer: str) -> None:
        """Means need all mistakes, votes one by one."""
        merged = answer == "voted" and not self.memory.one_by_one
        if merged or (answer != "last" and self.memory.budget is not None):
            raise ValueError(unprepared(answer))

    @property
    def forgotten(self) -> int:  # type: ignore[override]
        """Mistakes forgotten."""
        return self.memory.forgotten

    def block(self, X: Points) -> Array:
        """Compare rows with the mistakes: (n, m)."""
        raise NotImplementedError

    def product(self, X: Points, coef: Array) -> Array:
        """Return the functions of new rows, without constants."""
        return np.asarray(self.block(X) @ coef)

    def scores(self, X: Points, answer: str) -> Array:
        """Multiply, or count votes."""
        if answer == "voted":
            votes = self._votes(X)
            return votes[:, [1]] - votes[:, [0]] if self.memory.coef.shape[1] == 1 else votes
        averaged = answer == "averaged"
        coef, bias = self.memory.mean if averaged else (self.memory.coef, self.memory.bias)
        if not len(coef):
            return np.tile(bias, (row_count(X), 1))
        return self.product(X, np.ascontiguousarray(coef)) + bias

    def constants(self, answer: str) -> Array:
        """Return the constants."""
        return self.memory.mean[1] if answer == "averaged" else self.memory.bias

    def _votes(self, X: Points) -> Array:
        """Let every function since the first vote, as often as it survived: (n, classes)."""
        coef, k = self.memory.coef, self.memory.coef.shape[1]
        found = np.zeros((row_count(X), max(k, 2)))
        if not len(coef):
            return found
        survived = np.diff(np.append(self.memory.age, self.memory.steps)).astype(np.float64)
        biases = np.cumsum(coef, axis=0) if self.memory.has_bias else np.zeros_like(coef)
        height = rows_at_once(coef.size, max(1, _BLOCK // coef.size), arrays=_VOTES)
        for first in range(0, len(found), height):
            part = slice(first, first + height)
            K = self.block(take(X, part))
            scores = np.cumsum(K[:, :, None] * coef, axis=1) + biases
            if k == 1:
                sides = (scores[:, :, 0] < 0, scores[:, :, 0] > 0)
                found[part] = np.column_stack([side @ survived for side in sides])
            else:
                winner = scores.argmax(axis=2)
                found[part] = np.column_stack([(winner == c) @ survived for c in range(k)])
        return found / max(self.memory.steps, 1)


@dataclass(eq=False)
class KernelStream(MemoryStream):
    """Mistakes as rows, beside their coefficients."""

    expression: Expression
    points: Points
    memory: Memory
    longest: float = 0.0

    def learn(self, X: Points, codes: Array) -> int:
        """Compare a block with the mistakes so far and with itself, then walk over it."""
        squares = choose_backend().diagonal(self.expression, X, np.float64)
        bad = np.flatnonzero(~np.isfinite(squares))
        if len(bad):
            return int(bad[0])
        first, n = 0, len(codes)
        while first < n:
            width = 1 + len(self.memory.coef)
            height = rows_at_once(width, min(_ROWS, max(1, _BLOCK // width)))
            part = slice(first, min(n, first + height))
            self._learn_block(take(X, part), codes[part], squares[part])
            first = part.stop
        return -1

    def _learn_block(self, X: Points, codes: Array, squares: Array) -> None:
        held, rows = len(self.memory.coef), len(codes)
        columns = joined(self.points, X) if held else X
        K = choose_backend().pairs(self.expression, X, columns, np.float64).dense()
        memory, points = self.memory.grown(squares), self.points
        if memory.learn(K, np.arange(held, held + rows), codes):
            kept = memory.used
            memory, points = memory.only(kept), take(columns, kept)
        else:
            memory = memory.only(np.arange(held))
        longest = max(self.longest, float(squares.max(initial=0.0)))
        self.memory, self.points, self.longest = memory, points, longest  # at once: Ctrl-C

    def block(self, X: Points) -> Array:
        """Evaluate the kernel."""
        return choose_backend().pairs(self.expression, X, self.points, np.float64).dense()

    def product(self, X: Points, coef: Array) -> Array:
        """Multiply without storing the block."""
        return choose_backend().pairs(self.expression, X, self.points, np.float64).matmul(coef)


@dataclass(eq=False)
class GivenStream(MemoryStream):
    """Mistakes as row numbers of a given matrix; what is new comes compared with all of them."""

    rows: Array
    memory: Memory
    longest: float = 0.0

    def learn(self, X: Points, codes: Array) -> int:
        """Refuse: new rows have no columns in a given matrix."""
        raise NotImplementedError("a precomputed matrix has no room for new rows")

    def block(self, X: Points) -> Array:
        """Take the columns of the mistakes."""
        return np.asarray(X[:, self.rows], dtype=np.float64)


def joined(first: Points, second: Points) -> Points:
    """Put rows below rows."""
    if is_objects(first):
        return np.concatenate([first, second])
    if is_sparse(first) or is_sparse(second):
        return sparse.csr_array(sparse.vstack([first, second], format="csr"))
    return np.concatenate([first, second])
