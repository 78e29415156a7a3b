"""What runs on the workers: a function of a block, and sums of what such functions return."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from dask.sizeof import sizeof

from mercer.blocks.base import added, mapped_rows, owned
from mercer.blocks.kept import serialised_bytes
from mercer.resources import config


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


def result_of(pair: Held) -> Held:
    """Return the result of a pair of state and result."""
    return Held(pair.value[1])


def sum_of(parts: list[Held]) -> Held:
    """Add results in their order; what came from other tasks is not changed."""
    total = owned(parts[0].value)
    for part in parts[1:]:
        total = added(total, part.value)
    return Held(total)
