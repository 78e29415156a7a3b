"""Rows of arrays, in memory or mapped from a file, looked at block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.blocks.local import LocalBlocks
from mercer.points import as_points, is_sparse, working_dtype


class ArrayBlocks(LocalBlocks):
    """Blocks of an array of rows; a mapped array is read from its file block by block.

    Parameters
    ----------
    X : array (n, d), memory-mapped array or sparse matrix
        Rows.
    y : array, optional
        Targets, one for each row.
    weights : (n,) array, optional
        How often each row counts.
    rows : int
        Rows of a block.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import ArrayBlocks
    >>> blocks = ArrayBlocks(np.arange(10.0).reshape(5, 2), rows=2)
    >>> [len(block) for block in blocks]
    [2, 2, 1]
    """

    def __init__(
        self, X: Any, y: Array | None = None, weights: Array | None = None, *, rows: int = 65536
    ) -> None:
        self.X, self.y, self.weights, self.rows = X, y, weights, rows
        if is_sparse(X):
            self.X = as_points(X)
        self.n_rows, self.n_columns = X.shape
        self.dtype = np.dtype(working_dtype(X.dtype))

    def __iter__(self) -> Iterator[Block]:
        n = self.X.shape[0]
        for first in range(0, n, self.rows):
            part = slice(first, min(first + self.rows, n))
            y = None if self.y is None else np.asarray(self.y[part])
            weights = None if self.weights is None else np.asarray(self.weights[part])
            yield Block(as_points(self.X[part]), y, weights, first)

    def with_targets(self, y: Any = None, weights: Any = None) -> ArrayBlocks:
        """Return the same rows with targets and weights."""
        return ArrayBlocks(
            self.X,
            self.y if y is None else np.asarray(y),
            self.weights if weights is None else np.asarray(weights),
            rows=self.rows,
        )
