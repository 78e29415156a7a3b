"""Dask collections as blocks: on the cluster that is running, or one chunk after the other here."""

from __future__ import annotations

from typing import Any

from mercer.blocks.base import RowBlocks
from mercer.distributed.client import client_or_none


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
        from mercer.distributed.chunk_blocks import ChunkBlocks  # noqa: PLC0415  imports Dask

        return ChunkBlocks(X, y, weights)
    from mercer.distributed.dask_blocks import DaskBlocks  # noqa: PLC0415  imports Dask

    return DaskBlocks(X, y, weights, client=found)
