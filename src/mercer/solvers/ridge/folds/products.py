"""Rows in an order in which every fold has, or leaves out, whole parts of them.

Products for a fold read only the rows that it has, and mostly are wanted there only. With the rows
of each part side by side, whole blocks of the matrix are no work for a fold: of five folds three
use a block off the diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.backends import RowParts, choose_backend

_LEAST = 50  # rows of a part, on average: blocks of fewer are slower than what they save


def fold_order(trains: Sequence[Array], weights: Array | None, n: int) -> Array:
    """Return rows in an order of few parts, or as they are where there is none."""
    inside = _inside(trains, n)
    if weights is not None:
        inside[weights == 0] = False
    # folds are eight to a byte, so that many of them are compared at once
    patterns, part = np.unique(np.packbits(inside, axis=1), axis=0, return_inverse=True)
    if len(patterns) * _LEAST > n:
        return np.arange(n)
    return np.argsort(-part.ravel(), kind="stable")


class FoldParts:
    """Products of several folds with one matrix.

    Parameters
    ----------
    rows : sequence of int arrays
        Those of each fold.
    n : int
        All of them.
    """

    def __init__(self, rows: Sequence[Array], n: int) -> None:
        inside = _inside(rows, n)
        change = (inside[1:] != inside[:-1]).any(axis=1)
        self._ends = np.append(np.flatnonzero(change) + 1, n)
        self._inside = inside[self._ends - 1]
        self._few = len(self._ends) * _LEAST <= n

    def product(
        self,
        K: Array,
        blocks: Sequence[Array],
        reads: bool | None = None,
        writes: bool | None = None,
    ) -> Array:
        """Return K times a block of each fold, side by side, in one pass over the matrix.

        Parameters
        ----------
        K : (n, n) array
            Symmetric, float32 or float64.
        blocks : sequence of arrays (n, k)
            One for each fold.
        reads, writes : bool or None
            Where blocks are not zero, and where products are wanted: True in the fold's rows only,
            False in others only, None at all rows. What is not wanted may be anything.

        Returns
        -------
        product : array
            As many columns as all blocks have.
        """
        V = np.hstack(blocks)
        if not self._few or not V.size:
            return choose_backend().symmetric_product(K, V)
        inside = np.repeat(self._inside, [block.shape[1] for block in blocks], axis=1)
        every = np.full_like(inside, True)
        where = [every if to is None else inside == to for to in (reads, writes)]
        return choose_backend().symmetric_product(K, V, RowParts(self._ends, *where))


def _inside(rows: Sequence[Array], n: int) -> Array:
    """Return which rows are in which fold: (n, folds)."""
    inside = np.zeros((n, len(rows)), dtype=bool)
    for k, own in enumerate(rows):
        inside[own, k] = True
    return inside
