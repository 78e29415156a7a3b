"""Columns that may be among the k nearest of each row: one kernel, and nothing of n m is written.

A program holds a tile of rows, walks over the columns of its buckets, and keeps the two smallest
scores |y|^2 / 2 - x'y of each. Of the others it keeps the smallest of all, which says how near any
column can be that is not among the candidates.

Rows and columns, each times a power of two, are 16-bit numbers h, or h + l. What that leaves out,
what sums of tensor cores round and what the last bits hide are bounded; no column that is not
returned is nearer than the bound says.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import torch
import triton

from mercer.backends.torch.fusing.launch import compiled
from mercer.backends.torch.fusing.nearest import buckets
from mercer.backends.torch.fusing.nearest.buckets import LONGEST, Buckets, Found
from mercer.backends.torch.fusing.reductions import FAR, TWO_OF_EACH

Tensor: TypeAlias = torch.Tensor

DEPTH = 4096  # features: sums of more are rounded as much as 16-bit numbers are
HELD = 512  # depth of products up to which a tile of rows is held from beginning to end
_LEAST_DEPTH = 16  # of the smallest product of tensor cores
_HEIGHT, _WIDTH, _WARPS = 64, 32, 4  # the fastest of six on an H200, with 64 columns as fast
_STAGES, _FEW_STAGES, _SHALLOW = 3, 2, 256  # few where columns are deep: shared memory
_STEP, _STEP_STAGES = 64, 4  # features at a time, where rows are not held
_EXPONENT = 8  # of the largest entry: far from both ends of 16-bit numbers
_SUMS = 2.0**-22  # of |x| |y|, for each feature: rounding of sums on tensor cores, twice what it is
_STEP_BITS = 10  # at most: as many steps as 16-bit products have bits to spare
_SPLIT_BITS = 7  # the same where l is multiplied, too: with 4 no more rows of real sets are sure

_SEARCH = """
@triton.jit
def kernel(
    n, m, stride, wide, kept, depth, X, Y, HY, OUT, DROPPED,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, BN)
    inner = tl.arange(0, BD)
    {before}
    {begin}
    for start in range(part * BN, m, stride):
        columns = start + lanes
        there = Y + columns.to(tl.int64)[None, :] * {depth} + inner[:, None]
        {product}
        score = tl.load(HY + columns)[None, :] - p
        {step}
    here = rows < n
    out = OUT + rows[:, None] * wide + (2 * part * BN + lanes)[None, :]
    dropped = DROPPED + rows * tl.num_programs(1) + part
    {end}
