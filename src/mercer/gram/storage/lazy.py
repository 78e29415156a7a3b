"""K never stored: products are made tile by tile."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mercer.array_types import Array, Index, Points
from mercer.backends import Pairs
from mercer.gram.base import Cross, Expansion, Gram, columns_of
from mercer.gram.source import Source
from mercer.resources import require_memory


class LazyGram(Gram):
    """Fused products: an entry of K lives only inside the tile that uses it.

    Parameters
    ----------
    source : Source
        Kernel, points and type of the tiles.
    """

    source: Source

    def __init__(self, source: Source) -> None:
        self.source = source
        self.shape = (source.n, source.n)
        self.dtype = np.dtype(source.dtype)
        self.valid = source.valid

    @cached_property
    def _pairs(self) -> Pairs:
        # bound when first used: a Gram that is held for later costs nothing
        return self.source.pairs()

    def diag(self) -> Array:
        """Evaluate the diagonal."""
        return self.source.diag()

    def rows(self, index: Index) -> Array:
        """Evaluate rows."""
        return self._pairs.rows(index)

    def __matmul__(self, V: Array) -> Array:
        product = self._product(columns_of(V))
        return product[:, 0] if V.ndim == 1 else product

    def _product(self, V: Array) -> Array:
        """Multiply; rows of V that are zero (points that support nothing) cost nothing."""
        used = np.flatnonzero(V.any(axis=1))
        if 2 * len(used) > len(V):
            return self._pairs.matmul(V)
        return self.source.against(used).matmul(V[used])

    def dense(self) -> Array:
        """Evaluate everything, if the memory budget allows it."""
        n = self.source.n
        require_memory(
            n * n * self.dtype.itemsize,
            f"the Gram matrix of {n} points",
            "A lazy Gram is meant for products; use a solver that asks only for those.",
        )
        return self._pairs.dense()

    def cross(self, Z: Points) -> Cross:
        """Bind new points."""
        return self.source.cross(Z)

    def expand(self, coef: Array) -> Expansion:
        """Expand over the points."""
        return self.source.expand(coef)
