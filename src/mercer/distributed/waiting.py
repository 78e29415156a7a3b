"""Waiting for a cluster: time limits, Ctrl-C, workers that are gone, a client that is closed."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from typing import Any

from mercer import deadline
from mercer.distributed.errors import ClusterError

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
