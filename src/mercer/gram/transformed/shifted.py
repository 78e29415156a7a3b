"""K + diag(d): ridge, noise, slack on the diagonal. New points are not shifted."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, Unwrapped, written_out


class ShiftedGram(Gram):
    """A Gram with a diagonal added.

    Parameters
    ----------
    base : Gram
        The Gram to shift.
    shift : float or (n,) array
        What is added to the diagonal.
    """

    def __init__(self, base: Gram, shift: float | Array) -> None:
        self.base = base
        self.shift = np.broadcast_to(np.asarray(shift, dtype=np.float64), base.shape[:1])
        self.shape, self.dtype = base.shape, base.dtype
        self.valid = base.valid and bool((self.shift >= 0).all())

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    def diag(self) -> Array:
        """Shift the diagonal."""
        return self.base.diag() + self.shift

    def rows(self, index: Index) -> Array:
        """Shift rows."""
        block = np.array(self.base.rows(index))
        requested = np.arange(self.shape[0])[index]
        block[np.arange(len(requested)), requested] += self.shift[requested]
        return block

    def __matmul__(self, V: Array) -> Array:
        shift = self.shift if V.ndim == 1 else self.shift[:, None]
        return np.asarray(self.base @ V + shift * V)

    def dense(self) -> Array:
        """Return a new matrix, free to be overwritten by a factorisation."""
        matrix = written_out(self.base)
        matrix.flat[:: len(matrix) + 1] += self.shift
        return matrix

    def cross(self, Z: Points) -> Cross:
        """Return new points as they are."""
        return self.base.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand as the unshifted kernel does."""
        return self.base.expand(coef)

    def exact(self) -> Gram:
        """Do the same to the exact base."""
        return ShiftedGram(self.base.exact(), self.shift)

    def unwrapped(self) -> Unwrapped:
        """Add the shift to that of the base."""
        inner = self.base.unwrapped()
        shift = self.shift if inner.shift is None else inner.shift + self.shift
        return Unwrapped(inner.base, inner.index, shift)


def shifted(gram: Gram, shift: float | Array) -> Gram:
    """Return K + diag(shift), K left as it is held: solvers see the shift, and may divide by it."""
    return ShiftedGram(gram, shift)


@singledispatch
def with_diagonal(gram: Gram, shift: Array) -> Gram:
    """Return K + diag(shift), written into K where that is a sparse matrix."""
    return shifted(gram, shift) if np.any(shift) else gram
