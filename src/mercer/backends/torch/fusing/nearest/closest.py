"""The nearest column of each row by one product of 16-bit numbers, and again where that is close.

A product of rows x = h + l by their upper halves h alone is off by |l| |y| + |x| |l_y| at most.
Where the second nearest column is farther than the nearest by more than twice that, nothing better
could say otherwise. Where the third is, one of the two is the nearest: their distances are taken
from differences. The other rows, two in a thousand among normal ones, are searched by three
products. Which rows these are the card keeps to itself: the host would have to wait for it.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled
from mercer.backends.torch.fusing.leaves import Leaf
from mercer.backends.torch.fusing.nearest.buckets import LONGEST
from mercer.backends.torch.fusing.reductions import FAR

Tensor: TypeAlias = torch.Tensor

_LEAST = 16  # depth of the smallest product of tensor cores
_HEIGHT, _WIDTH, _WARPS, _STAGES = 64, 64, 4, 2  # the fastest of nineteen on an H200
_REGISTERS = 128  # of a thread: four programs on a processor
MOST_COLUMNS = _WIDTH << 10  # so many steps, in the last bits of a score, are as much as h is off
_SUMS = 2.0**-18  # of the lengths of both rows: rounding of sums on tensor cores, with room
_HALF_SQUARES = 2.0**-22  # of themselves: rounding of squared lengths, and of what is taken off
_PROGRAMS = 1024  # that share the rows in doubt, however many these are: enough for any card
_ROWS, _PART = 32, 32  # rows and features at a time, where two columns are compared

# Of each lane the two smallest scores are kept, with the step at which they came in their last
# bits. The third smallest score of a row tells whether one other column may be nearer than the one
# that was found, or more of them (so it does where the first two are of one lane).
_SEARCH = """
@triton.jit
def kernel(
    n, m, share, X, Y, HY, OFF, NUMBER, OTHER, COUNTS, DOUBTS,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BITS: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    inner = tl.arange(0, D)
    lanes = tl.arange(0, BN)
    x = tl.load(X + rows[:, None] * D + inner[None, :])
    best = tl.full((BM, BN), FAR, tl.float32)
    second = tl.full((BM, BN), FAR, tl.float32)
    step = tl.program_id(0) * 0
    for start in range(0, m, BN):
        columns = start + lanes
        y = tl.load(Y + columns.to(tl.int64)[None, :] * D + inner[:, None])
        score = tl.load(HY + columns)[None, :] - tl.dot(x, y)
        score = score.to(tl.int32, bitcast=True) & -(1 << BITS) | step
        score = score.to(tl.float32, bitcast=True)
        step += 1
        second = tl.minimum(second, tl.maximum(score, best))
        best = tl.minimum(best, score)
    least, place = tl.min(best, axis=1, return_indices=True)
    mine = lanes[None, :] == place[:, None]
    after, other = tl.min(tl.where(mine, second, best), axis=1, return_indices=True)
    mine = mine | (lanes[None, :] == other[:, None])
    third = tl.min(tl.where(mine, second, best), axis=1)
    here = rows < n
    size = tl.maximum(tl.abs(least), tl.abs(after))
    off = tl.load(OFF + rows, mask=here, other=0.0) + share * size
    last = (1 << BITS) - 1
    number = (least.to(tl.int32, bitcast=True) & last) * BN + place
    tl.store(NUMBER + rows, number.to(tl.int64), mask=here)
    doubtful = here & ~(after - least > off)
    number = (after.to(tl.int32, bitcast=True) & last) * BN + other
    tl.store(OTHER + rows, number, mask=doubtful)
    kind = tl.where(third - least > off, 0, 1)
    slot = tl.atomic_add(COUNTS + kind, 1, mask=doubtful)
    tl.store(DOUBTS + kind.to(tl.int64) * n + slot, rows.to(tl.int32), mask=doubtful)
""".replace("FAR", str(FAR))

# Rows and columns as products read them, x = h + l: of two columns the nearer one, and of equally
# near ones the first.
_COMPARE = """
@triton.jit
def kernel(
    d, depth, COUNTS, DOUBTS, X, Y, NUMBER, OTHER, BM: tl.constexpr, BD: tl.constexpr
):
    count = tl.load(COUNTS)
    for begin in range(tl.program_id(0) * BM, count, tl.num_programs(0) * BM):
        at = begin + tl.arange(0, BM)
        here = at < count
        rows = tl.load(DOUBTS + at, mask=here, other=0).to(tl.int64)
        one = tl.load(NUMBER + rows)
        two = tl.load(OTHER + rows, mask=here, other=0).to(tl.int64)
        total = tl.zeros((BM, BD), tl.float32)
        for first in range(0, d, BD):
            inner = first + tl.arange(0, BD)
            known = (inner < d)[None, :]
            mine = X + rows[:, None] * (2 * depth) + inner[None, :]
            x = tl.load(mine, mask=known, other=0.0).to(tl.float32)
            x += tl.load(mine + depth, mask=known, other=0.0).to(tl.float32)
            theirs = Y + one[:, None] * (2 * depth) + inner[None, :]
            y = tl.load(theirs, mask=known, other=0.0).to(tl.float32)
            y += tl.load(theirs + depth, mask=known, other=0.0).to(tl.float32)
            theirs = Y + two[:, None] * (2 * depth) + inner[None, :]
            z = tl.load(theirs, mask=known, other=0.0).to(tl.float32)
            z += tl.load(theirs + depth, mask=known, other=0.0).to(tl.float32)
            total += (x - y) * (x - y) - (x - z) * (x - z)
        apart = tl.sum(total, axis=1)
        nearer = tl.where(apart == 0.0, tl.minimum(one, two), tl.where(apart > 0.0, two, one))
        tl.store(NUMBER + rows, nearer, mask=here)
"""

# All columns by three products, the small ones first. Distances that these cannot tell from zero
# are zero, and of equally near columns the first is taken.
_AGAIN = """
@triton.jit
def kernel(
    n, m, depth, share, least, COUNTS, DOUBTS, X, Y, HX, HY, NUMBER,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    count = tl.load(COUNTS + 1)
    inner = tl.arange(0, D)
    lanes = tl.arange(0, BN)
    for begin in range(tl.program_id(0) * BM, count, tl.num_programs(0) * BM):
        at = begin + tl.arange(0, BM)
        here = at < count
        rows = tl.load(DOUBTS + n + at, mask=here, other=0).to(tl.int64)
        hx = share * tl.load(HX + rows)
        mine = X + rows[:, None] * (2 * depth) + inner[None, :]
        xh = tl.load(mine, mask=(inner < depth)[None, :], other=0.0)
        xl = tl.load(mine + depth, mask=(inner < depth)[None, :], other=0.0)
        best = tl.full((BM, BN), FAR, tl.float32)
        number = tl.zeros((BM, BN), tl.int32)
        for start in range(0, m, BN):
            columns = (start + lanes).to(tl.int64)
            theirs = Y + columns[None, :] * (2 * depth) + inner[:, None]
            yh = tl.load(theirs, mask=(inner < depth)[:, None], other=0.0)
            yl = tl.load(theirs + depth, mask=(inner < depth)[:, None], other=0.0)
            p = tl.dot(xh, yl)
            p = tl.dot(xl, yh, p)
            p = tl.dot(xh, yh, p)
            h = hx[:, None] + tl.load(HY + columns)[None, :]
            distance = tl.where(h - p > least * h, h - p, 0.0)
            number = tl.where(distance < best, start, number)
            best = tl.minimum(distance, best)
        nearest = tl.min(best, axis=1)
        number = tl.where(best <= nearest[:, None], number + lanes[None, :], m - 1)
        tl.store(NUMBER + rows, tl.min(number, axis=1).to(tl.int64), mask=here)
""".replace("FAR", str(FAR))


class Closest:
    """Upper halves of rows and columns, ready for searches.

    Parameters
    ----------
    leaf : Leaf
        Squared distances by products of h + l.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(self, leaf: Leaf, shape: tuple[int, int]) -> None:
        self._shape, self._leaf, d = shape, leaf, leaf.features
        self._depth = max(_LEAST, triton.next_power_of_2(d))
        self._x, self._y = (_widened(side.rows[:, :d], self._depth) for side in (leaf.x, leaf.y))
        # products are of rows times a power of two
        self._half = leaf.y.squares / leaf.factor
        self._off = _rounding(leaf, self._half[: shape[1]], *shape)
        self._half[shape[1] :] = FAR  # copies of the last column are no second one

    def search(self) -> Tensor:
        """Return the nearest column of each row; of equally near ones the first."""
        n, m = self._shape
        number = torch.empty(n, dtype=torch.int64, device=self._x.device)
        other, doubts = (number.new_empty(size, dtype=torch.int32) for size in (n, 2 * n))
        counts = doubts.new_zeros(2)
        steps = triton.cdiv(m, _WIDTH)
        bits, columns = (steps - 1).bit_length(), steps * _WIDTH
        leaf, tile = self._leaf, {"D": self._depth, "BM": _HEIGHT, "BN": _WIDTH}
        launched = {"num_warps": _WARPS, "num_stages": _STAGES}
        found, operands = (number, other, counts, doubts), (leaf.x.rows, leaf.y.rows)
        sides = (self._x, self._y, self._half, self._off)
        with torch.cuda.device_of(number):  # Triton launches on the current one
            compiled(_SEARCH)[(triton.cdiv(n, _HEIGHT),)](
                *(n, columns, 2.0 ** (bits - 22), *sides, *found),
                BITS=bits,
                maxnreg=_REGISTERS,
                **tile,
                **launched,
            )
            compiled(_COMPARE)[(_PROGRAMS,)](
                *(leaf.features, leaf.depth, counts, doubts, *operands, number, other),
                BM=_ROWS,
                BD=_PART,
                num_warps=_WARPS,
            )
            compiled(_AGAIN)[(_PROGRAMS,)](
                *(n, columns, leaf.depth, 1.0 / leaf.factor, leaf.least, counts, doubts),
                *(*operands, leaf.x.squares, self._half, number),
                **tile,
                **launched,
            )
        return number


def _rounding(leaf: Leaf, half: Tensor, n: int, m: int) -> Tensor:
    """Return what the difference of two scores of each row may be off by."""
    d = leaf.features
    high, low = (_lengths(leaf.x.rows[:n, k : k + d]) for k in (0, leaf.depth))
    most, most_low = (_lengths(leaf.y.rows[:m, k : k + d]).amax() for k in (0, leaf.depth))
    products = low * (most + most_low) + high * (most_low + _SUMS * most)
    off = 2.0 * (products + _HALF_SQUARES * half.amax())
    return torch.where(half.amax() < LONGEST, off, torch.inf)


def _lengths(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)


def _widened(rows: Tensor, depth: int) -> Tensor:
    return torch.nn.functional.pad(rows, (0, depth - rows.shape[1])).contiguous()
