"""What rows in blocks are: functions run where a block is, and sums of small results come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mercer.array_types import Array, Points
from mercer.points import is_sparse, row_count, take

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows, side by side in memory.

    Attributes
    ----------
    X : Points
        Rows: a float array, or CSR.
    y : array or None
        Targets of these rows, if there are any.
    weights : (n,) array or None
        How often each row counts; None is once.
    first : int
        Number of the first row among all rows.
    """

    X: Points
    y: Array | None = None
    weights: Array | None = None
    first: int = 0

    def __len__(self) -> int:
        return row_count(self.X)

    @property
    def counts(self) -> Array:
        """How often each row counts: the weights, or ones."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def only(self, rows: Any) -> Block:
        """Return some of the rows, by a slice, a mask or their numbers."""
        y = None if self.y is None else self.y[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Block(take(self.X, rows), y, weights, self.first)


class Kept(ABC):  # noqa: B024  what it holds is known to the blocks that made it alone
    """Results of a function, one for each block, kept where the block is."""


@dataclass(frozen=True)
class Least:
    """A number of which the least over blocks is wanted: ``Least(3) + Least(2)`` is the second."""

    value: float

    def __add__(self, other: Least) -> Least:
        return self if self.value <= other.value else other


@dataclass(frozen=True)
class Largest:
    """A number of which the largest over blocks is wanted; NaN, once seen, stays."""

    value: float

    def __add__(self, other: Largest) -> Largest:
        return self if self.value >= other.value or self.value != self.value else other


def added(total: Any, result: Any) -> Any:
    """Add the result of a block to a sum: numbers, arrays, tuples of them, anything with `+`.

    Parameters
    ----------
    total : object
        The sum so far, owned by the caller: arrays in it are changed in place.
    result : object
        Of the next block; it is not changed.

    Returns
    -------
    object
        The sum.

    Examples
    --------
    >>> added((1, np.zeros(2)), (2, np.ones(2)))
    (3, array([1., 1.]))
    """
    if isinstance(total, tuple):
        return tuple(added(a, b) for a, b in zip(total, result, strict=True))
    if isinstance(total, np.ndarray) and total.ndim:
        total += result
        return total
    return None if total is None else total + result


def owned(result: Any) -> Any:
    """Return a result whose arrays belong to nobody else, to begin a sum with."""
    if isinstance(result, tuple):
        return tuple(map(owned, result))
    return result.copy() if isinstance(result, np.ndarray) else result


class RowBlocks(ABC):
    """Rows in blocks, held in memory, in files, or on a cluster.

    Fits over blocks see them through these verbs alone. `function` is a function of a module, so
    that it can travel to where the blocks are; `shared` are small: of the size of the centres, not
    of the rows. Time limits, Ctrl-C and the memory budget hold between blocks.

    Attributes
    ----------
    n_rows : int or None
        Rows in all; None where nobody has counted them yet: `count` does.
    n_columns : int
        Columns of every block.
    dtype : dtype
        Of the entries of every block: float32 or float64.
    names : tuple of str or None
        Names of the columns, where they have any.
    """

    n_rows: int | None
    n_columns: int
    dtype: Any
    names: tuple[str, ...] | None = None

    @abstractmethod
    def total(self, function: Callable[..., T], *shared: Any) -> T:
        """Return the sum over blocks, in their order, of ``function(block, *shared)``.

        Results are numbers, arrays, tuples of them, or things with `+` such as `Least`.
        """

    @abstractmethod
    def gather(self, function: Callable[..., T], *shared: Any) -> list[T]:
        """Return ``function(block, *shared)`` of each block, in order: small results."""

    @abstractmethod
    def start(self, function: Callable[..., Any], *shared: Any) -> Kept:
        """Keep ``function(block, *shared)`` of each block where the block is."""

    @abstractmethod
    def step(self, kept: Kept, function: Callable[..., Any], *shared: Any) -> tuple[Kept, Any]:
        """Change what is kept: ``function(block, kept_b, *shared) -> (kept_b, small result)``.

        Returns
        -------
        tuple
            What is kept now, and the sum of the results.
        """

    @abstractmethod
    def mapped(self, function: Callable[..., Any], *shared: Any) -> RowBlocks:
        """Return rows made of these, kept where the blocks are.

        ``function(block, *shared)`` gives as many rows as the block has; targets and weights stay.
        """

    def with_targets(self, y: Any = None, weights: Any = None) -> RowBlocks:
        """Return the same rows with targets and weights from arrays, one entry for each row."""
        raise TypeError(
            f"{type(self).__name__} has its targets in the blocks; give y and weights where the "
            "blocks are made"
        )

    def count(self) -> int:
        """Return the number of rows; where nobody knows it, a pass counts them."""
        if self.n_rows is None:
            self.n_rows = int(self.total(len))
        return self.n_rows

    def sample(self, count: int, random_state: int = 0) -> Block:
        """Return rows drawn at random without replacement, brought here in their order.

        Rows of weight zero are not there, so they are not drawn.

        Parameters
        ----------
        count : int
            Rows to draw; all of them where there are no more.
        random_state : int
            Seed of the draw.
        """
        there = self.gather(rows_that_count)
        ends = np.cumsum([n for _, n in there])
        total = int(ends[-1]) if len(ends) else 0
        drawn = np.arange(total)
        if total > count:
            drawn = np.random.default_rng(random_state).choice(total, count, replace=False)
            drawn.sort()
        cuts = np.searchsorted(drawn, ends)
        parts: dict[int, Array] = {}
        for (first, n), end, low, high in zip(
            there, ends.tolist(), [0, *cuts[:-1].tolist()], cuts.tolist(), strict=True
        ):
            parts[first] = drawn[low:high] - (end - n)
        return joined([b for b in self.gather(chosen_rows, parts) if b is not None])


def mapped_rows(block: Block, function: Callable[..., Any], shared: tuple[Any, ...]) -> Block:
    """Return a block with other rows, made by a function."""
    return Block(function(block, *shared), block.y, block.weights, block.first)


def rows_that_count(block: Block) -> tuple[int, int]:
    """Return the number of the first row, and how many rows have a positive weight."""
    if block.weights is None:
        return block.first, len(block)
    return block.first, int(np.count_nonzero(block.weights))


def chosen_rows(block: Block, parts: dict[int, Array]) -> Block | None:
    """Return the rows of a block that were drawn among those that count."""
    chosen = parts[block.first]
    if not len(chosen):
        return None
    if block.weights is not None:
        chosen = np.flatnonzero(block.weights)[chosen]
    part = block.only(chosen)
    return Block(part.X, part.y, part.weights, block.first + int(chosen[0]))


def joined(blocks: list[Block]) -> Block:
    """Return blocks below one another as one block; there must be one at least."""
    if not blocks:
        raise ValueError("no rows: every block is empty, or all weights are zero")
    from scipy import sparse  # noqa: PLC0415  only where rows are joined

    X: Any = [block.X for block in blocks]
    X = sparse.vstack(X, format="csr") if is_sparse(X[0]) else np.concatenate(X)
    y = None if blocks[0].y is None else np.concatenate([b.y for b in blocks if b.y is not None])
    weights = None
    if blocks[0].weights is not None:
        weights = np.concatenate([b.counts for b in blocks])
    return Block(X, y, weights, blocks[0].first)
