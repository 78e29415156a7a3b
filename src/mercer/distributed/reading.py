"""From a chunk of a Dask collection to a checked block, on the worker that has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.blocks.base import Block
from mercer.distributed.tasks import Held
from mercer.points import as_points, is_sparse


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
    rows: Any = as_points(X if is_sparse(X) else np.asarray(X))
    if rows.shape[1] != n_columns:
        raise ValueError(
            f"block {number} of X has {rows.shape[1]} columns, the collection says {n_columns}"
        )
    if np.dtype(dtype) == np.float32 and rows.dtype != np.float32:
        raise ValueError(
            f"block {number} of X holds {np.asarray(X).dtype}, the collection says float32: digits "
            "would be lost; X.astype('float64') makes all blocks alike"
        )
    rows = rows.astype(dtype, copy=False)
    refuse_nonfinite_block(rows, "X", number, first)
    targets = None if y is None else read_targets(y, rows.shape[0], number)
    counts = None if weights is None else read_weights(weights, rows.shape[0], number)
    return Held(Block(rows, targets, counts, first))


def read_targets(y: Any, n: int, number: int) -> Any:
    """Check the targets of a chunk."""
    values = np.asarray(y)
    if values.shape[0] != n:
        raise ValueError(
            f"block {number} has {n} rows in X and {values.shape[0]} in y; both must be cut at the "
            "same rows: y.rechunk(X.chunks[0]), or columns of one data frame"
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind == "f":
        refuse_nonfinite_block(values.reshape(n, -1), "y", number, 0)
    return values


def read_weights(weights: Any, n: int, number: int) -> Any:
    """Check the weights of a chunk."""
    values = np.asarray(weights, dtype=np.float64).ravel()
    if len(values) != n:
        raise ValueError(f"block {number} has {n} rows in X and {len(values)} in sample_weight")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            f"sample_weight must be finite and not negative, but block {number} has others"
        )
    return values


def refuse_nonfinite_block(values: Any, what: str, number: int, first: int) -> None:
    """Raise if a block holds NaN or infinity, saying which block and where in it."""
    entries = values.data if is_sparse(values) else values
    if np.isfinite(entries).all():
        return
    bad = ~np.isfinite(entries)
    kind = "NaN" if np.isnan(entries).any() else "infinity"
    place = ""
    if not is_sparse(values):
        row, column = np.unravel_index(int(bad.argmax()), bad.shape)
        place = f", the first in row {int(row)} of the block, column {int(column)}"
    known = f" (rows from {first})" if first else ""
    raise ValueError(
        f"Input {what} contains {kind}: {int(bad.sum())} bad value(s) in block {number}{known}"
        f"{place}; remove those rows or fill them in"
    )


def block_shape(block: Held) -> tuple[int, int]:
    """Return how many rows a block has, and how many of its targets' columns there are."""
    y = block.value.y
    return len(block.value), 0 if y is None else y.ndim


def placed_at(block: Held, first: int) -> Held:
    """Return a block with the number of its first row, known once all are counted."""
    return Held(replace(block.value, first=first))


def with_targets(block: Held, y: Any, weights: Any, number: int) -> Held:
    """Return a block with other targets and weights; None keeps what there is."""
    n = len(block.value)
    return Held(
        replace(
            block.value,
            y=block.value.y if y is None else read_targets(y, n, number),
            weights=block.value.weights if weights is None else read_weights(weights, n, number),
        )
    )
