"""Memory that a call may take, and how work is cut to fit into it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mercer.resources.settings import get_config
from mercer.resources.system import address_space_left, container_memory, system_memory

_SHARE = 0.7  # of the free memory; the rest is for the caller's own arrays and other processes
_SMALL = 1 << 24  # bytes
_BLOCK = 0.125  # of the budget: what a block of rows, with what is computed from it, takes


class MemoryBudgetError(MemoryError):
    """The work needs more memory than the budget; the message has the estimate and alternatives."""


# what the libraries of a card say for themselves where they find no memory for their own needs
_LIBRARIES = ("STATUS_ALLOC_FAILED", "cusolverDnCreate", "cublasCreate", "cublasLtCreate")


def is_full_card(error: BaseException) -> bool:
    """Return whether an error says that a card is full: torch's own, or of a library that it calls.

    Parameters
    ----------
    error : BaseException
        What was raised.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(error, RuntimeError):
        return False
    told = str(error)
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(one in told for one in _LIBRARIES)


@contextmanager
def explained_full_card(owner: str) -> Iterator[None]:
    """Say in the library's own words that a card is full, where work could not be made smaller.

    Parameters
    ----------
    owner : str
        Whose work it is.

    Raises
    ------
    MemoryBudgetError
        In place of torch's error. The process goes on.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_full_card(error):
            raise
        raise MemoryBudgetError(
            f"{owner}: the device is full, and this work cannot be done in smaller blocks. Let go "
            "of tensors that are held there, fit fewer rows, or take another device."
        ) from error


def memory_budget() -> int:
    """Return the bytes one call may take: the configured budget, else a share of what is free."""
    configured = get_config().memory
    free = available_memory()
    return int(_SHARE * free) if configured is None else min(configured, free)


def available_memory() -> int:
    """Return the bytes this process may still take: system, container, address-space limits."""
    limits = [system_memory(), container_memory(), address_space_left()]
    return max(0, int(min(limits)))


def within_budget(needed: float) -> bool:
    """Return whether so many bytes may be taken; a few are not worth asking the system about."""
    configured = get_config().memory
    if configured is not None and needed > configured:
        return False
    return needed <= _SMALL or needed <= memory_budget()


def require_memory(needed: int, what: str, alternatives: str, *, held: int = 0) -> None:
    """Refuse before allocation when `needed` bytes exceed the budget.

    Parameters
    ----------
    needed : int
        Bytes about to be taken.
    what : str
        What takes them, for the message.
    alternatives : str
        What the user can do instead, for the message.
    held : int
        Bytes that the call holds already. They count in a configured budget; what is free is less
        by them anyway.
    """
    if get_config().memory is not None:
        needed += held
    if not within_budget(needed):
        raise MemoryBudgetError(
            f"{what} needs {format_bytes(needed)}, but the memory budget is "
            f"{format_bytes(memory_budget())}. {alternatives}"
        )


def rows_at_once(width: int, most: int, *, arrays: int = 1, share: float = _BLOCK) -> int:
    """Return how many rows of `width` float64 numbers a pass may look at together.

    Parameters
    ----------
    width : int
        Numbers of a row.
    most : int
        Rows that are quickest; fewer are returned where the budget is small.
    arrays : int
        Arrays of that shape that are held at once.
    share : float
        Of the budget, for all of them.

    Returns
    -------
    int
        At least 1.
    """
    size = 8 * max(1, width) * arrays
    if within_budget(size * most / share):
        return max(1, most)
    return max(1, min(most, int(share * memory_budget() / size)))


def square_side(entry: float, share: float) -> int:
    """Return the order of the largest square matrix that a share of the budget holds.

    Parameters
    ----------
    entry : float
        Bytes for each entry, with those of all copies that are held at once.
    share : float
        Of the budget.

    Returns
    -------
    int
        At least 1.
    """
    return max(1, math.isqrt(int(share * memory_budget() / entry)))


def format_bytes(size: float) -> str:
    """Write a size for people: 1_600_000_000 is '1.6 GB'."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB" if size < 1000 else f"{size / 1000:.3g} TB"
