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

_CACHED = 1 << 18  # entries of W that are read at a time, so that two columns read them once


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

    def lent(self, A: Array) -> Any:
        """Return what is here, there; not to be written to."""
        return A

    def numbers(self, index: Array) -> Any:
        """Return numbers of rows, to take them by."""
        return index

    def get(self, A: Any) -> Array:
        """Return what is there in the memory of the processor."""
        return np.asarray(A)

    def turned(self, A: Any) -> Any:
        """Return the transpose, its rows unbroken."""
        return np.ascontiguousarray(A.T)

    def squared_lengths(self, W: Any) -> Array:
        """Return the sums of squares of columns, in the memory of the processor."""
        return np.asarray(np.einsum("ij,ij->j", W, W))

    def rounded(self, A: Any) -> Any:
        """Return a copy in float32."""
        return A.astype(np.float32)

    def take_off(self, W: Any, V: Any, out: Any) -> None:
        """Subtract W W'V from `out`, for many columns W, in float32 or float64."""
        step = max(1, _CACHED // W.shape[1])
        parts = [slice(first, first + step) for first in range(0, len(W), step)]
        V = V.astype(W.dtype, copy=False)
        inner = np.zeros((W.shape[1], V.shape[1]))
        for part in parts:
            inner += W[part].T @ V[part]
        inner = inner.astype(W.dtype, copy=False)
        for part in parts:
            out[part] -= W[part] @ inner


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
