"""What a perceptron keeps between two calls: here, linear functions of the columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.perceptron_state import LinearFunctions
from mercer.gram.storage.factored import over_features


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
        """Raise where what an answer needs was not kept."""

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
        """Walk; if that is interrupted, a whole number of the first rows was learned."""
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
    return f"Perceptron: answer={answer!r} was set after the machine began; fit it again"
