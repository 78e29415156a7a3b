"""Nearest neighbours on a device: blocks of float64 keys, of which each row keeps the smallest."""

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

Tensor: TypeAlias = torch.Tensor
_ROUNDING = 1e-13  # of |x|^2 + |y|^2: more than products of rows can be off


def neighbours(
    expression: Expression, X: Points, Y: Points | None, count: int, device: Device
) -> tuple[Array, Array]:
    """Find the `count` nearest rows of Y for each row of X; see `Backend.neighbours`."""
    order = closeness(expression)
    pairs = TorchPairs(order.key, X, Y, np.float64, device)
    n, m = pairs.shape
    index, key = np.empty((n, count), dtype=np.int64), np.empty((n, count))

    def search(entries: int) -> None:
        for part in parts(n, entries // max(1, m)):
            block = pairs.block(part, slice(0, m))
            if Y is None:
                own = torch.arange(part.start, part.stop, device=block.device)
                block[own - part.start, own] = torch.inf
            block = torch.where(block.isnan(), torch.inf, block)
            if isinstance(order.key, SqDist) and count:
                _measure_again(block, pairs, part, count)
            values, numbers = smallest(block, count)
            index[part], key[part] = to_host(numbers), to_host(values)

    device.in_blocks(search, f"a block of distances to {m} points")
    index[~(key < np.inf)] = -1
    return index, order.squared(key)


def _measure_again(block: Tensor, pairs: TorchPairs, part: slice, count: int) -> None:
    """Replace distances that may be among the smallest by sums of squared differences.

    Rows that are equally far are then so to the last bit, and the first of them is found.
    """
    (leaf,) = pairs.leaves
    X, Y = leaf.rows.block(part), leaf.columns.block(slice(0, pairs.shape[1]))
    lengths = X.square().sum(dim=1) + Y.square().sum(dim=1).amax()
    bound = block.kthvalue(count, dim=1).values + _ROUNDING * lengths
    near = (block <= bound[:, None]) & (block < torch.inf)
    X, Y = leaf.rows.block(part, about=False), leaf.columns.block(slice(None), about=False)
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
