"""Rows on a Dask cluster: arrays, data frames, files, and predictions for them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.rows.dask.chunks import (
    apply,
    decision_function,
    is_dask,
    predict,
    predict_proba,
    transform,
)
from mercer.rows.dask.cluster import ClusterError, on_cluster, require_dask, running_client

if TYPE_CHECKING:
    from mercer.rows.dask.blocks import DaskBlocks, WorkerFileBlocks
    from mercer.rows.dask.chunks import ChunkBlocks

__all__ = [
    "ChunkBlocks",
    "ClusterError",
    "DaskBlocks",
    "WorkerFileBlocks",
    "apply",
    "decision_function",
    "is_dask",
    "on_cluster",
    "predict",
    "predict_proba",
    "running_client",
    "transform",
]

# importing these imports Dask, which need not be installed and takes a second
_OF_DASK = {
    "ChunkBlocks": "mercer.rows.dask.chunks",
    "DaskBlocks": "mercer.rows.dask.blocks",
    "WorkerFileBlocks": "mercer.rows.dask.blocks",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_DASK:
        raise AttributeError(f"module 'mercer.distributed' has no attribute {name!r}")
    require_dask()
    return getattr(import_module(_OF_DASK[name]), name)
