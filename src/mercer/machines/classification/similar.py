"""Who is most alike: the search for neighbours by largest similarity instead of distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.deadline import check
from mercer.gram import Source
from mercer.machines.classification.nearest import (
    Found,
    MatrixSearch,
    NeighbourSearch,
    smallest,
)
from mercer.points import row_count
from mercer.resources import rows_at_once

_BLOCK = 2048  # rows looked at together, where the memory budget allows
_ARRAYS = 4  # of a block: similarities, keys, and two while they are sorted


@dataclass(frozen=True, eq=False)
class RowSimilarity(NeighbourSearch):
    """Rows and a kernel; similarities are computed by blocks and not stored.

    Attributes
    ----------
    source : Source
        The kernel and the training rows.
    """

    source: Source

    def among(self, count: int) -> Found:
        """Compare all training rows."""
        return self._most(self.source.X, count, own=True)

    def of(self, Z: Points, count: int) -> Found:
        """Compare new rows with training rows."""
        return self._most(Z, count, own=False)

    def own(self) -> tuple[Array, Array]:
        """Return -k(x, x), and k(x, x)."""
        diag = self.source.diag()
        return -diag, diag

    def _most(self, Z: Points, count: int, own: bool) -> Found:
        cross, m = self.source.cross(Z), row_count(Z)
        step = rows_at_once(self.source.n, _BLOCK, arrays=_ARRAYS)
        parts = []
        for first in range(0, max(m, 1), step):
            check()
            block = np.asarray(cross.rows(slice(first, min(first + step, m))), dtype=np.float64)
            key = -block
            if not np.isfinite(key).all():
                raise ValueError(
                    "kernel value not finite: rows of X are too large to be compared. "
                    "Scale the features, or use a smaller degree."
                )
            if own:
                key[np.arange(len(key)), first + np.arange(len(key))] = np.inf
            index = smallest(key, count)
            at = np.take_along_axis
            parts.append((index, at(key, index, axis=1), at(block, index, axis=1)))
        return Found(*(np.concatenate(part) for part in zip(*parts, strict=True)))


class MatrixSimilarity(MatrixSearch):
    """A given matrix of similarities, which need not be positive semidefinite."""

    def own(self) -> tuple[Array, Array]:
        """Return -k(x, x), and k(x, x)."""
        diag = self.matrix.diagonal().astype(np.float64)
        return -diag, diag

    def _key(self, block: Array, lengths: Array) -> Array:
        return -block
