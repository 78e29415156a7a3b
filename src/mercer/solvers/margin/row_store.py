"""Rows of K, kept while there is room: those not used for longest make room for new ones."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram.source import Source
from mercer.resources import rows_at_once
from mercer.solvers.margin.smo import rows_times

_ROWS_AT_ONCE = 256  # computed in one block
_ENTRIES_AT_ONCE = 1 << 23  # of K, computed and copied between two looks at the clock


class RowStore:
    """Products with columns of K, from rows that are kept or made anew.

    Parameters
    ----------
    source : Source
        Kernel and points.
    budget : int
        Bytes for kept rows.
    """

    def __init__(self, source: Source, budget: int) -> None:
        self.source = source
        size = np.dtype(source.dtype).itemsize * source.n
        self._size = max(1, size)
        self._pairs = source.pairs()
        most = max(1, min(_ROWS_AT_ONCE, _ENTRIES_AT_ONCE // max(1, source.n)))
        self._block = rows_at_once(source.n, most, arrays=2)
        self._begin(budget)

    def _begin(self, budget: int) -> None:
        self._most = int(min(self.source.n, budget // self._size))
        self._rows: Array | None = None
        self._slot = np.full(self.source.n, -1)
        self._point = np.zeros(self._most, dtype=np.int64)
        self._used = np.zeros(self._most, dtype=np.int64)
        self._clock, self._filled = 0, 0

    def shrink(self, budget: int) -> None:
        """Keep no more than so many bytes from now on; if more are allowed now, all rows go."""
        if self._most > budget // self._size:
            self._begin(budget)

    def product(self, points: Array, coef: Array) -> Array:
        """Return the columns `points` of K times `coef`: (n,), float64."""
        self._clock += 1
        total = np.zeros(self.source.n)
        if self._rows is not None:
            kept = self._slot[points]
            here = kept >= 0
            self._used[kept[here]] = self._clock
            total += rows_times(self._rows, kept[here], coef[here])
            points, coef = points[~here], coef[~here]
        for first in range(0, len(points), self._block):
            few = slice(first, first + self._block)
            block = self._pairs.rows(points[few])
            total += np.einsum("i,ij->j", coef[few].astype(block.dtype), block)
            self._keep(points[few], block)
        return total

    def _keep(self, points: Array, block: Array) -> None:
        """Keep as many of the rows as there is room for, without touching those just used."""
        slots = self._room(len(points))
        count = len(slots)
        if not count:
            return
        if self._rows is None:  # pages that are never written to take no memory
            self._rows = np.empty((self._most, self.source.n), dtype=self.source.dtype)
        self._slot[self._point[slots[self._used[slots] > 0]]] = -1
        self._rows[slots] = block[:count]
        self._point[slots], self._used[slots] = points[:count], self._clock
        self._slot[points[:count]] = slots

    def _room(self, count: int) -> Array:
        """Return slots: empty ones, or else those not used for longest."""
        if self._filled + count <= self._most:
            self._filled += count
            return np.arange(self._filled - count, self._filled)
        self._filled = self._most
        old = np.flatnonzero(self._used < self._clock)
        if count >= len(old):
            return old
        return np.sort(old[np.argpartition(self._used[old], count)[:count]])
