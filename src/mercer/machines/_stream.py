"""What a perceptron keeps between two calls: here, linear functions of the columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer._points import is_sparse
from mercer._types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.rules import Rules

_ENTRIES = 1 << 22  # walked over between two chances for Ctrl-C


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
    def scores(self, X: Points, answer: str) -> Array:
        """Score rows by the last functions, by their mean, or by votes: (n, k)."""

    @abstractmethod
    def constants(self, answer: str) -> Array:
        """Give the constants of those functions: (k,)."""


@dataclass(eq=False)
class LinearStream(Stream):
    """One weight per column and function: memory does not grow."""

    rules: Rules
    steps: int = 0
    mistakes: int = 0
    longest: float = 0.0
    forgotten: int = 0

    @classmethod
    def empty(cls, d: int, k: int, has_bias: bool, averaged: bool) -> LinearStream:
        """Give functions that are zero."""
        late = (np.zeros((d, k)), np.zeros(k)) if averaged else (None, None)
        return cls(Rules(np.zeros((d, k)), np.zeros(k), has_bias, *late))

    def learn(self, X: Points, codes: Array) -> int:
        """Walk in chunks: a stream that is interrupted has learned a whole number of rows."""
        n = len(codes)
        filled = X.nnz if is_sparse(X) else X.size
        height = max(1, n * _ENTRIES // max(1, filled))
        if n <= height:
            return self._walk(X, codes)
        if not np.isfinite((X.data if is_sparse(X) else X).sum()):
            bad = self._first_bad(X)
            if bad >= 0:
                return bad
        for first in range(0, n, height):
            part = slice(first, first + height)
            bad = self._walk(X[part], codes[part])
            if bad >= 0:
                return first + bad
        return -1

    def _walk(self, X: Points, codes: Array) -> int:
        verb = choose_backend().perceptron
        walked = verb(X, codes, None, self.rules, float(self.steps), False)
        if walked.bad >= 0:
            return walked.bad
        self.steps += len(codes)
        self.mistakes += walked.mistakes
        self.longest = max(self.longest, walked.longest)
        return -1

    def _first_bad(self, X: Points) -> int:
        values = X.data if is_sparse(X) else X
        bad = np.flatnonzero(~np.isfinite(values).reshape(values.shape))
        if not len(bad):
            return -1
        if is_sparse(X):
            return int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        return int(bad[0] // X.shape[1])

    def scores(self, X: Points, answer: str) -> Array:
        """Multiply."""
        w, b = self.functions(answer)
        return np.asarray(X @ w + b)

    def constants(self, answer: str) -> Array:
        """Give the constants."""
        return self.functions(answer)[1]

    def functions(self, answer: str) -> tuple[Array, Array]:
        """Give weights (d, k) and constants (k,)."""
        rules, steps = self.rules, max(self.steps, 1)
        if answer == "last":
            return rules.weights, rules.bias
        if rules.late is None or rules.late_bias is None:
            raise ValueError(
                f"Perceptron: answer={answer!r} was set after the machine began; fit it again"
            )
        return rules.weights - rules.late / steps, rules.bias - rules.late_bias / steps
