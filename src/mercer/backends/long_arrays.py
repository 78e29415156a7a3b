"""Arrays with one long side, where products with them are made, and operators on such.

On a processor they are NumPy arrays, on a card they stay there. Both know `@`, `.T`, slices and
arithmetic in place, so methods that keep many long vectors (Krylov spaces) are written once; what
differs is here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array


class LongArrays:
    """float64 arrays in the memory of the processor."""

    def empty(self, rows: int, n: int) -> Any:
        """Return an array that is to be filled."""
        from mercer.backends import choose_backend  # noqa: PLC0415  backends make such arrays

        return choose_backend().empty(rows, n)

    def has_room(self, size: float) -> bool:
        """Return whether so many bytes may be taken."""
        return True

    def put(self, A: Any) -> Any:
        """Return a copy of what is here, or there already, to be written to."""
        return np.array(A, dtype=np.float64)

    def get(self, A: Any) -> Array:
        """Return what is there in the memory of the processor."""
        return np.asarray(A)

    def turned(self, A: Any) -> Any:
        """Return the transpose, its rows unbroken."""
        return np.ascontiguousarray(A.T)

    def squared_lengths(self, W: Any) -> Array:
        """Return the sums of squares of columns, in the memory of the processor."""
        return np.asarray(np.einsum("ij,ij->j", W, W))


HERE = LongArrays()


@dataclass(frozen=True)
class Operator:
    """A symmetric matrix by its products.

    Attributes
    ----------
    apply : callable
        Returns A V in float64 for V (n, b); both lie where `arrays` says.
    arrays : LongArrays
        Where.
    """

    apply: Callable[[Any], Any]
    arrays: LongArrays = HERE

    def here(self) -> Operator:
        """Return the same for arrays in the memory of the processor."""
        if self.arrays is HERE:
            return self
        there = self.arrays
        return Operator(lambda V: there.get(self.apply(there.put(V))))
