"""Blocks made from arrays, mapped arrays, functions, files and Dask collections."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mercer.data.table import Table
from mercer.rows.blocks import Block, LocalBlocks, RowBlocks, checked_rows, made_block, mapped_file
from mercer.rows.dask.chunks import is_dask
from mercer.rows.dask.cluster import client_or_none
from mercer.rows.file_blocks import FileBlocks
from mercer.rows.points import as_points, is_sparse, working_dtype


def as_blocks(source: Any, y: Any = None, weights: Any = None, **options: Any) -> RowBlocks:
    """Return rows as blocks: arrays, mapped arrays, files, or a function that gives blocks.

    Parameters
    ----------
    source : RowBlocks, array, sparse matrix, path, list of paths, callable or Dask collection
        Rows. A path that ends in .npy is mapped, others are read by `FileBlocks`. Dask arrays and
        data frames are held by the workers of the client that is running, if there is one.
    y, weights : array, optional
        Targets and weights, one entry for each row; of files, the names of columns.
    **options
        Of `ArrayBlocks` or `FileBlocks`.

    Returns
    -------
    RowBlocks

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.blocks import as_blocks
    >>> as_blocks(np.zeros((6, 2)), rows=4).n_rows
    6
    """
    if isinstance(source, RowBlocks):
        return source if y is None and weights is None else source.with_targets(y, weights)
    if is_dask(source):
        return dask_blocks(source, y, weights, **options)
    if isinstance(source, str | os.PathLike) and os.fspath(source).endswith(".npy"):
        return ArrayBlocks(mapped_array(source), y, weights, **options)
    if isinstance(source, str | os.PathLike) or _are_paths(source):
        return FileBlocks(source, target=y, weights=weights, **options)
    if callable(source) or hasattr(source, "__next__"):
        made = blocks_of(source)
        return made if y is None and weights is None else made.with_targets(y, weights)
    return ArrayBlocks(source, y, weights, **options)


def mapped_array(path: Any) -> Any:
    """Map an array from its file; one that is cut short, or no array, is refused in words."""
    try:
        return np.load(path, mmap_mode="r")
    except ValueError as error:
        raise ValueError(
            f"{os.fspath(path)} is no array of numbers, or was cut short: {error}"
        ) from error


def _are_paths(source: Any) -> bool:
    if not isinstance(source, list | tuple) or not source:
        return False
    return all(isinstance(path, str | os.PathLike) for path in source)


def dask_blocks(X: Any, y: Any = None, weights: Any = None, *, client: Any = None) -> RowBlocks:
    """Return a Dask collection as blocks.

    Parameters
    ----------
    X : dask array or dask data frame
        Rows.
    y, weights : dask array or series, or array, optional
        Targets and weights.
    client : distributed.Client or None
        None takes the client that is running. Without one, chunks are computed by Dask's own
        scheduler on this machine, one after the other in each pass, and none is kept.

    Returns
    -------
    RowBlocks
    """
    found = client_or_none() if client is None else client
    if found is None:
        from mercer.rows.dask.chunks import ChunkBlocks  # noqa: PLC0415  imports Dask

        return ChunkBlocks(X, y, weights)
    from mercer.rows.dask.blocks import DaskBlocks  # noqa: PLC0415  imports Dask

    return DaskBlocks(X, y, weights, client=found)


# --- arrays --------------------------------------------------------------------------------------


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


def _array(values: Any, name: str, n: int) -> Any:
    if values is None:
        return None
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.ndim == 0 or len(array) != n:
        raise ValueError(f"{name} has shape {array.shape}, but X has {n} rows")
    return array


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


# --- functions -----------------------------------------------------------------------------------


def blocks_of(function: Callable[[], Iterable[Any]]) -> FunctionBlocks:
    """Return blocks that a function gives: called once for each pass over the rows.

    Parameters
    ----------
    function : callable
        Returns an iterator of blocks: arrays X, pairs (X, y), triples (X, y, weights) or `Block`.
        Every call must give the same blocks from the beginning.

    Returns
    -------
    FunctionBlocks
        To fit machines to.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.blocks import blocks_of
    >>> def made():
    ...     for seed in range(5):
    ...         X = np.random.default_rng(seed).standard_normal((100, 3))
    ...         yield X, X @ [1.0, -2.0, 0.5]
    >>> KernelRidge(1e-6).fit(blocks_of(made)).coef_.round(3).tolist()
    [1.0, -2.0, 0.5]
    """
    given: Any = function
    if not callable(given):
        if hasattr(function, "__next__"):
            raise TypeError(
                "blocks_of: a generator is over after one pass, and a fit needs several; give the "
                "function that makes it: blocks_of(lambda: generate())"
            )
        raise TypeError(
            f"blocks_of takes a function that gives an iterator of blocks, not {type(function)!r}"
        )
    return FunctionBlocks(function)


class FunctionBlocks(LocalBlocks):
    """Blocks of a function that is called for each pass; see `blocks_of`."""

    def __init__(self, function: Callable[[], Iterable[Any]]) -> None:
        self.function = function
        self.n_rows = None
        self._before: Any = None
        for X, y, weights in self.parts():
            block = made_block(X, y, weights, 0, 0)
            self.n_columns, self.dtype = int(block.X.shape[1]), np.dtype(block.X.dtype)
            if isinstance(X, Table):
                self.names = tuple(X.columns)
            break
        else:
            raise ValueError("blocks_of: the function gave no blocks")

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Call the function, and go through what it returns."""
        given = self.function()
        if not hasattr(given, "__iter__"):
            raise TypeError(f"blocks_of: the function must give an iterator, not {given!r:.60}")
        if hasattr(given, "__next__") and given is self._before:
            raise TypeError(
                "blocks_of: the function gave the same iterator twice, which is over after one "
                "pass; make a new one at each call"
            )
        self._before = given
        for number, part in enumerate(given):
            yield _three(part, number)


def _three(part: Any, number: int) -> tuple[Any, Any, Any]:
    """Return rows, targets and weights of what a function gave as a block."""
    if isinstance(part, Block):
        return part.X, part.y, part.weights
    if isinstance(part, tuple):
        if not 1 <= len(part) <= 3:
            raise TypeError(f"block {number} is a tuple of {len(part)}; give X, (X, y) or three")
        X, y, weights = (*part, None, None)[:3]
    else:
        X, y, weights = part, None, None
    return (X.matrix() if isinstance(X, Table) else X), y, weights
