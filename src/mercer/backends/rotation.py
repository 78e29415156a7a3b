"""K = Q B Q' with a narrow band B, where Q is only ever applied to a few vectors.

Forming Q costs as much as finding B. Where no more than a few products with it are wanted (the
answers of a path of linear systems, say), the reflections it is made of serve as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer._types import Array


class Rotation(ABC):
    """Q and B of K = Q B Q'.

    Attributes
    ----------
    lower : (n, width + 1) float64
        lower[j, k] = B[j + k, j]; zero where j + k >= n.
    width : int
        Half band width.
    """

    lower: Array
    width: int

    @abstractmethod
    def onto(self, V: Array) -> Array:
        """Give Q'V."""

    @abstractmethod
    def back(self, Z: Array) -> Array:
        """Give Q Z."""


@dataclass(frozen=True, eq=False)
class Formed(Rotation):
    """A rotation whose matrix is known."""

    Qt: Array
    lower: Array
    width: int

    def onto(self, V: Array) -> Array:
        """Multiply."""
        return np.asarray(self.Qt @ V)

    def back(self, Z: Array) -> Array:
        """Multiply by the transpose."""
        return np.asarray(self.Qt.T @ Z)


@dataclass(frozen=True, eq=False)
class Reflected(Rotation):
    """Q = H_1 H_2 .. with H_s = I - V T V', which changes rows from (s + 1) width on.

    Attributes
    ----------
    vectors : (n, n) array
        Rows of V' of step s are rows s width + [0, width), columns from (s + 1) width on.
    factors : (steps, width, width) array
        T of each step.
    """

    vectors: Array
    factors: Array
    lower: Array
    width: int

    def onto(self, V: Array) -> Array:
        """Apply the reflections one after the other."""
        out = np.array(V, dtype=np.float64, order="C")
        for step, T in enumerate(self.factors):
            self._reflect(out, step, T.T)
        return out

    def back(self, Z: Array) -> Array:
        """Apply them in the other order."""
        out = np.array(Z, dtype=np.float64, order="C")
        for step in range(len(self.factors) - 1, -1, -1):
            self._reflect(out, step, self.factors[step])
        return out

    def _reflect(self, out: Array, step: int, T: Array) -> None:
        first = step * self.width
        start = first + self.width
        Vt = self.vectors[first:start, start:]
        out[start:] -= Vt.T @ (T @ (Vt @ out[start:]))
