"""Rows of K on demand, the least recently used forgotten first, under a byte budget."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.gram.base import Cross, Expansion, Gram
from mercer.gram.source import Source
from mercer.gram.storage.lazy import LazyGram


class CachedGram(Gram):
    """A row cache.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the rows.
    budget : int
        Bytes for kept rows; at least two rows are always kept, as a pair step needs two.

    Attributes
    ----------
    evaluated : int
        Rows computed so far.
    """

    source: Source

    def __init__(self, source: Source, budget: int) -> None:
        self.source = source
        self.shape = (source.n, source.n)
        self.dtype = source.dtype
        self.valid = source.valid
        self.evaluated = 0
        self._lazy = LazyGram(source)
        self._capacity = max(2, budget // max(1, source.n * np.dtype(source.dtype).itemsize))
        self._kept: OrderedDict[int, Array] = OrderedDict()

    def diag(self) -> Array:
        """Evaluate the diagonal."""
        return self._lazy.diag()

    def rows(self, index: Index) -> Array:
        """Read rows, computing the missing ones in one block."""
        wanted = np.atleast_1d(np.arange(self.shape[0])[index])
        if len(wanted) > self._capacity:
            return self._lazy.rows(wanted)  # would flush the cache and not fit anyway
        missing = np.array([i for i in wanted.tolist() if i not in self._kept], dtype=np.intp)
        if len(missing):
            self._keep(missing)
        for i in wanted.tolist():
            self._kept.move_to_end(i)
        block = np.stack([self._kept[i] for i in wanted.tolist()])
        while len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return block

    def _keep(self, missing: Array) -> None:
        # own copies: a view would keep the whole block alive after its neighbours are forgotten
        for i, row in zip(missing.tolist(), self._lazy.rows(missing), strict=True):
            self._kept[i] = row.copy()
        self.evaluated += len(missing)

    def __matmul__(self, V: Array) -> Array:
        return self._lazy @ V

    def dense(self) -> Array:
        """Evaluate everything, if the memory budget allows it."""
        return self._lazy.dense()

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return self.source.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points."""
        return self.source.expand(coef)
