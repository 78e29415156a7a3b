"""Sending shared arguments to workers: small ones with the tasks, large ones once to all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.blocks.kept import serialised_bytes
from mercer.distributed.tasks import Placed, as_call
from mercer.resources import get_config

# Bytes up to which an argument is part of a task, which the scheduler keeps and so can repeat; Dask
# warns of graphs from 10 MB on.
_WITH_TASKS = 1_000_000


class Sending:
    """Arguments on the workers of one cluster.

    Parameters
    ----------
    client : distributed.Client
        The cluster.

    Attributes
    ----------
    sent_bytes : int
        Bytes of all arguments so far, each counted once, however many workers got them.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.large: dict[int, tuple[Any, Any]] = {}  # by identity: the argument, its future
        self.sent_bytes = 0

    def send(self, function: Callable[..., Any], shared: tuple[Any, ...]) -> tuple[Any, list[Any]]:
        """Return the future of a call, and those of its large arguments."""
        arguments: list[Any] = []
        large: list[Any] = []
        for argument in shared:
            size = serialised_bytes(argument)
            if size <= _WITH_TASKS:
                arguments.append(argument)
                self.sent_bytes += size
            else:
                arguments.append(Placed(len(large)))
                large.append(self.placed(argument, size))
        settings = {"backend": get_config().backend}
        call = self.client.submit(as_call, function, tuple(arguments), settings, pure=False)
        return call, large

    def placed(self, argument: Any, size: int) -> Any:
        """Send a large argument to all workers, once."""
        if id(argument) not in self.large:
            future = self.client.scatter(argument, broadcast=True, hash=False)
            self.large[id(argument)] = argument, future
            self.sent_bytes += size
        return self.large[id(argument)][1]
