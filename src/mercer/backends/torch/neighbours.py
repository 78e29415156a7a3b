"""Nearest neighbors on a device: blocks of float64 keys, of which each row keeps the smallest.

Distances are first searched by kernels (`triton/nearest`), which give some more columns than asked
for, and a distance that no other is nearer than. These columns are measured in float64; rows in
which that leaves a doubt are searched again by blocks.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import torch

from mercer.array_types import Array, Points
from mercer.backends.neighbor_order import closeness
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.evaluate import put_differences
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import Expression, SqDist
from mercer.resources import MemoryBudgetError

Tensor: TypeAlias = torch.Tensor
_ROUNDING = 1e-13  # of |x|^2 + |y|^2: more than products of rows can be off
_SMALLEST = 1e-290  # squares below it lose digits
_AT_ONCE = 1 << 16  # rows of one search by kernels: enough for any card
_DOUBTS = 0.5  # share of rows in doubt from which on a way to search is left out for the others
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
    index, key = search.found()
    return index, order.squared(key)


class _Search:
    """What is searched, and what was found: numbers and keys of each row.

    These stay on the device, where it has room for them, and come to the host once: rows of one
    search by kernels took 6 ms on an H200, and to write down on the host what came of them 9 more.
    """

    def __init__(
        self, pairs: TorchPairs, key: Expression, own: bool, count: int, device: Device
    ) -> None:
        self._pairs, self._key, self._own = pairs, key, own
        self._count, self._device = count, device
        shape = (pairs.shape[0], count)
        there = device.name if device.has_room(16.0 * math.prod(shape)) else "cpu"
        self._index = torch.empty(shape, dtype=torch.int64, device=there)
        self._keys = torch.empty(shape, dtype=torch.float64, device=there)

    def found(self) -> tuple[Array, Array]:
        """Return the numbers of each row, -1 where there are no more, and the keys."""
        self._index.masked_fill_(~(self._keys < torch.inf), -1)
        return to_host(self._index), to_host(self._keys)

    def _put(self, rows: range | Array, numbers: Tensor, keys: Tensor) -> None:
        there = self._keys.device
        some = _slice(rows) if isinstance(rows, range) else _numbers(rows, there)
        self._index[some] = numbers[:, : self._count].to(there)
        self._keys[some] = keys[:, : self._count].to(there)

    # --- blocks of all keys ----------------------------------------------------------------------

    def by_blocks(self, rows: Array | None) -> None:
        """Search all columns for some rows, or for all."""
        n, m = self._pairs.shape

        def search(entries: int) -> None:
            every = range(n) if rows is None else rows
            for part in parts(len(every), entries // max(1, m)):
                some = every[part]
                index = _slice(some) if isinstance(some, range) else some
                block = self._pairs.block(index, slice(0, m))
                if self._own:
                    own = _numbers(some, block.device)
                    block[torch.arange(len(own), device=block.device), own] = torch.inf
                block = torch.where(block.isnan(), torch.inf, block)
                if isinstance(self._key, SqDist) and self._count:
                    _measure_again(block, self._pairs, index, self._count)
                values, numbers = smallest(block, self._count)
                self._put(some, numbers, values)

        self._device.in_blocks(search, f"a block of distances to {m} points")

    # --- kernels ---------------------------------------------------------------------------------

    def suits_kernels(self) -> bool:
        """Return whether kernels can search for the key, and have room for the columns."""
        if len(self._pairs.leaves) != 1 or not self._pairs.shape[0]:
            return False
        from mercer.backends.torch.triton.nearest import suits  # noqa: PLC0415  imports Triton

        columns = self._pairs.leaves[0].columns
        m, d = columns.shape
        room = columns.is_resident and self._device.has_room(8.0 * _COPIES * m * d)
        return room and suits(self._key, self._count + self._own, m, d)

    def by_kernels(self) -> Array:
        """Search by kernels, the quickest way first; return the rows that are still in doubt."""
        from triton.runtime.errors import OutOfResources  # noqa: PLC0415  Triton may be missing

        from mercer.backends.torch.triton.nearest import searches  # noqa: PLC0415  imports Triton

        wanted = self._count + self._own

        def search(entries: int) -> Array:
            columns = self._pairs.leaves[0].columns.block(slice(None))
            rows: range | Array = range(len(self._index))
            for way in searches(self._key, columns, wanted):
                rows = self._by_way(way, rows, entries)
            return np.asarray(rows, dtype=np.int64)

        try:
            return self._device.in_blocks(search, "a search for candidates")
        except (OutOfResources, MemoryBudgetError):  # blocks may still have room
            return np.arange(len(self._index))

    def _by_way(self, way: Any, rows: range | Array, entries: int) -> Array:
        """Search by one way until too many rows stay in doubt; return these, and those left out."""
        height, left = min(_AT_ONCE, entries // way.width), [np.empty(0, dtype=np.int64)]
        for part in parts(len(rows), height):
            left.append(self._by_candidates(rows[part], way))
            if len(left[-1]) > _DOUBTS * (part.stop - part.start):
                left.append(np.asarray(rows[part.stop :], dtype=np.int64))
                break
        return np.concatenate(left)

    def _by_candidates(self, rows: range | Array, way: Any) -> Array:
        """Measure the candidates of some rows; return the rows that others may be nearer to."""
        from mercer.backends.torch.triton.nearest import measure  # noqa: PLC0415  imports Triton

        (leaf,) = self._pairs.leaves
        index = _slice(rows) if isinstance(rows, range) else rows
        found = way.search(leaf.rows.block(index))
        numbers = found.numbers
        if self._own:
            own = _numbers(rows, numbers.device)
            numbers = torch.where(numbers == own[:, None], -1, numbers)
        X, Y = leaf.rows.block(index, about=False), leaf.columns.block(slice(None), about=False)
        values, numbers = _by_number(measure(X, Y, numbers, self._key), numbers)
        farthest = values[:, self._count - 1]
        is_sure = farthest * (1.0 + _ROUNDING) + _SMALLEST < found.bound
        self._put(rows, numbers, values)
        doubtful = np.flatnonzero(to_host(~is_sure))
        return doubtful + rows.start if isinstance(rows, range) else rows[doubtful]


def _slice(rows: range) -> slice:
    return slice(rows.start, rows.stop)


def _numbers(rows: range | Array, device: torch.device) -> Tensor:
    if isinstance(rows, range):
        return torch.arange(rows.start, rows.stop, device=device)
    return torch.from_numpy(rows).to(device)


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
