"""Make blocks from arrays, files, functions and Dask collections."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mercer.rows.blocks import ArrayBlocks, RowBlocks, blocks_of
from mercer.rows.dask.chunks import is_dask
from mercer.rows.dask.cluster import client_or_none
from mercer.rows.file_blocks import FileBlocks

# --- make ----------------------------------------------------------------------------------------
#
# Dask collections as blocks: on the cluster that is running, or one chunk after the other here.


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


# --- make ----------------------------------------------------------------------------------------
#
# Blocks of whatever holds rows.


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
