"""Dask cluster: client, errors, waiting for results, and placement of tasks on workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

from mercer import deadline

# --- errors --------------------------------------------------------------------------------------
#
# What goes wrong with a cluster, in words.


class ClusterError(RuntimeError):
    """The cluster could not answer; the message says what it lost and what to do."""


def require_dask() -> None:
    """Raise if Dask is not installed, with the command that installs it."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        raise ImportError(
            "rows on a cluster need Dask, which is not installed: pip install 'mercer[dask]'"
        )


# --- client --------------------------------------------------------------------------------------
#
# The client of a running cluster.


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


# --- waiting -------------------------------------------------------------------------------------
#
# Waiting for a cluster: time limits, Ctrl-C, workers that are gone, a client that is closed.

_LOOK = 0.2  # seconds between two looks at the clock
GONE = ("lost", "cancelled")  # states of a future whose value is nowhere
_ALONE = 60.0  # seconds without a single worker, after which nobody is expected to come back


class LostError(Exception):
    """What a result is made from is gone with the workers that held it; it can be sent again."""


def result_of(client: Any, wanted: Any, others: list[Any], needed: list[Any]) -> Any:
    """Wait for a future.

    Parameters
    ----------
    client : distributed.Client
        Whose future it is.
    wanted : Future
        What is waited for.
    others : list of Future
        What is made for it alone: cancelled with it when the wait ends in another way.
    needed : list of Future
        What was sent for it. Once a part is lost with all workers that had it, Dask would wait for
        ever.
    """
    try:
        return waited(client, wanted, needed)
    except BaseException:
        cancel(client, [wanted, *others])
        raise


def waited(client: Any, wanted: Any, needed: list[Any]) -> Any:
    """Wait, looking at the clock and at the workers now and then."""
    done = threading.Event()
    wanted.add_done_callback(lambda _: done.set())
    alone_since: float | None = None
    while not done.wait(_LOOK):
        deadline.check()
        if any(future.status in GONE for future in needed):
            raise LostError
        alone_since = time_alone(client, alone_since)
    return brought(client, wanted)


def brought(client: Any, finished: Any) -> Any:
    """Return the value of a future that is done, or raise what ended it, in words."""
    from distributed.scheduler import KilledWorker  # noqa: PLC0415  Dask need not be installed

    try:
        return finished.result()
    except KilledWorker as error:
        raise ClusterError(
            f"the work on one block ended {error.last_worker.address} and workers before it, most "
            "often because memory ran out: cut the rows into smaller chunks (X.rechunk), or give "
            "workers more memory"
        ) from error
    except CancelledError as error:
        refuse_closed(client, error)
        raise LostError from error


def time_alone(client: Any, since: float | None) -> float | None:
    """Return since when there is no worker at all; raise once that is too long."""
    refuse_closed(client)
    if client.nthreads():
        return None
    since = deadline.now() if since is None else since
    if deadline.now() - since > _ALONE:
        raise ClusterError(
            f"the cluster has had no worker for {_ALONE:.0f} s; start some, and fit again"
        )
    return since


def refuse_closed(client: Any, cause: BaseException | None = None) -> None:
    """Raise in words if the client is closed, or has lost its scheduler."""
    if client.status != "running":
        raise ClusterError(
            f"the client of the cluster is {client.status}: it was closed, or its scheduler is "
            "gone; connect a Client again, and fit again. Nothing was changed"
        ) from cause


def cancel(client: Any, futures: list[Any]) -> None:
    """Take back what nobody waits for any more."""
    if client.status == "running":
        client.cancel(futures, force=True)


# --- placing -------------------------------------------------------------------------------------
#
# Which worker does what: tasks where blocks are, and blocks as evenly as they can be.


def placed_on(holder: str) -> dict[str, Any]:
    """Return the options of tasks for a worker; others may have them when it is gone."""
    return {"workers": [holder], "allow_other_workers": True} if holder else {}


def holders_of(client: Any, blocks: list[Any]) -> list[str]:
    """Return the worker that holds each block; "" where none does yet."""
    holders = client.who_has(blocks)
    return [min(holders.get(block.key) or [""]) for block in blocks]


def grouped(holders: list[str]) -> tuple[list[str], list[list[int]]]:
    """Return the workers that hold blocks, and the numbers of the blocks of each.

    Examples
    --------
    >>> grouped(["a", "b", "a"])
    (['a', 'b'], [[0, 2], [1]])
    """
    groups: dict[str, list[int]] = {}
    for b, holder in enumerate(holders):
        groups.setdefault(holder, []).append(b)
    return list(groups), list(groups.values())


def evened(holders: list[str], sizes: list[int], threads: Mapping[str, int]) -> list[str]:
    """Return better holders: a pass takes as long as the worker with the most rows.

    Parameters
    ----------
    holders : list of str
        The worker of each block.
    sizes : list of int
        Rows of each block.
    threads : mapping of str to int
        All workers, and how many tasks each runs at once.

    Returns
    -------
    list of str
        Blocks change from the worker with the most rows a thread to that with the least, one by
        one, as long as that helps.

    Examples
    --------
    >>> evened(["a", "a", "a", "b"], [10, 10, 10, 10], {"a": 1, "b": 1})
    ['a', 'a', 'b', 'b']
    """
    if len(threads) < 2 or not set(holders) <= set(threads):
        return holders
    found, load = list(holders), dict.fromkeys(threads, 0.0)
    for holder, size in zip(holders, sizes, strict=True):
        load[holder] += size / threads[holder]
    for _ in range(len(holders)):
        most, least = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        own = [b for b, holder in enumerate(found) if holder == most]
        b = min(own, key=lambda number: (sizes[number], -number))
        if load[least] + sizes[b] / threads[least] >= load[most]:
            break
        found[b] = least
        load[most] -= sizes[b] / threads[most]
        load[least] += sizes[b] / threads[least]
    return found
