"""The client of a running cluster."""

from __future__ import annotations

from typing import Any

from mercer.distributed.errors import ClusterError, require_dask
from mercer.distributed.waiting import refuse_closed


def running_client(client: Any = None) -> Any:
    """Return the client that was given, or the one that is running.

    Parameters
    ----------
    client : distributed.Client or None
        None looks for the one that was made last in this process.
    """
    found = client_or_none() if client is None else client
    if found is None:
        raise ClusterError(
            "no Dask client is running; start one, for example\n"
            "    from distributed import Client\n"
            "    client = Client()  # or Client('tcp://scheduler:8786')"
        )
    if not hasattr(found, "submit"):
        raise TypeError(
            f"client={found!r} must be a distributed.Client; Client('tcp://...') makes one"
        )
    if getattr(found, "asynchronous", False):
        raise TypeError("client must be synchronous: Client(asynchronous=False)")
    refuse_closed(found)
    return found


def client_or_none() -> Any:
    """Return the client that is running, or None."""
    require_dask()
    from distributed import default_client  # noqa: PLC0415  takes a second to import

    try:
        return default_client()
    except ValueError:
        return None
