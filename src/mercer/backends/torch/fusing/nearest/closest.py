"""The nearest column of each row by one product of 16-bit numbers, and again where that is close.

A product of rows x = h + l by their upper halves h alone is off by |l| |y| + |x| |l_y| at most.
Where the second nearest column is farther than the nearest by more than twice that, nothing better
could say otherwise; the other rows, few of them, are searched by three products.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled
from mercer.backends.torch.fusing.leaves import Leaf

Tensor: TypeAlias = torch.Tensor

MOST = 256  # features of rows that a program holds
_LEAST = 16  # depth of the smallest product of tensor cores
_HEIGHT, _WIDTH, _WARPS, _STAGES = 64, 64, 4, 3  # the fastest of six on an H200
_SUMS = 2.0**-18  # of the lengths of both rows: rounding of sums on tensor cores, with room
_HALF_SQUARES = 2.0**-22  # of themselves: rounding of squared lengths, and of what is taken off


_SEARCH = """
@triton.jit
def kernel(
    n, m, X, Y, HY, BEST, SECOND, NUMBER, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inner = tl.arange(0, D)
    lanes = tl.arange(0, BN)
    x = tl.load(X + rows[:, None] * D + inner[None, :])
    best = tl.full((BM, BN), float("inf"), tl.float32)
    second = tl.full((BM, BN), float("inf"), tl.float32)
    number = tl.zeros((BM, BN), tl.int32)
    for start in range(0, m, BN):
        columns = start + lanes
        y = tl.load(Y + columns.to(tl.int64)[None, :] * D + inner[:, None])
        score = tl.load(HY + columns)[None, :] - tl.dot(x, y)
        number = tl.where(score < best, start, number)
        second = tl.minimum(second, tl.maximum(score, best))
        best = tl.minimum(best, score)
    least, place = tl.min(best, axis=1, return_indices=True)
    mine = lanes[None, :] == place[:, None]
    tl.store(BEST + rows, least, mask=rows < n)
    tl.store(SECOND + rows, tl.min(tl.where(mine, second, best), axis=1), mask=rows < n)
    found = tl.sum(tl.where(mine, number + lanes[None, :], 0), axis=1)
    tl.store(NUMBER + rows, found, mask=rows < n)
"""


class Closest:
    """Upper halves of rows and columns, ready for searches.

    Parameters
    ----------
    leaf : Leaf
        Squared distances by products.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(self, leaf: Leaf, shape: tuple[int, int]) -> None:
        self._shape, d = shape, leaf.features
        self._depth = max(_LEAST, triton.next_power_of_2(d))
        self._x = _widened(leaf.x.rows[:, :d], self._depth)
        self._y = _widened(leaf.y.rows[:, d : 2 * d], self._depth)
        # products are of rows times a power of two
        self._half = leaf.y.squares / leaf.factor
        self._off = _rounding(leaf, self._half[: shape[1]], *shape)
        self._half[shape[1] :] = torch.inf  # copies of the last column are no second one

    def search(self) -> tuple[Tensor, Tensor]:
        """Return the nearest column of each row, and whether another might be nearer."""
        n, m = self._shape
        best, second = (self._half.new_empty(n) for _ in range(2))
        number = torch.empty(n, dtype=torch.int32, device=best.device)
        with torch.cuda.device_of(self._x):
            compiled(_SEARCH)[(triton.cdiv(n, _HEIGHT),)](
                n,
                triton.cdiv(m, _WIDTH) * _WIDTH,
                self._x,
                self._y,
                self._half,
                best,
                second,
                number,
                D=self._depth,
                BM=_HEIGHT,
                BN=_WIDTH,
                num_warps=_WARPS,
                num_stages=_STAGES,
            )
        return number.long(), ~(second - best > self._off)


def _rounding(leaf: Leaf, half: Tensor, n: int, m: int) -> Tensor:
    """Return what the difference of two scores of each row may be off by."""
    d = leaf.features
    high, low = (_lengths(leaf.x.rows[:n, k * d : (k + 1) * d]) for k in (0, 1))
    most = _lengths(leaf.y.rows[:m, d : 2 * d]).amax()
    most_low = _lengths(leaf.y.rows[:m, :d]).amax()
    products = low * (most + most_low) + high * (most_low + _SUMS * most)
    return 2.0 * (products + _HALF_SQUARES * half.amax())


def _lengths(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)


def _widened(rows: Tensor, depth: int) -> Tensor:
    return torch.nn.functional.pad(rows, (0, depth - rows.shape[1])).contiguous()
