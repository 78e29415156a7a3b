"""Nearest neighbours on a device: blocks of float64 keys, of which each row keeps the smallest.

Distances are first searched by kernels (`fusing/nearest`), which give some more columns than asked
for, and a distance that no other is nearer than. These columns are measured in float64; rows in
which that leaves a doubt are searched again by blocks.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Points
from mercer.backends.reference.closeness import closeness
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.pairs import TorchPairs
from mercer.backends.torch.statistics import put_differences
from mercer.expression import Expression, SqDist
from mercer.resources import MemoryBudgetError

Tensor: TypeAlias = torch.Tensor
_ROUNDING = 1e-13  # of |x|^2 + |y|^2: more than products of rows can be off
_SMALLEST = 1e-290  # squares below it lose digits
_AT_ONCE = 1 << 16  # rows of one search by kernels: enough for any card
_DOUBTS = 0.5  # share of rows in doubt from which on a way to search is left out for the next ones
_COPIES = 6  # of the columns, in float64: what a search by kernels holds of them


def neighbours(
    expression: Expression,
    X: Points,
    Y: Points | None,
    count: int,
    device: Device,
    fused: bool = False,
) -> tuple[Array, Array]:
    """Find the `count` nearest rows of Y for each row of X; see `Backend.neighbours`.

    Kernels search first where work may be `fused`.
    """
    order = closeness(expression)
    pairs = TorchPairs(order.key, X, Y, np.float64, device)
    search = _Search(pairs, order.key, Y is None, count, device)
    search.by_blocks(search.by_kernels() if fused and search.suits_kernels() else None)
    search.index[~(search.key < np.inf)] = -1
    return search.index, order.squared(search.key)


class _Search:
    """What is searched, and what was found: numbers and keys of each row."""

    def __init__(
        self, pairs: TorchPairs, key: Expression, own: bool, count: int, device: Device
    ) -> None:
        self._pairs, self._key, self._own = pairs, key, own
        self._count, self._device = count, device
        shape = (pairs.shape[0], count)
        self.index, self.key = np.empty(shape, dtype=np.int64), np.empty(shape)

    # --- blocks of all keys ----------------------------------------------------------------------

    def by_blocks(self, rows: Array | None) -> None:
        """Search all columns for some rows, or for all."""
        n, m = self._pairs.shape

        def search(entries: int) -> None:
            for part in parts(n if rows is None else len(rows), entries // max(1, m)):
                some = part if rows is None else rows[part]
                block = self._pairs.block(some, slice(0, m))
                if self._own:
                    own = np.arange(part.start, part.stop) if rows is None else rows[part]
                    block[torch.arange(len(own)), torch.from_numpy(own)] = torch.inf
                block = torch.where(block.isnan(), torch.inf, block)
                if isinstance(self._key, SqDist) and self._count:
                    _measure_again(block, self._pairs, some, self._count)
                values, numbers = smallest(block, self._count)
                self.index[some], self.key[some] = to_host(numbers), to_host(values)

        self._device.in_blocks(search, f"a block of distances to {m} points")

    # --- kernels ---------------------------------------------------------------------------------

    def suits_kernels(self) -> bool:
        """Return whether kernels can search for the key, and have room for the columns."""
        if len(self._pairs.leaves) != 1 or not self._pairs.shape[0]:
            return False
        from mercer.backends.torch.fusing.nearest.searching import suits  # noqa: PLC0415  imports Triton

        columns = self._pairs.leaves[0].columns
        m, d = columns.shape
        room = columns.is_resident and self._device.has_room(8.0 * _COPIES * m * d)
        return room and suits(self._key, self._count + self._own, m, d)

    def by_kernels(self) -> Array:
        """Search by kernels, the quickest way first; return the rows that are still in doubt."""
        from triton.runtime.errors import OutOfResources  # noqa: PLC0415  Triton may be missing

        from mercer.backends.torch.fusing.nearest.searching import searches  # noqa: PLC0415  imports Triton

        wanted = self._count + self._own

        def search(entries: int) -> Array:
            columns = self._pairs.leaves[0].columns.block(slice(None))
            ways = searches(self._key, columns, wanted)
            height = entries // ways[0].width
            left = [np.empty(0, dtype=np.int64)]
            for part in parts(len(self.index), min(_AT_ONCE, height)):
                rows = np.arange(part.start, part.stop)
                for way in tuple(ways):
                    doubtful = [
                        self._by_candidates(rows[some], way)
                        for some in parts(len(rows), entries // way.width)
                    ]
                    asked, rows = len(rows), np.concatenate([rows[:0], *doubtful])
                    if len(rows) > _DOUBTS * asked:
                        ways.remove(way)
                left.append(rows)
            return np.concatenate(left)

        try:
            return self._device.in_blocks(search, "a search for candidates")
        except (OutOfResources, MemoryBudgetError):  # blocks may still have room
            return np.arange(len(self.index))

    def _by_candidates(self, rows: Array, way: Any) -> Array:
        """Measure the candidates of some rows; return the rows that others may be nearer to."""
        from mercer.backends.torch.fusing.nearest.measuring import measure  # noqa: PLC0415  imports Triton

        (leaf,) = self._pairs.leaves
        found = way.search(leaf.rows.block(rows))
        numbers = found.numbers
        if self._own:
            own = torch.from_numpy(rows).to(numbers.device)
            numbers = torch.where(numbers == own[:, None], -1, numbers)
        X, Y = leaf.rows.block(rows, about=False), leaf.columns.block(slice(None), about=False)
        values, numbers = _by_number(measure(X, Y, numbers, self._key), numbers)
        farthest = values[:, self._count - 1]
        is_sure = farthest * (1.0 + _ROUNDING) + _SMALLEST < found.bound
        self.index[rows] = to_host(numbers[:, : self._count].contiguous())
        self.key[rows] = to_host(values[:, : self._count].contiguous())
        return rows[~to_host(is_sure)]


def _measure_again(block: Tensor, pairs: TorchPairs, rows: Any, count: int) -> None:
    """Replace distances that may be among the smallest by sums of squared differences.

    Rows that are equally far are then so to the last bit, and the first of them is found.
    """
    (leaf,) = pairs.leaves
    X, Y = leaf.rows.block(rows), leaf.columns.block(slice(0, pairs.shape[1]))
    lengths = X.square().sum(dim=1) + Y.square().sum(dim=1).amax()
    bound = block.kthvalue(count, dim=1).values + _ROUNDING * lengths
    near = (block <= bound[:, None]) & (block < torch.inf)
    X, Y = leaf.rows.block(rows, about=False), leaf.columns.block(slice(None), about=False)
    put_differences(block, X, Y, near)


def smallest(block: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the smallest entries of each row and their numbers; of equal ones the first.

    Examples
    --------
    >>> values, numbers = smallest(torch.tensor([[2.0, 1.0, 1.0, 0.0, 1.0]]), 3)
    >>> numbers.tolist()
    [[3, 1, 2]]
    """
    values, numbers = _by_number(*block.topk(count, dim=1, largest=False))
    if not count:
        return values, numbers
    tied = (block <= values[:, -1:]).sum(dim=1) > count  # torch keeps any of them
    if tied.any():
        again = block[tied].sort(dim=1, stable=True)
        values[tied], numbers[tied] = again.values[:, :count], again.indices[:, :count]
    return values, numbers


def _by_number(values: Tensor, numbers: Tensor) -> tuple[Tensor, Any]:
    """Sort by values, equal ones by their numbers."""
    numbers, first = numbers.sort(dim=1)
    values, then = values.gather(1, first).sort(dim=1, stable=True)
    return values, numbers.gather(1, then)
