"""Which mistake a perceptron with a budget forgets, to make room for a new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array


class Removal(ABC):
    """A rule that picks one of the mistakes remembered."""

    @abstractmethod
    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the place of one to forget: coefficients (m, k), steps of entry, k(x, x)."""


@dataclass(frozen=True)
class Oldest(Removal):
    """Forget what was learned first: what is left is that of a window on the stream."""

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the one with the earliest step."""
        return int(np.argmin(age))


@dataclass(frozen=True)
class Smallest(Removal):
    """Forget what changes the function least: the smallest |coef|^2 k(x, x), the oldest first."""

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Return the one of the smallest norm."""
        norms = np.square(coef).sum(axis=1) * squares
        return int(np.lexsort((age, norms))[0])


@dataclass(frozen=True)
class AtRandom(Removal):
    """Forget any: the one rule that a stream cannot be arranged against.

    Parameters
    ----------
    seed : int
        With the number of the step, it decides.
    """

    seed: int = 0

    def pick(self, coef: Array, age: Array, squares: Array, step: int) -> int:
        """Draw one; the same at the same step."""
        return int(np.random.default_rng((self.seed, step)).integers(len(coef)))
