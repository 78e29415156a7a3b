"""From a chunk of a Dask collection to a checked block, on the worker that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.blocks.base import Block
from mercer.blocks.checks import made_block
from mercer.distributed.tasks import Held
from mercer.points import is_sparse, working_dtype


def read_block(
    X: Any, y: Any, weights: Any, number: int, first: int, n_columns: int, dtype: Any
) -> Held:
    """Check a chunk and return it as a block.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The rows of the chunk.
    y, weights : array, series or None
        What belongs to them.
    number : int
        Of the chunk, for errors.
    first : int
        Number of its first row; 0 where sizes of chunks are not known yet.
    n_columns : int
        Columns that every chunk must have.
    dtype : dtype
        Of the working numbers: float32 or float64.
    """
    rows = X if is_sparse(X) else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(
            f"block {number} of X has the shape {rows.shape}, but the collection has {n_columns} "
            "columns"
        )
    if np.dtype(dtype) == np.float32 and working_dtype(rows.dtype) != np.float32:
        raise ValueError(
            f"block {number} of X holds {rows.dtype}, the collection says float32: digits would be "
            "lost; X.map_blocks(np.asarray, dtype='float64').astype('float64') makes blocks alike"
        )
    counts = None if weights is None else np.asarray(weights).reshape(-1)
    targets = None if y is None else np.asarray(y)
    if targets is not None and len(targets) != rows.shape[0]:
        raise ValueError(
            f"block {number} has {rows.shape[0]} rows in X and {len(targets)} in y; both must be "
            "cut at the same rows: y.rechunk(X.chunks[0]), or columns of one data frame"
        )
    if rows.shape[0] == 0:  # as filters leave them; nobody sees them
        return Held(Block(np.empty((0, n_columns)), None, None, first))
    return Held(made_block(rows.astype(dtype, copy=False), targets, counts, first, number))


def block_size(block: Held) -> Held:
    """Return how many rows a block has."""
    return Held(len(block.value))


def placed_at(block: Held, first: int) -> Held:
    """Return a block with the number of its first row, known once all are counted."""
    return Held(replace(block.value, first=first))


def with_targets(block: Held, y: Any, weights: Any, number: int) -> Held:
    """Return a block with other targets and weights; None keeps what there is."""
    old = block.value
    y = old.y if y is None else y
    weights = old.weights if weights is None else weights
    return Held(made_block(old.X, y, weights, old.first, number))
