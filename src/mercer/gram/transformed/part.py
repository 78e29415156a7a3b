"""Some points of a Gram, in any order, repeats allowed: a pair of classes, a fold."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram, Unwrapped, columns_of


class PartGram(Gram):
    """A Gram restricted to some of its points; nothing is copied.

    Parameters
    ----------
    base : Gram
        The Gram that is shared.
    index : (m,) int array
        Which of its points.
    """

    def __init__(self, base: Gram, index: Array) -> None:
        self.base = base
        self.index = np.ascontiguousarray(index, dtype=np.int64)
        self.shape = (len(index), len(index))
        self.dtype, self.valid = base.dtype, base.valid

    @property
    def nbytes(self) -> int:
        """Bytes that the base holds."""
        return self.base.nbytes

    def diag(self) -> Array:
        """Read the diagonal."""
        return self.base.diag()[self.index]

    def rows(self, index: Index) -> Array:
        """Read rows, and of these the columns that are here."""
        return self.base.rows(self.index[index])[:, self.index]

    def __matmul__(self, V: Array) -> Array:
        spread = np.zeros((self.base.shape[0], *np.shape(V)[1:]))
        np.add.at(spread, self.index, np.asarray(V, dtype=np.float64))
        return np.asarray((self.base @ spread)[self.index])

    def dense(self) -> Array:
        """Copy the part."""
        return self.base.dense()[np.ix_(self.index, self.index)]

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return PartCross(self.base.cross(Z), self.index)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points that are here."""
        coef = columns_of(coef)
        spread = np.zeros((self.base.shape[0], coef.shape[1]))
        np.add.at(spread, self.index, coef)
        return self.base.expand(spread)

    def exact(self) -> Gram:
        """Evaluate anew the points that are here, each once."""
        source = self.base.source
        if source is None:
            return PartGram(self.base.exact(), self.index)
        points, index = np.unique(self.index, return_inverse=True)
        if len(points) == len(self.index):
            return source.only(self.index).exact()
        return PartGram(source.only(points).exact(), index)

    def unwrapped(self) -> Unwrapped:
        """Take the points that are here from the base.

        A shift inside a part that repeats points would not be diagonal here: this part is then the
        base itself.
        """
        inner, index = self.base.unwrapped(), self.index
        if inner.shift is not None and len(np.unique(index)) < len(index):
            return Unwrapped(self, None, None)
        shift = None if inner.shift is None else inner.shift[index]
        return Unwrapped(inner.base, index if inner.index is None else inner.index[index], shift)


def restricted(gram: Gram, rows: Array) -> Gram:
    """Return K between some of its points, in any order, repeats allowed; nothing is copied."""
    return PartGram(gram, rows)


class PartCross(Cross):
    """New points against some of the training points."""

    def __init__(self, base: Cross, index: Array) -> None:
        self._base, self._index = base, index
        self.shape = (base.shape[0], len(index))

    def rows(self, index: Index) -> Array:
        """Read rows, and of these the columns that are here."""
        return self._base.rows(index)[:, self._index]

    def __matmul__(self, V: Array) -> Array:
        spread = np.zeros((self._base.shape[1], *np.shape(V)[1:]))
        np.add.at(spread, self._index, np.asarray(V, dtype=np.float64))
        return self._base @ spread
