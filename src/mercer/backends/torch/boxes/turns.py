"""As many programmes at a time as a card has room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from mercer.backends.torch.device import Device
from mercer.resources import MemoryBudgetError, format_bytes

S = TypeVar("S")
T = TypeVar("T")

_MORE = 4  # times as many turns, where a card that seemed to have room has none


def in_turns(
    work: Sequence[S],
    solve: Callable[[Sequence[S]], list[T]],
    needed: float,
    device: Device,
    what: str,
) -> list[T]:
    """Solve all at once, or some after others where they do not fit.

    Parameters
    ----------
    work : sequence
        What is to be solved.
    solve : callable
        Solves some of it, from the beginning; returns an answer for each.
    needed : float
        Bytes that all of it takes.
    device : Device
        Where.
    what : str
        What one of them is, for the message if nothing helps.

    Raises
    ------
    MemoryBudgetError
        If not even one fits. The process goes on.
    """
    free = float(device.free()) if device.is_card else needed
    turns = min(len(work), max(1, int(-(-needed // max(1.0, free)))))
    while True:
        each = -(-len(work) // max(1, turns))
        try:
            found: list[T] = []
            for first in range(0, len(work), max(1, each)):
                found += solve(work[first : first + each])
            return found
        except torch.cuda.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            if turns >= len(work):
                raise MemoryBudgetError(
                    f"{what} needs {format_bytes(needed / max(1, len(work)))} on the device "
                    f"{device.name!r} beside its kernel matrix, where "
                    f"{format_bytes(device.free())} are free. Let go of tensors that are held "
                    "there, or use backend='native'."
                ) from error
        turns = min(len(work), _MORE * turns)
