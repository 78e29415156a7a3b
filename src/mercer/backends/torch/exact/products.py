"""Float64 products K V on a GPU, and products with landmark rows stored to 40 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import torch

from mercer import deadline
from mercer.array_types import Index
from mercer.backends.lowering import Code, FlatProgram
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.evaluate import CenteredRows, Operands, may_be_near, squared_distances
from mercer.backends.torch.exact.cuda import (
    MOST,
    PRODUCT,
    THREADS,
    TRIP,
    BlockTile,
    Depth,
    EntryStore,
    Formula,
    formula_of,
    product_shared_bytes,
    product_text,
    trip_shared_bytes,
    trip_text,
)
from mercer.backends.torch.nvrtc import is_compiled
from mercer.backends.torch.nvrtc import kernel as kernel_of
from mercer.backends.torch.svm.programs import prepared
from mercer.expression import Dot, SqDist
from mercer.resources import MemoryBudgetError

# --- one pass ------------------------------------------------------------------------------------
#
# Rows of exp(c |x - y|^2) in float64 and their product with a column, without tensor cores.

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, eq=False)
class OnePass:
    """Exponentials, their sums and the search for rows that are near, in one pass over a block.

    Parameters
    ----------
    rows, columns : Rows
        The points, which a card has.
    op : Any
        The exponential: its two constants.
    """

    rows: CenteredRows
    columns: CenteredRows
    op: Any

    @classmethod
    def of(cls, program: FlatProgram, leaves: Sequence[Any]) -> OnePass | None:
        """Return the way for a formula; None unless it is exp of one squared distance."""
        if [op.code for op in program.ops] != [Code.EXP] or len(leaves) != 1:
            return None
        leaf, rows, columns = leaves[0]
        if not isinstance(leaf, SqDist) or not (rows.is_resident and columns.is_resident):
            return None
        return cls(rows, columns, program.ops[0])

    def multiply(
        self, part: slice, right: Tensor, block: Callable[[Index, slice], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Return some rows, and their product with one column.

        Parameters
        ----------
        part : slice
            The rows.
        right : (m, 1) tensor
            The column, in float64.
        block : callable
            Evaluates rows whose distances are to be looked at one by one.
        """
        from mercer.backends.torch.triton.special import exponential_times  # noqa: PLC0415  imports Triton

        deadline.check()
        whole = slice(0, len(right))
        K, x, y = squared_distances(self.rows.block(part), self.columns.block(whole))
        values, smallest = exponential_times(K, self.op.c0, self.op.c1, right[:, 0])
        again = (may_be_near(smallest, x, y) | ~values.isfinite()).nonzero()[:, 0]
        if len(again):  # few, as a rule
            K[again] = block(again + part.start, whole)
            values[again] = (K[again] @ right)[:, 0]
        return K, values[:, None]


# --- products ------------------------------------------------------------------------------------
#
# K V of a formula of one squared distance or product of rows, in float64 by tensor cores.

TILE = BlockTile()
_MOST_TARGETS = 4  # columns of V at a time: registers hold a sum for each
_FEW_TARGETS = 8  # of V in all: K is evaluated anew for each four
_LEAST = 1 << 29  # entries of K: with fewer, blocks are done before a kernel is compiled
_BLOCKS = 1 << 13  # of threads, at least: so many that all places end together
_LONGEST = 1e145  # entry of a row: squares are numbers, and so are sums of them
_PRODUCTS_TURNS, _HELD = 6, 1 << 15  # parts of a sweep, and rows that one of them has at least
_WALK = 16  # tiles of columns of a block of threads, at least
_AT_ONCE = 1 << 35  # entries of a launch: a fifth of a second, after which Ctrl-C is heard


class ExactSide(NamedTuple):
    """Rows about the centre, padded by zeros, and their squared lengths."""

    points: Tensor
    lengths: Tensor

    def part(self, index: slice) -> ExactSide:
        """Return some of them."""
        return ExactSide(self.points[index], self.lengths[index])


