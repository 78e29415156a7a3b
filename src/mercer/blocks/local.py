"""Rows in blocks on this machine: one block after the other, each checked as it comes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mercer import deadline
from mercer.blocks.base import Block, Kept, RowBlocks, added, owned

T = TypeVar("T")


class KeptHere(Kept):
    """Results held in a list, one for each block."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


class LocalBlocks(RowBlocks):
    """Blocks that come one after the other; only one of them is in memory at a time."""

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """Begin a pass over the rows."""

    def passing(self) -> Iterator[Block]:
        """Go through the blocks; past the deadline of the fit around it this raises."""
        for block in self:
            deadline.check()
            yield block

    def total(self, function: Callable[..., T], *shared: Any) -> T:
        """Add up over the blocks."""
        total: Any = None
        for number, block in enumerate(self.passing()):
            result = function(block, *shared)
            total = added(total, result) if number else owned(result)
        return total  # type: ignore[no-any-return]

    def gather(self, function: Callable[..., T], *shared: Any) -> list[T]:
        """List the results."""
        return [function(block, *shared) for block in self.passing()]

    def start(self, function: Callable[..., Any], *shared: Any) -> KeptHere:
        """Hold the results in a list."""
        return KeptHere(self.gather(function, *shared))

    def step(self, kept: Kept, function: Callable[..., Any], *shared: Any) -> tuple[KeptHere, Any]:
        """Change the list."""
        assert isinstance(kept, KeptHere)
        values, total = [], None
        for number, block in enumerate(self.passing()):
            value, result = function(block, kept.values[number], *shared)
            values.append(value)
            total = added(total, result) if number else owned(result)
        return KeptHere(values), total
