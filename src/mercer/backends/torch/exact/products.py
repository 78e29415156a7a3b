"""K V of a formula of one squared distance or product of rows, in float64 by tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import torch

from mercer.array_types import Index
from mercer.backends.lowering.program import Program
from mercer.backends.torch.boxes.launches import prepared
from mercer.backends.torch.cuda_texts.compiling import is_compiled
from mercer.backends.torch.cuda_texts.compiling import kernel as kernel_of
from mercer.backends.torch.device import Device, parts
from mercer.backends.torch.exact.formulas import Formula, formula_of
from mercer.backends.torch.exact.product_kernel import (
    PRODUCT,
    Depth,
    Store,
    Tile,
    product_text,
    shared_bytes,
)
from mercer.backends.torch.operands import Operands, Rows
from mercer.expression import Dot, SqDist

Tensor: TypeAlias = torch.Tensor

TILE = Tile()
_MOST_TARGETS = 4  # columns of V at a time: registers hold a sum for each
_FEW_TARGETS = 8  # of V in all: K is evaluated anew for each four
_LEAST = 1 << 29  # entries of K: with fewer, blocks are done before a kernel is compiled
_BLOCKS = 1 << 13  # of threads, at least: so many that all places end together
_LONGEST = 1e145  # entry of a row: squares are numbers, and so are sums of them
_TURNS, _HELD = 6, 1 << 15  # parts of a sweep, and rows that one of them has at least
_WALK = 16  # tiles of columns of a block of threads, at least
_AT_ONCE = 1 << 35  # entries of a launch: a fifth of a second, after which Ctrl-C is heard


class Side(NamedTuple):
    """Rows about the centre, padded by zeros, and their squared lengths."""

    points: Tensor
    lengths: Tensor

    def part(self, index: slice) -> Side:
        """Return some of them."""
        return Side(self.points[index], self.lengths[index])


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
    def of(cls, program: Program, leaves: list[Operands], device: Device) -> ExactPairs | None:
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

    def rows(self, index: Index) -> Side:
        """Return some rows as the kernel reads them."""
        return self._side(self.operands.rows, index)

    def columns(self, index: slice = slice(None)) -> Side:
        """Return some columns as the kernel reads them."""
        return self._side(self.operands.columns, index)

    def _side(self, rows: Rows, index: Index) -> Side:
        block = rows.block(index)
        padded = torch.nn.functional.pad(block, (0, self.depth.padded - block.shape[1]))
        return Side(padded.contiguous(), padded.square().sum(dim=1))

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
        entries = min(entries, self.depth.padded * max(_HELD, -(-n // _TURNS)))
        columns, total, steps = self.columns(), torch.zeros(0), list(self._parts(entries))

        def there(part: slice) -> tuple[Side, Tensor]:
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

    def product(self, left: Side, right: Side, V: Tensor) -> Tensor:
        """Return K V between two sides, in either order of them."""
        groups = [
            self._product(left, right, V[:, some].contiguous())
            for some in parts(V.shape[1], _MOST_TARGETS)
        ]
        return groups[0] if len(groups) == 1 else torch.cat(groups, dim=1)

    def entries(self, left: Side, right: Side) -> Tensor:
        """Return K."""
        m = len(right.points)
        wide = m + m % 2  # pairs of entries are written together
        K = self.device.empty((len(left.points), wide), torch.float64)
        self._start(left, right, None, Store.FLOAT64, K, wide=wide)
        return K[:, :m]

    def write_planes(self, left: Side, right: Side, high: Tensor, low: Tensor) -> None:
        """Write K to 40 bits: float32, and 16 bits behind them; see `planes.py`."""
        self._start(left, right, None, Store.PLANES, high, low, wide=high.shape[1])

    def _product(self, left: Side, right: Side, V: Tensor) -> Tensor:
        n, m = len(left.points), len(right.points)
        total = V.new_zeros((n, V.shape[1]))
        across = max(1, min(m, _AT_ONCE // max(1, n)))
        for done, some in enumerate(parts(m, across)):
            if done:
                torch.cuda.current_stream(total.device).synchronize()  # time limits hold
            total += self._start(left, right.part(some), V[some], Store.NOTHING)
        return total

    def _start(
        self,
        left: Side,
        right: Side,
        V: Tensor | None,
        store: Store,
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
        kernel = compiled(
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
            shared = shared_bytes(TILE, self.depth, targets)
            prepared(kernel, arguments, TILE.threads, shared)((down, count, 1))
        return out.sum(dim=0)


@cache
def compiled(
    body: str, constants: int, depth: Depth, targets: int, store: Store, apart: bool, card: str
) -> Any:
    """Compile the kernel for a card, once."""
    text = product_text(body, constants, TILE, depth, targets, store, apart)
    return kernel_of(text, PRODUCT, torch.device(card).index, shared_bytes(TILE, depth, targets))
