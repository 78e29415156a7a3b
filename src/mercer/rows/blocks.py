"""Rows in blocks: the interface, local blocks, checks, and results kept for each block."""

from __future__ import annotations

import errno
import mmap
import pickle
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan
from typing import IO, Any, TypeVar
from weakref import WeakSet, finalize

import numpy as np

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.resources import rows_at_once, within_budget
from mercer.rows.points import as_points, is_objects, is_sparse, row_count, take

# --- base ----------------------------------------------------------------------------------------
#
# What rows in blocks are: functions run where a block is, and sums of small results come back.

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


# --- local ---------------------------------------------------------------------------------------
#
# Rows in blocks on this machine: one block after the other, each checked as it comes.

_QUICK = 65536  # rows of a block: passes over more at a time are no quicker
_COPIES = 3  # of a block: as it is read, as floats, and what is computed from it


def rows_of_block(columns: int) -> int:
    """Return how many rows a block has, by the memory budget."""
    return rows_at_once(columns, _QUICK, arrays=_COPIES)


def checked_rows(rows: int | None, columns: int) -> int:
    """Return the rows of a block: as given, or by the memory budget."""
    if rows is None:
        return rows_of_block(columns)
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"rows={rows!r} must be a whole number of at least 1, or None")
    return int(rows)


class LocalBlocks(RowBlocks):
    """Blocks that come one after the other; only one of them is in memory at a time."""

    _shape: BlockShape | None = None
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
            self._shape = BlockShape.of(block) if self._shape is None else self._shape
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
        return self if y is None and weights is None else BlocksWithTargets(self, y, weights)


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


class BlocksWithTargets(LocalBlocks):
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


def mapped_file(X: Any) -> Any:
    """Return the mapped array whose file X lies in; None for an array in memory."""
    while isinstance(X, np.ndarray):
        below: Any = X.base
        if isinstance(X, np.memmap) and isinstance(below, mmap.mmap):
            return X
        X = below
    return None


def is_past_memory(X: Any) -> bool:
    """Return whether X is mapped from a file and takes more than half of the memory budget."""
    if not isinstance(X, np.ndarray) or X.base is None or X.ndim != 2:
        return False
    return mapped_file(X) is not None and not within_budget(2 * X.nbytes)


# --- checks --------------------------------------------------------------------------------------
#
# What a block must be: columns and type of the others, numbers, one target for each row.


@dataclass(frozen=True)
class BlockShape:
    """What all blocks have in common.

    Attributes
    ----------
    columns : int
        Columns of the rows.
    dtype : dtype
        Of their entries: float32 or float64.
    sparse : bool
        Whether rows are CSR.
    targets : int or None
        Dimensions of the targets; None where there are none.
    weights : bool
        Whether rows have weights.
    """

    columns: int
    dtype: Any
    sparse: bool
    targets: int | None
    weights: bool

    @classmethod
    def of(cls, block: Block) -> BlockShape:
        """Look at a block."""
        return cls(
            int(block.X.shape[1]),
            np.dtype(block.X.dtype),
            is_sparse(block.X),
            None if block.y is None else block.y.ndim,
            block.weights is not None,
        )

    def __str__(self) -> str:
        rows = f"{self.columns} columns of {'sparse ' if self.sparse else ''}{self.dtype}"
        targets = "no targets" if self.targets is None else f"targets of {self.targets} dimension"
        return f"{rows}, {targets}, {'weights' if self.weights else 'no weights'}"


def made_block(X: Any, y: Any, weights: Any, first: int, number: int) -> Block:
    """Return rows, targets and weights as a block; what is none is refused, by block and row."""
    try:
        points = as_points(X)
    except (TypeError, ValueError) as error:
        raise type(error)(f"block {number} (from row {first}): {error}") from error
    if is_objects(points):
        raise TypeError(
            f"block {number}: rows of blocks are numbers, but these are strings or lists; fit a "
            "sample that fits in memory"
        )
    _refuse_nonfinite(points, first, number)
    n = row_count(points)
    y = None if y is None else _targets(y, n, first, number)
    weights = None if weights is None else _weights(weights, n, first, number)
    return Block(points, y, weights, first)


def refuse_other_shape(block: Block, like: BlockShape, number: int) -> None:
    """Raise if a block differs from the first one in columns, type, targets or weights."""
    found = BlockShape.of(block)
    if found != like:
        raise ValueError(
            f"block {number} (from row {block.first}) has {found}, but block 0 has {like}; give "
            "all blocks the same columns and one type, e.g. X.astype('float64')"
        )


