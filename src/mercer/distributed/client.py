"""The client of a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
        raise TypeError("client must be a synchronous one, as Client('tcp://...') is")
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


_PATIENCE = 10  # seconds to wait for a scheduler
_around: ContextVar[Any] = ContextVar("mercer_cluster", default=None)


def client_around() -> Any:
    """Return the client of the `on_cluster` block around this call, or None."""
    return _around.get()


@contextmanager
def on_cluster(client: Any) -> Iterator[Any]:
    """Spread searches inside a `with` block over the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client or str
        A client, or the address of a scheduler such as "tcp://10.0.0.1:8786"; a client made for an
        address is closed at the end.

    Yields
    ------
    distributed.Client
        The client.
    """
    made = None
    if isinstance(client, str):
        client = made = connected(client)
    token = _around.set(running_client(client))
    try:
        yield client
    finally:
        _around.reset(token)
        if made is not None:
            made.close()


def connected(address: str) -> Any:
    """Return a client of the scheduler at an address, or say that none answers there."""
    require_dask()
    from distributed import Client  # noqa: PLC0415  takes a second to import

    try:
        return Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r} ({error}); start one with `dask scheduler`, "
            "and workers with `dask worker ADDRESS`"
        ) from error
