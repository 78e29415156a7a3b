"""State of a perceptron between calls of `partial_fit`, linear or with a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.contract import LinearFunctions
from mercer.expression import Expression
from mercer.gram.factored import over_features
from mercer.machines.perceptron.problem import Separator
from mercer.machines.perceptron.solvers import Memory
from mercer.resources import rows_at_once
from mercer.rows.points import is_objects, is_sparse, row_count, take

# --- stream --------------------------------------------------------------------------------------
#
# State of a perceptron between two calls: here, linear functions of the columns.


class Stream(ABC):
    """Functions that learn from rows one after the other.

    Attributes
    ----------
    steps, mistakes, forgotten : int
        Rows seen, mistakes made, mistakes that a budget made it forget.
    longest : float
        Largest k(x, x) so far.
    """

    steps: int
    mistakes: int
    forgotten: int
    longest: float

    @abstractmethod
    def learn(self, X: Points, codes: Array) -> int:
        """Learn from rows; give -1, or the first row that is not finite: then none was learned."""

    @abstractmethod
    def refuse(self, answer: str) -> None:
        """Raise if the state for a prediction was not kept."""

    @abstractmethod
    def scores(self, X: Points, answer: str) -> Array:
        """Score rows by the last functions, by their mean, or by votes: (n, k)."""

    @abstractmethod
    def constants(self, answer: str) -> Array:
        """Return the constants of those functions: (k,)."""


@dataclass(eq=False)
class LinearStream(Stream):
    """One weight per column and function: memory does not grow."""

    rules: LinearFunctions
    forgotten: int = 0

    @classmethod
    def empty(cls, d: int, k: int, has_bias: bool, averaged: bool) -> LinearStream:
        """Return functions that are zero."""
        late, late_bias = (np.zeros((d, k)), np.zeros(k)) if averaged else (None, None)
        rules = LinearFunctions(
            np.zeros((d, k)), np.zeros(k), has_bias, late, late_bias, np.zeros(3)
        )
        return cls(rules)

    @property
    def steps(self) -> int:  # type: ignore[override]
        """Rows seen."""
        return int(self._tally[0])

    @property
    def mistakes(self) -> int:  # type: ignore[override]
        """Mistakes made."""
        return int(self._tally[1])

    @property
    def longest(self) -> float:  # type: ignore[override]
        """Largest squared length."""
        return float(self._tally[2])

    @property
    def _tally(self) -> Array:
        assert self.rules.tally is not None  # streams count
        return self.rules.tally

    def learn(self, X: Points, codes: Array) -> int:
        """Walk; if that is interrupted, an integer of the first rows was learned."""
        verb = choose_backend().perceptron
        return int(verb(X, codes, None, self.rules, float(self._tally[0]), True).bad)

    def refuse(self, answer: str) -> None:
        """Means need the sums of late changes; votes need mistakes."""
        if answer != "last" and (self.rules.late is None or answer == "voted"):
            raise ValueError(unprepared(answer))

    def scores(self, X: Points, answer: str) -> Array:
        """Multiply."""
        w, b = self.functions(answer)
        return np.asarray(X @ w + b)

    def constants(self, answer: str) -> Array:
        """Return the constants."""
        return self.functions(answer)[1]

    def functions(self, answer: str) -> tuple[Array, Array]:
        """Return weights (d, k) and constants (k,)."""
        rules, steps = self.rules, max(self.steps, 1)
        if answer == "last":
            return rules.weights, rules.bias
        if rules.late is None or rules.late_bias is None:
            raise ValueError(unprepared(answer))
        return rules.weights - rules.late / steps, rules.bias - rules.late_bias / steps


@dataclass(eq=False)
class FeatureStream(LinearStream):
    """One weight per feature and function, where features stand for a kernel.

    Attributes
    ----------
    features : callable
        Maps rows to their features.
    """

    features: Callable[[Points], Array] = np.asarray

    def learn(self, X: Points, codes: Array) -> int:
        """Walk over the features of rows."""
        return super().learn(self.features(X), codes)

    def scores(self, X: Points, answer: str) -> Array:
        """Multiply features by weights."""
        scores = super().scores
        return over_features(lambda F: scores(F, answer), self.features, X, len(self.rules.weights))


def unprepared(answer: str) -> str:
    """Return a message that something was not kept."""
    return f"Perceptron: answer={answer!r} was set after the stream began; fit it again"


# --- kernel stream -------------------------------------------------------------------------------
#
# A perceptron of a kernel between two calls: its mistakes, and their coefficients.

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
    """Mistakes as rows, with their coefficients."""

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
    """Mistakes as row numbers of a given matrix; new rows come with their kernel values."""

    rows: Array
    memory: Memory
    longest: float = 0.0

    def learn(self, X: Points, codes: Array) -> int:
        """Raise: new rows have no columns in a given matrix."""
        raise NotImplementedError("a precomputed matrix cannot store new rows")

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


# --- resume --------------------------------------------------------------------------------------
#
# From the solution of a fit to a stream that continues it.


def linear_stream(
    value: Separator, bias: bool, averaged: bool, steps: int, longest: float
) -> LinearStream:
    """Continue with weights."""
    late: tuple[Array | None, Array | None] = (None, None)
    assert value.weights is not None and value.mean_weights is not None
    if averaged:
        late = (
            (value.weights - value.mean_weights) * steps,
            (value.intercept - value.mean_intercept) * steps,
        )
    tally = np.array([steps, value.mistakes, longest], dtype=np.float64)
    # copies: the result of `fit` stays unchanged
    rules = LinearFunctions(
        value.weights.copy(), value.intercept.copy(), bias, late[0], late[1], tally
    )
    return LinearStream(rules)


def memory_of(
    value: Separator, bias: bool, voted: bool, steps: int, squares: Array
) -> tuple[Memory, Array]:
    """Continue with mistakes; return the memory and its rows."""
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