class _Beside:
    """A second stream of a card, so that what waits for the host keeps nothing else waiting."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def mark(self) -> Any:
        """Note what was started so far."""
        if self._stream is None:
            return None
        return torch.cuda.current_stream(self._device).record_event()

    def run(self, ready: Any, work: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """Return work(*arguments), which needs no more than was started at a mark."""
        if self._stream is None:
            return work(*arguments)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(ready)
            found = work(*arguments)
        here = torch.cuda.current_stream(self._device)
        here.wait_stream(self._stream)
        found.record_stream(here)
        return found


@dataclass(frozen=True, eq=False)
class ExactPairs:
    """A formula bound to rows on a card.

    Attributes
    ----------
    formula : Formula
        What an entry is.
    operands : Operands
        What is compared.
    device : Device
        Where.
    """

    formula: Formula
    operands: Operands
    device: Device

    @classmethod
    def of(cls, program: FlatProgram, leaves: list[Operands], device: Device) -> ExactPairs | None:
        """Bind a program; None where it is none of this kind, small, or no work for the card."""
        if len(leaves) != 1 or not isinstance(leaves[0].leaf, SqDist | Dot):
            return None
        _, rows, columns = leaves[0]
        resident = rows.is_resident and columns.is_resident and rows.shape[1] > 0
        few = rows.shape[0] * columns.shape[0] < _LEAST
        if few or not resident or not device.has_float64_cores or not is_compiled():
            return None
        try:
            short = rows.largest < _LONGEST and columns.largest < _LONGEST  # and numbers
        except torch.cuda.OutOfMemoryError:  # to look at all rows takes some copies of them
            torch.cuda.empty_cache()
            return None
        if not short:
            return None
        formula = formula_of(program)
        return None if formula is None else cls(formula, leaves[0], device)

    @property
    def depth(self) -> Depth:
        """How features are held."""
        return Depth.of(self.operands.rows.shape[1])

    def rows(self, index: Index) -> ExactSide:
        """Return some rows as the kernel reads them."""
        return self._side(self.operands.rows, index)

    def columns(self, index: slice = slice(None)) -> ExactSide:
        """Return some columns as the kernel reads them."""
        return self._side(self.operands.columns, index)

    def _side(self, rows: CenteredRows, index: Index) -> ExactSide:
        block = rows.block(index)
        padded = torch.nn.functional.pad(block, (0, self.depth.padded - block.shape[1]))
        return ExactSide(padded.contiguous(), padded.square().sum(dim=1))

    def takes(self, V: Tensor) -> bool:
        """Return whether so many columns are multiplied sooner than by blocks that are stored."""
        return bool(0 < V.shape[1] <= _FEW_TARGETS)

    def times(self, V: Tensor, entries: int) -> Tensor:
        """Return K V, rows being padded in blocks of so many entries."""
        columns = self.columns()
        found = [self.product(self.rows(part), columns, V) for part in self._parts(entries)]
        return torch.cat(found)

    def sweep(self, V: Tensor, change: Callable[[slice, Tensor], Tensor], entries: int) -> Tensor:
        """Return K' g(K V); g is given rows and values. All of K is evaluated twice."""
        n = self.operands.rows.shape[0]
        entries = min(entries, self.depth.padded * max(_HELD, -(-n // _PRODUCTS_TURNS)))
        columns, total, steps = self.columns(), torch.zeros(0), list(self._parts(entries))

        def there(part: slice) -> tuple[ExactSide, Tensor]:
            rows = self.rows(part)
            return rows, self.product(rows, columns, V)

        beside, following = _Beside(V.device), there(steps[0])
        for done, part in enumerate(steps):
            rows, values = following
            ready = beside.mark()
            if part.stop < n:  # the card goes on while the host has this part
                following = there(steps[done + 1])
            some = self.product(columns, rows, beside.run(ready, change, part, values))
            total = total + some if done else some
        return total

    def _parts(self, entries: int) -> Iterator[slice]:
        return parts(self.operands.rows.shape[0], entries // self.depth.padded)

    def product(self, left: ExactSide, right: ExactSide, V: Tensor) -> Tensor:
        """Return K V between two sides, in either order of them."""
        groups = [
            self._product(left, right, V[:, some].contiguous())
            for some in parts(V.shape[1], _MOST_TARGETS)
        ]
        return groups[0] if len(groups) == 1 else torch.cat(groups, dim=1)

    def entries(self, left: ExactSide, right: ExactSide) -> Tensor:
        """Return K."""
        m = len(right.points)
        wide = m + m % 2  # pairs of entries are written together
        K = self.device.empty((len(left.points), wide), torch.float64)
        self._start(left, right, None, EntryStore.FLOAT64, K, wide=wide)
        return K[:, :m]

    def write_planes(self, left: ExactSide, right: ExactSide, high: Tensor, low: Tensor) -> None:
        """Write K to 40 bits: float32, and 16 bits behind them; see `products.py`."""
        self._start(left, right, None, EntryStore.PLANES, high, low, wide=high.shape[1])

    def _product(self, left: ExactSide, right: ExactSide, V: Tensor) -> Tensor:
        n, m = len(left.points), len(right.points)
        total = V.new_zeros((n, V.shape[1]))
        across = max(1, min(m, _AT_ONCE // max(1, n)))
        for done, some in enumerate(parts(m, across)):
            if done:
                torch.cuda.current_stream(total.device).synchronize()  # time limits hold
            total += self._start(left, right.part(some), V[some], EntryStore.NOTHING)
        return total

    def _start(
        self,
        left: ExactSide,
        right: ExactSide,
        V: Tensor | None,
        store: EntryStore,
        K: Tensor | None = None,
        low: Tensor | None = None,
        wide: int = 0,
    ) -> Tensor:
        n, m, targets = len(left.points), len(right.points), 0 if V is None else V.shape[1]
        if not n or not m:
            return left.lengths.new_zeros((n, targets))
        down, tiles = -(-n // TILE.rows), -(-m // TILE.columns)
        span = tiles if not targets else max(_WALK, -(-tiles // max(1, -(-_BLOCKS // down))))
        count = -(-tiles // span)
        out = left.lengths.new_empty((count, n, targets))
        kernel = compiled_product(
            self.formula.body,
            len(self.formula.constants),
            self.depth,
            targets,
            store,
            isinstance(self.operands.leaf, SqDist),
            self.device.name,
        )
        nothing = left.lengths
        arguments: list[Any] = [n, m, span * TILE.columns, left.points, right.points]
        arguments += [left.lengths, right.lengths, nothing if V is None else V]
        arguments += [out, nothing if K is None else K, nothing if low is None else low, wide]
        arguments += self.formula.constants
        with torch.cuda.device_of(left.points):
            shared = product_shared_bytes(TILE, self.depth, targets)
            prepared(kernel, arguments, TILE.threads, shared)((down, count, 1))
        return out.sum(dim=0)


@cache
def compiled_product(
    body: str, constants: int, depth: Depth, targets: int, store: EntryStore, apart: bool, card: str
) -> Any:
    """Compile the kernel for a card, once."""
    text = product_text(body, constants, TILE, depth, targets, store, apart)
    return kernel_of(
        text, PRODUCT, torch.device(card).index, product_shared_bytes(TILE, depth, targets)
    )


# --- planes --------------------------------------------------------------------------------------
#
# Rows at landmarks to 40 bits: a float32 number, and 16 bits behind its own.
#
# The first plane is what steps in float32 read. Both are what residuals read, in a tenth of the
# time that it takes to evaluate rows in float64: entries are off by 2^-40 of themselves, which is
# 2^-16 of what float32 is off by.

_PADDED = 16  # columns that rows are padded to, with zeros: a thread loads four of each plane
_BYTES = 6  # of an entry
_PROCESSORS = 4  # of a device that does not say
_PLANES_TURNS = 4  # blocks of threads that a multiprocessor has one after the other


class Planes:
    """Rows as two tensors.

    Parameters
    ----------
    high : (n, wide) float32 tensor
        Rows, each followed by zeros.
    low : (n, wide) int16 tensor
        What is to be added to them, in units of 2^-16 of the last place of `high`.
    columns : int
        How many are no padding.
    """

    def __init__(self, high: Tensor, low: Tensor, columns: int) -> None:
        self.high, self.low, self.columns = high, low, columns

    @classmethod
    def of(cls, pairs: ExactPairs | None, device: Device) -> Planes | None:
        """Evaluate all rows; None where they take more than half of what is free."""
        if pairs is None:
            return None
        n, m = (side.shape[0] for side in pairs.operands[1:])
        wide = -(-m // _PADDED) * _PADDED
        if m > MOST or not device.has_room(_BYTES * float(n) * wide):
            return None

        def fill(entries: int) -> Planes:
            high = device.empty((n, wide), torch.float32)
            low = device.empty((n, wide), torch.int16)
            columns = pairs.columns()
            for part in parts(n, entries // pairs.depth.padded):
                pairs.write_planes(pairs.rows(part), columns, high[part], low[part])
            return cls(high, low, m)

        try:
            return device.in_blocks(fill, f"rows at {m} landmarks")
        except (torch.cuda.OutOfMemoryError, MemoryBudgetError):
            return None

    def entries(self, rows: slice) -> Tensor:
        """Return some rows in float64."""
        bits = self.high[rows].double().view(torch.int64) + (self.low[rows].long() << 13)
        return bits.view(torch.float64)[:, : self.columns]

    def round_trip(self, v: Tensor, s: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return K'S (y - K v) and S (y - K v), each row being read once.

        Parameters
        ----------
        v : (m,) float64 tensor
            What rows are multiplied by.
        s, y : (n,) float64 tensors
            The diagonal of S, and what K v is taken off.
        """
        padded, left = torch.nn.functional.pad(v, (0, len(self.high[0]) - self.columns)), s.clone()
        (found,) = self._start(padded, s, y, left, sides=1)
        return found, left

    def pull(self, s: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return K'S y and K's, each row being read once."""
        found, mass = self._start(s, s, y, s, sides=2)
        return found, mass

    def _start(self, v: Tensor, s: Tensor, y: Tensor, left: Tensor, sides: int) -> Tensor:
        n, wide = self.high.shape
        height = _height(n, self.high.device)
        out = y.new_empty((-(-n // height), sides, wide))
        kernel = compiled_trip(wide, sides == 1, str(y.device))
        arguments = [n, height, wide, self.high, self.low, v, s, y, left, out]
        with torch.cuda.device_of(y):
            prepared(kernel, arguments, THREADS, trip_shared_bytes(wide))((len(out), 1, 1))
        return out.sum(dim=0)[:, : self.columns]


def _height(n: int, device: torch.device) -> int:
    """Return the rows of a block of threads: all multiprocessors end together."""
    together = _PROCESSORS
    if device.type == "cuda":
        together = torch.cuda.get_device_properties(device).multi_processor_count
    return max(1, -(-n // (int(together) * _PLANES_TURNS)))


@cache
def compiled_trip(wide: int, there: bool, card: str) -> Any:
    """Compile the kernel for a card, once."""
    text = trip_text(wide, there)
    return kernel_of(text, TRIP, torch.device(card).index, trip_shared_bytes(wide))
