"""Rows on a cluster: Dask arrays and data frames, and a running client."""

from mercer.distributed.chunks import is_dask
from mercer.distributed.errors import ClusterError

__all__ = ["ClusterError", "DaskBlocks", "is_dask"]


def __getattr__(name: str) -> object:
    # Dask is imported when something of it is asked for
    if name == "DaskBlocks":
        from mercer.distributed.errors import require_dask  # noqa: PLC0415

        require_dask()
        from mercer.distributed.dask_blocks import DaskBlocks  # noqa: PLC0415

        return DaskBlocks
    raise AttributeError(f"module 'mercer.distributed' has no attribute {name!r}")
