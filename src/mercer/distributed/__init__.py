"""Rows on a cluster: Dask arrays and data frames, and a running client."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.distributed.answers import (
    apply,
    decision_function,
    predict,
    predict_proba,
    transform,
)
from mercer.distributed.chunks import is_dask
from mercer.distributed.client import on_cluster, running_client
from mercer.distributed.errors import ClusterError, require_dask

if TYPE_CHECKING:
    from mercer.distributed.chunk_blocks import ChunkBlocks
    from mercer.distributed.dask_blocks import DaskBlocks
    from mercer.distributed.file_blocks import WorkerFileBlocks

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
    "ChunkBlocks": "mercer.distributed.chunk_blocks",
    "DaskBlocks": "mercer.distributed.dask_blocks",
    "WorkerFileBlocks": "mercer.distributed.file_blocks",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_DASK:
        raise AttributeError(f"module 'mercer.distributed' has no attribute {name!r}")
    require_dask()
    return getattr(import_module(_OF_DASK[name]), name)
