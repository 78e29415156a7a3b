"""Tasks on Dask workers: sums over blocks, shared arguments, and reading of chunks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from dask.sizeof import sizeof

from mercer.resources import config, get_config
from mercer.rows.blocks import Block, added, made_block, mapped_rows, owned, serialised_bytes
from mercer.rows.points import is_sparse, working_dtype

# --- tasks ---------------------------------------------------------------------------------------
#
# What runs on the workers: a function of a block, and sums of what such functions return.


class Held:
    """A value on a worker, whose size Dask is told: it plans by what moving a value would cost.

    Dask knows the sizes of arrays, but not of objects that hold some.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


@sizeof.register(Held)  # type: ignore[untyped-decorator]
def held_bytes(held: Held) -> int:
    """Count the bytes of what is held."""
    return serialised_bytes(held.value)


class Placed:
    """Stands in a tuple of arguments for one that was sent to all workers before."""

    def __init__(self, number: int) -> None:
        self.number = number


class Call:
    """A function and its shared arguments, the small ones; large ones are on the workers already.

    Parameters
    ----------
    function : callable
        Of a module, so that workers can import it.
    arguments : tuple
        Small values, and `Placed` in place of each large one.
    settings : dict
        Settings of the library in force where the fit runs.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, Any]
    ) -> None:
        self.function, self.arguments, self.settings = function, arguments, settings

    def on(self, large: list[Any], *own: Any) -> Any:
        """Call the function with what belongs to the block, and what is shared."""
        shared = (large[a.number] if isinstance(a, Placed) else a for a in self.arguments)
        with ExitStack() as stack:
            stack.enter_context(config(**self.settings, **worker_share()))
            return self.function(*own, *shared)


def worker_share() -> dict[str, Any]:
    """Return what one task may use: Dask runs one for each thread, that is each core, of a worker.

    Memory is the worker's limit over its threads; rows that wait on the worker count in it, too.
    """
    from distributed import get_worker  # noqa: PLC0415  answers inside a task only

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    share: dict[str, Any] = {"threads": 1}
    if limit:
        share["memory"] = max(1, int(limit // worker.state.nthreads))
    return share


def as_call(function: Callable[..., Any], arguments: Any, settings: Any) -> Call:
    """Return a call, on the worker that the others have it from."""
    return Call(function, arguments, settings)


def applied(block: Held, call: Call, large: list[Any]) -> Held:
    """Return the function of a block: a result, or what is kept where the block is."""
    return Held(call.on(large, block.value))


def as_it_is(block: Held) -> Held:
    """Return a block, on the worker that is to have it."""
    return Held(block.value)


def mapped(block: Held, call: Call, large: list[Any]) -> Held:
    """Return a block with other rows, made by the function."""
    return Held(mapped_rows(block.value, lambda rows: call.on(large, rows), ()))


def changed(block: Held, state: Held, call: Call, large: list[Any]) -> Held:
    """Return the next state of a block, and a small result."""
    return Held(call.on(large, block.value, state.value))


def state_of(pair: Held) -> Held:
    """Return the state of a pair of state and result."""
    return Held(pair.value[0])


def held_result(pair: Held) -> Held:
    """Return the result of a pair of state and result."""
    return Held(pair.value[1])


def sum_of(parts: list[Held]) -> Held:
    """Add results in their order; what came from other tasks is not changed."""
    total = owned(parts[0].value)
    for part in parts[1:]:
        total = added(total, part.value)
    return Held(total)


# --- sending -------------------------------------------------------------------------------------
#
# Sending shared arguments to workers: small ones with the tasks, large ones once to all.

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


# --- reading -------------------------------------------------------------------------------------
#
# From a chunk of a Dask collection to a checked block, on the worker that has it.


def read_block(
    X: Any, y: Any, weights: Any, number: int, first: int, n_columns: int, dtype: Any
) -> Held:
    """Check a chunk and return it as a block.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The rows of the chunk.
    y, weights : array, series or None
        What belongs to them.
    number : int
        Of the chunk, for errors.
    first : int
        Number of its first row; 0 where sizes of chunks are not known yet.
    n_columns : int
        Columns that every chunk must have.
    dtype : dtype
        Of the working numbers: float32 or float64.
    """
    rows = X if is_sparse(X) else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(
            f"block {number} of X has the shape {rows.shape}, but the collection has {n_columns} "
            "columns"
        )
    if np.dtype(dtype) == np.float32 and working_dtype(rows.dtype) != np.float32:
        raise ValueError(
            f"block {number} of X holds {rows.dtype}, the collection says float32: digits would be "
            "lost; X.map_blocks(np.asarray, dtype='float64').astype('float64') makes blocks alike"
        )
    counts = None if weights is None else np.asarray(weights).reshape(-1)
    targets = None if y is None else np.asarray(y)
    if targets is not None and len(targets) != rows.shape[0]:
        raise ValueError(
            f"block {number} has {rows.shape[0]} rows in X and {len(targets)} in y; both must be "
            "cut at the same rows: y.rechunk(X.chunks[0]), or columns of one data frame"
        )
    if rows.shape[0] == 0:  # as filters leave them; nobody sees them
        return Held(Block(np.empty((0, n_columns)), None, None, first))
    return Held(made_block(rows.astype(dtype, copy=False), targets, counts, first, number))


def block_size(block: Held) -> Held:
    """Return how many rows a block has."""
    return Held(len(block.value))


def placed_at(block: Held, first: int) -> Held:
    """Return a block with the number of its first row, known once all are counted."""
    return Held(replace(block.value, first=first))


def with_targets(block: Held, y: Any, weights: Any, number: int) -> Held:
    """Return a block with other targets and weights; None keeps what there is."""
    old = block.value
    y = old.y if y is None else y
    weights = old.weights if weights is None else weights
    return Held(made_block(old.X, y, weights, old.first, number))
