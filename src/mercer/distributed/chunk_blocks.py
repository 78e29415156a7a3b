"""Chunks of a Dask collection on this machine, where no cluster is running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.blocks.local import LocalBlocks
from mercer.distributed.chunks import row_chunks
from mercer.points import is_sparse


class ChunkBlocks(LocalBlocks):
    """Chunks that are computed one after the other, anew in each pass; none is kept.

    Parameters
    ----------
    X : dask array (n, d) or dask data frame
        Rows; chunks must hold whole rows.
    y, weights : dask array or series, or array, optional
        Targets and weights.

    Examples
    --------
    >>> import dask.array as da
    >>> from mercer.distributed.chunk_blocks import ChunkBlocks
    >>> [len(block) for block in ChunkBlocks(da.ones((5, 2), chunks=(2, 2)))]
    [2, 2, 1]
    """

    def __init__(self, X: Any, y: Any = None, weights: Any = None) -> None:
        self.chunks = row_chunks(X, y, weights)
        self.n_rows = None if self.chunks.sizes is None else sum(self.chunks.sizes)
        self.n_columns, self.dtype = self.chunks.n_columns, self.chunks.dtype
        self.names = self.chunks.names

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Compute a chunk, and what belongs to it."""
        import dask  # noqa: PLC0415  there, since the rows are its own

        chunks = self.chunks
        for parts in zip(chunks.X, chunks.y, chunks.weights, strict=True):
            X, y, weights = dask.compute(*parts)
            X = X if is_sparse(X) else np.asarray(X)
            yield (
                X.astype(self.dtype, copy=False),
                None if y is None else np.asarray(y),
                None if weights is None else np.asarray(weights).reshape(-1),
            )
