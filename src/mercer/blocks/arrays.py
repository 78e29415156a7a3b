"""Rows of arrays, in memory or mapped from a file, looked at block by block."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.blocks.local import LocalBlocks, rows_of_block
from mercer.points import as_points, is_sparse, working_dtype
from mercer.resources import within_budget


class ArrayBlocks(LocalBlocks):
    """Blocks of an array of rows; a mapped array is read from its file block by block.

    Parameters
    ----------
    X : array (n, d), memory-mapped array or sparse matrix
        Rows.
    y : array, optional
        Targets, one for each row; may be mapped, too.
    weights : (n,) array, optional
        How often each row counts.
    rows : int, optional
        Rows of a block; by default as many as an eighth of the memory budget holds, 65536 at most.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import ArrayBlocks
    >>> blocks = ArrayBlocks(np.arange(10.0).reshape(5, 2), rows=2)
    >>> [len(block) for block in blocks]
    [2, 2, 1]
    """

    def __init__(
        self, X: Any, y: Any = None, weights: Any = None, *, rows: int | None = None
    ) -> None:
        self.X = as_points(X) if is_sparse(X) or not isinstance(X, np.ndarray) else X
        if self.X.ndim != 2 or self.X.shape[0] == 0:
            raise ValueError(f"blocks are cut from rows (n, d), not from shape {self.X.shape}")
        if self.X.dtype.kind not in "fiub":
            raise TypeError(f"rows of blocks are numbers, not {self.X.dtype}")
        self.n_rows, self.n_columns = (int(size) for size in self.X.shape)
        self.dtype = np.dtype(working_dtype(self.X.dtype))
        self.rows = checked_rows(rows, self.n_columns)
        self.y, self.weights = _array(y, "y", self.n_rows), _array(weights, "weights", self.n_rows)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Cut slices."""
        for first in range(0, self.X.shape[0], self.rows):
            refuse_shortened(self.X)
            rows = slice(first, first + self.rows)
            y = None if self.y is None else self.y[rows]
            # a plain array: views of a mapped one would keep its pages, and slow arithmetic down
            X = self.X[rows]
            yield (
                X if is_sparse(X) else np.asarray(X),
                y,
                None if self.weights is None else self.weights[rows],
            )
            forget_pages(self.X)

    def with_targets(self, y: Any = None, weights: Any = None) -> ArrayBlocks:
        """Return the same rows with targets and weights."""
        y = self.y if y is None else y
        weights = self.weights if weights is None else weights
        return ArrayBlocks(self.X, y, weights, rows=self.rows)


def checked_rows(rows: int | None, columns: int) -> int:
    """Return the rows of a block: as given, or by the memory budget."""
    if rows is None:
        return rows_of_block(columns)
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows={rows!r} must be a whole number of at least 1, or None")
    return int(rows)


def _array(values: Any, name: str, n: int) -> Any:
    if values is None:
        return None
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0 or len(array) != n:
        raise ValueError(f"{name} has shape {array.shape}, but X has {n} rows")
    return array


def mapped_file(X: Any) -> Any:
    """Return the mapped array whose file X lies in; None for an array in memory."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and isinstance(X.base, mmap.mmap):
            return X
        X = X.base
    return None


def is_past_memory(X: Any) -> bool:
    """Return whether X is mapped from a file and takes more than half of the memory budget."""
    if not isinstance(X, np.ndarray) or X.base is None or X.ndim != 2:
        return False
    return mapped_file(X) is not None and not within_budget(2 * X.nbytes)


def refuse_shortened(X: Any) -> None:
    """Raise if the file of a mapped array became shorter than the array: reading would crash."""
    base = mapped_file(X)
    if base is None or getattr(base, "filename", None) is None:
        return
    size, needed = os.path.getsize(base.filename), base.offset + base.nbytes
    if size < needed:
        raise ValueError(
            f"{base.filename} was cut short: the mapped array needs {needed} bytes, and the file "
            f"has {size}"
        )


def forget_pages(X: Any) -> None:
    """Let the system drop pages of a mapped file that were read: they would count as memory."""
    base = mapped_file(X)
    if base is not None and base.mode in ("r", "r+") and hasattr(mmap, "MADV_DONTNEED"):
        base._mmap.madvise(mmap.MADV_DONTNEED)