"""
_BEGIN, _EACH, _END = TWO_OF_EACH
_KEEPING = {
    "begin": "\n    ".join(_BEGIN),
    "step": "\n        ".join(_EACH),
    "end": "\n    ".join(_END),
}
# A tile of rows is held from beginning to end, or read again, some features at a time, for every
# tile of columns.
_HELD = _SEARCH.format(
    **_KEEPING,
    depth="BD",
    before="x = tl.load(X + rows[:, None] * BD + inner[None, :])",
    product="p = tl.dot(x, tl.load(there))",
)
_STEPPED = _SEARCH.format(
    **_KEEPING,
    depth="depth",
    before="mine = X + rows[:, None] * depth + inner[None, :]",
    product="""p = tl.zeros((BM, BN), tl.float32)
        for begin in range(0, depth, BD):
            p = tl.dot(tl.load(mine + begin), tl.load(there + begin), p)""",
)


class _Side(NamedTuple):
    """Rows as products read them, and lengths of float64: of them, of l, of what is left out."""

    rows: Tensor
    scale: float
    lengths: Tensor
    low: Tensor
    rest: Tensor


class Candidates:
    """Columns, ready for searches.

    Parameters
    ----------
    columns : (m, d) float64 tensor
        About the centre that rows are taken about.
    count : int
        How many nearest columns are wanted.
    split : bool
        Whether products are those of h + l, not of h alone.
    """

    def __init__(self, columns: Tensor, count: int, *, split: bool) -> None:
        self._split, self._features = split, columns.shape[1]
        self._buckets = Buckets(
            len(columns), count, _WIDTH, most_bits=_SPLIT_BITS if split else _STEP_BITS
        )
        self._y = _side(columns, split, left=False, unit=_WIDTH)
        self._squares = (columns * self._y.scale).square().sum(dim=1)

    @property
    def width(self) -> int:
        """How many scores are written for each row."""
        return self._buckets.width

    def search(self, rows: Tensor) -> Found:
        """Find candidates for (n, d) float64 rows, about the same centre as the columns."""
        n, buckets = len(rows), self._buckets
        x = _side(rows, self._split, left=True, unit=_HEIGHT)
        half = self._half_squares(x.scale)
        text, at_once, stages = _by_depth(x.rows.shape[1])
        scores, dropped = buckets.empty(n, rows.device)
        with torch.cuda.device_of(rows):  # Triton launches on the current one
            compiled(text)[(triton.cdiv(n, _HEIGHT), buckets.parts)](
                n,
                buckets.padded,
                buckets.stride,
                buckets.width,
                buckets.mask,
                x.rows.shape[1],
                x.rows,
                self._y.rows,
                half,
                scores,
                dropped,
                BM=_HEIGHT,
                BN=_WIDTH,
                BD=at_once,
                num_warps=_WARPS,
                num_stages=stages,
            )
        numbers, least = buckets.candidates(scores, dropped)
        return Found(numbers, self._bound(least, x, half))

    def _half_squares(self, scale: float) -> Tensor:
        half = (0.5 * (scale / self._y.scale)) * self._squares
        missing = self._buckets.padded - len(half)
        return torch.nn.functional.pad(half, (0, missing), value=FAR).to(torch.float32)

    def _bound(self, least: Tensor, x: _Side, half: Tensor) -> Tensor:
        """Return a squared distance that columns of no smaller score than this have at least."""
        y = _Side(self._y.rows, self._y.scale, *(part.amax() for part in self._y[2:]))
        products = x.low * y.low + x.rest * (y.lengths + y.rest) + x.lengths * y.rest
        # sums of h h', after those of h l' and l h', which are small
        features = self._features + _LEAST_DEPTH
        summed = x.lengths * y.lengths + 4.0 * (x.low * y.lengths + x.lengths * y.low)
        longest = half[: self._buckets.columns].amax().double()
        off = products + _SUMS * features * summed + 2.0**-23 * longest
        lowest = least - self._buckets.rounding * least.abs() - off
        unscaled = x.lengths / x.scale
        bound = unscaled.square() + (2.0 / x.scale) * (lowest / self._y.scale)
        return torch.where(longest < LONGEST, bound, -torch.inf)


def suits(count: int, columns: int, features: int) -> bool:
    """Return whether a search by candidates is less work than one of all distances.

    Examples
    --------
    >>> suits(10, 10_000, 64), suits(10, 1000, 64), suits(10, 10_000, 5000)
    (True, False, False)
    """
    return 0 < features <= DEPTH and buckets.suits(count, columns, _WIDTH)


def kinds_of_products(features: int) -> list[bool]:
    """Return whether rows are multiplied as h + l, the quickest way first.

    Examples
    --------
    >>> kinds_of_products(3), kinds_of_products(64), kinds_of_products(784)
    ([True], [False, True], [False])
    """
    if 3 * features <= _LEAST_DEPTH:
        return [True]  # h alone is no less work
    return [False, True] if 3 * features <= HELD else [False]


def _by_depth(depth: int) -> tuple[str, int, int]:
    """Return the kernel for rows of a depth, how many features it reads at a time, and stages."""
    if depth > HELD:
        return _STEPPED, _STEP, _STEP_STAGES
    return _HELD, depth, _STAGES if depth <= _SHALLOW else _FEW_STAGES


def _side(block: Tensor, split: bool, *, left: bool, unit: int) -> _Side:
    """Write rows as products read them: padded by zeros to a multiple of a unit, and in depth."""
    scale = _scale(block)
    scaled = scale * block
    high = scaled.to(torch.float16)
    rest = scaled - high.double()
    low = rest.to(torch.float16) if split else torch.zeros_like(high)
    rest = rest - low.double()
    lengths = (torch.linalg.vector_norm(part.double(), dim=1) for part in (scaled, low, rest))
    # small terms first: tensor cores cut off what does not fit beside the sum so far
    parts = ([high, low, high] if left else [low, high, high]) if split else [high]
    rows = torch.cat(parts, dim=1)
    depth = max(_LEAST_DEPTH, triton.next_power_of_2(rows.shape[1]))
    if depth > HELD:
        depth = triton.cdiv(rows.shape[1], _STEP) * _STEP
    missing = (0, depth - rows.shape[1], 0, -len(rows) % unit)
    return _Side(torch.nn.functional.pad(rows, missing), scale, *lengths)


def _scale(block: Tensor) -> float:
    """Return the power of two that brings the largest entry near 2^8."""
    largest = float(block.abs().amax())
    if not 0 < largest < math.inf:
        return 1.0
    return 2.0 ** max(-500, min(500, _EXPONENT - math.frexp(largest)[1]))