def _refuse_nonfinite(X: Any, first: int, number: int) -> None:
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    if is_sparse(X):
        place = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        column = int(X.indices[place])
    else:
        row, column = (int(k) for k in np.unravel_index(int(bad.argmax()), bad.shape))
    raise ValueError(
        f"block {number} contains {kind}: {int(bad.sum())} bad value(s), the first in row {row} of "
        f"the block (row {first + row} of all), column {column}; remove those rows or fill them in"
    )


def _targets(y: Any, n: int, first: int, number: int) -> Array:
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != n:
        raise ValueError(
            f"block {number} (from row {first}) has {n} rows, but targets of shape {values.shape}"
        )
    missing: Array = np.zeros(n, dtype=bool)
    if values.dtype.kind == "f":
        missing = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    elif values.dtype.kind == "O":
        gaps = [v is None or (isinstance(v, float) and isnan(v)) for v in values.ravel().tolist()]
        flat = np.array(gaps, dtype=bool).reshape(values.shape)
        missing = np.asarray(flat.any(axis=tuple(range(1, values.ndim))))
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"block {number}: the target of row {row} of the block (row {first + row} of all) is "
            "missing or not finite; remove that row"
        )
    return values


def _weights(weights: Any, n: int, first: int, number: int) -> Array:
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"block {number}: sample weights must be numbers: {error}") from error
    if values.shape != (n,):
        raise ValueError(
            f"block {number} (from row {first}) has {n} rows, but weights of shape {values.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        raise ValueError(
            f"block {number}: sample weights must be finite and nonnegative; that of row {bad[0]} "
            f"of the block (row {first + bad[0]} of all) is {values[bad[0]]}"
        )
    return values


# --- kept ----------------------------------------------------------------------------------------
#
# What is kept of blocks on this machine: in memory within a share of the budget, then in a file.
#
# A vector of a number for each row is small beside the rows, but not beside a budget that the
# rows exceed many times.

_SHARE = 0.25  # of the budget, for all that is kept of the blocks of one table


class Shelf:
    """The room that all that is kept of one table shares.

    Attributes
    ----------
    kept : WeakSet of KeptHere
        What is alive: what nobody holds any more gives its room back.
    """

    def __init__(self) -> None:
        self.kept: WeakSet[KeptHere] = WeakSet()

    def empty(self) -> KeptHere:
        """Return a list to keep results in."""
        made = KeptHere(self)
        self.kept.add(made)
        return made

    def has_room(self, size: int) -> bool:
        """Return whether so many bytes more stay within the share."""
        return within_budget((size + sum(one.bytes for one in self.kept)) / _SHARE)


class KeptHere(Kept):
    """Results, one for each block, in their order.

    Attributes
    ----------
    bytes : int
        What those in memory take.
    """

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.bytes = shelf, 0
        self._values: list[Any] = []  # a result, or its place in the file
        self._file: IO[bytes] | None = None  # without a name: gone with this object

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: Any) -> None:
        """Keep the result of the next block."""
        size = serialised_bytes(value)
        if self.shelf.has_room(size):
            self.bytes += size
            self._values.append(value)
        else:
            self._values.append(self._written(value))

    def __getitem__(self, number: int) -> Any:
        found = self._values[number]
        if not isinstance(found, FilePosition):
            return found
        assert self._file is not None
        self._file.seek(found.offset)
        return pickle.load(self._file)

    def _written(self, value: Any) -> FilePosition:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="mercer-")
                finalize(self, self._file.close)
            place = FilePosition(self._file.seek(0, 2))
            pickle.dump(value, self._file, protocol=5)
            self._file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(
                error.errno,
                "what is kept of each row exceeds the memory budget and goes to a file, but "
                f"{tempfile.gettempdir()} is full; let TMPDIR name a folder with room, or allow "
                "more memory: mercer.config(memory=...)",
            ) from error
        return place


class FilePosition:
    """Where a result begins in the file."""

    def __init__(self, offset: int) -> None:
        self.offset = offset


def serialised_bytes(value: Any) -> int:
    """Count the bytes that a value has when it is written; arrays are not copied for it."""
    buffers: list[Any] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + int(sum(buffer.raw().nbytes for buffer in buffers))
