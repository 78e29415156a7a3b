"""Rows in blocks on this machine: one block after the other, each checked as it comes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from mercer import deadline
from mercer.blocks.base import Block, Kept, RowBlocks, added, mapped_rows, owned
from mercer.blocks.checks import Shape, made_block, refuse_other_shape
from mercer.blocks.kept import KeptHere, Shelf
from mercer.resources import rows_at_once

T = TypeVar("T")

_QUICK = 65536  # rows of a block: passes over more at a time are no quicker
_COPIES = 3  # of a block: as it is read, as floats, and what is computed from it


def rows_of_block(columns: int) -> int:
    """Return how many rows a block has, by the memory budget."""
    return rows_at_once(columns, _QUICK, arrays=_COPIES)


class LocalBlocks(RowBlocks):
    """Blocks that come one after the other; only one of them is in memory at a time."""

    _shape: Shape | None = None
    _lengths: list[int] | None = None  # of the blocks, once a pass was whole
    _shelf: Shelf | None = None

    @abstractmethod
    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Begin a pass: rows, targets and weights of each block, as they come."""

    def __iter__(self) -> Iterator[Block]:
        """Go through the blocks, each of them checked, within the deadline of the fit around."""
        first, lengths, number = 0, [], 0
        for X, y, weights in self.parts():
            deadline.check()
            block = made_block(X, y, weights, first, number)
            if not len(block):
                continue
            self._shape = Shape.of(block) if self._shape is None else self._shape
            refuse_other_shape(block, self._shape, number)
            self._refuse_change(number, len(block))
            yield block
            first, number = first + len(block), number + 1
            lengths.append(len(block))
        if not lengths:
            raise ValueError("the blocks have no rows")
        self._refuse_change(number, 0)
        self._lengths, self.n_rows = lengths, first

    def _refuse_change(self, number: int, rows: int) -> None:
        """Raise if a pass does not give the blocks that passes before gave."""
        if self._lengths is None:
            return
        before = self._lengths[number] if number < len(self._lengths) else 0
        if before != rows:
            raise ValueError(
                f"block {number} had {before} rows in an earlier pass and has {rows} now: rows "
                "must not change while a machine is fitted, and a function that gives blocks must "
                "begin anew at each call"
            )

    def total(self, function: Callable[..., T], *shared: Any) -> T:
        """Add up over the blocks."""
        total: Any = None
        for number, block in enumerate(self):
            result = function(block, *shared)
            total = added(total, result) if number else owned(result)
        return total  # type: ignore[no-any-return]

    def gather(self, function: Callable[..., T], *shared: Any) -> list[T]:
        """List the results."""
        return [function(block, *shared) for block in self]

    def start(self, function: Callable[..., Any], *shared: Any) -> KeptHere:
        """Keep the results in memory, or in a file where the budget is less."""
        kept = self.shelf.empty()
        for block in self:
            kept.append(function(block, *shared))
        return kept

    def step(self, kept: Kept, function: Callable[..., Any], *shared: Any) -> tuple[KeptHere, Any]:
        """Make new results of the old ones."""
        assert isinstance(kept, KeptHere)
        new, total = self.shelf.empty(), None
        for number, block in enumerate(self):
            value, result = function(block, kept[number], *shared)
            new.append(value)
            total = added(total, result) if number else owned(result)
        return new, total

    def mapped(self, function: Callable[..., Any], *shared: Any) -> MappedBlocks:
        """Keep rows made of rows."""
        return MappedBlocks(self.start(mapped_rows, function, shared))

    @property
    def shelf(self) -> Shelf:
        """The room for what is kept of these blocks."""
        if self._shelf is None:
            self._shelf = Shelf()
        return self._shelf

    def with_targets(self, y: Any = None, weights: Any = None) -> RowBlocks:
        """Return the same rows with targets and weights from arrays, one entry for each row."""
        return self if y is None and weights is None else Beside(self, y, weights)


class MappedBlocks(LocalBlocks):
    """Rows made of other rows, as they were kept; see `RowBlocks.mapped`."""

    def __init__(self, kept: KeptHere) -> None:
        self.kept = kept
        self._shelf = kept.shelf
        self.n_rows = None
        some: Block = kept[0]
        self.n_columns, self.dtype = int(some.X.shape[1]), np.dtype(some.X.dtype)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Take what was kept."""
        for number in range(len(self.kept)):
            block: Block = self.kept[number]
            yield block.X, block.y, block.weights


class Beside(LocalBlocks):
    """Blocks whose targets, weights or both are arrays beside them."""

    def __init__(self, blocks: LocalBlocks, y: Any = None, weights: Any = None) -> None:
        self.blocks = blocks
        self.y = None if y is None else np.asarray(y)
        self.weights = None if weights is None else np.asarray(weights)
        n = blocks.count()
        for name, array in (("y", self.y), ("sample_weight", self.weights)):
            if array is not None and (array.ndim == 0 or len(array) != n):
                raise ValueError(f"{name} has shape {array.shape}, but the blocks have {n} rows")
        self.n_rows, self.n_columns = n, blocks.n_columns
        self.dtype, self.names = blocks.dtype, blocks.names

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Cut the arrays as the rows are cut."""
        for block in self.blocks:
            rows = slice(block.first, block.first + len(block))
            y = block.y if self.y is None else self.y[rows]
            yield block.X, y, block.weights if self.weights is None else self.weights[rows]
