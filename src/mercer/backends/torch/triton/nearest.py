"""Nearest rows with Triton: candidates in low precision, then exact float64 distances."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeAlias

import torch
import triton

from mercer.backends.lowering import lower
from mercer.backends.torch.triton import leaves as buckets
from mercer.backends.torch.triton.launch import SMALLEST_TILE, compiled, keep_smallest
from mercer.backends.torch.triton.leaves import LONGEST, Buckets, FoundColumns, Leaf, side_of
from mercer.backends.torch.triton.source import FAR, TWO_OF_EACH, LeafLayout
from mercer.expression import AbsDist, Expression, SqDist

# --- measuring -----------------------------------------------------------------------------------
#
# Distances of chosen pairs, in float64, as sums of squared or absolute differences.

Tensor: TypeAlias = torch.Tensor

_MEASURING_HEIGHT, _DEPTH, _MEASURING_WARPS = (
    32,
    32,
    4,
)  # rows and features at a time: eight numbers a thread

_MEASURE = """
@triton.jit
def kernel(n, d, count, X, Y, NUMBERS, OUT, BM: tl.constexpr, BD: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    there = rows < n
    which = rows * count + tl.program_id(1)
    columns = tl.load(NUMBERS + which, mask=there, other=-1)
    known = columns >= 0
    total = tl.zeros((BM, BD), tl.float64)
    for begin in range(0, d, BD):
        inner = begin + tl.arange(0, BD)
        mask = known[:, None] & (inner < d)[None, :]
        x = tl.load(X + rows[:, None] * d + inner[None, :], mask=mask, other=0.0)
        y = tl.load(Y + columns[:, None] * d + inner[None, :], mask=mask, other=0.0)
        apart = x.to(tl.float64) - y.to(tl.float64)
        total += TERM
    distance = tl.where(known, tl.sum(total, axis=1), float("inf"))
    tl.store(OUT + which, distance, mask=there)
"""
_TERMS: dict[type[Expression], str] = {SqDist: "apart * apart", AbsDist: "tl.abs(apart)"}


def measure(X: Tensor, Y: Tensor, numbers: Tensor, key: Expression) -> Tensor:
    """Return the distance of each row of X to the rows of Y of these numbers.

    Parameters
    ----------
    X, Y : (n, d) and (m, d) tensors
        Rows, of any type.
    numbers : (n, c) int64 tensor
        Rows of Y; a negative one is infinitely far.
    key : SqDist or AbsDist
        The distance.
    """
    out = torch.empty(numbers.shape, dtype=torch.float64, device=X.device)
    n, count = numbers.shape
    with torch.cuda.device_of(X):  # Triton launches on the current one
        compiled(_MEASURE.replace("TERM", _TERMS[type(key)]))[
            (triton.cdiv(n, _MEASURING_HEIGHT), count)
        ](
            n,
            X.shape[1],
            count,
            X.contiguous(),
            Y.contiguous(),
            numbers.contiguous(),
            out,
            BM=_MEASURING_HEIGHT,
            BD=_DEPTH,
            num_warps=_MEASURING_WARPS,
        )
    return out


# --- absolute ------------------------------------------------------------------------------------
#
# Columns that may be among the k nearest by sums of absolute differences: the generated kernel.
#
# Features are compared one by one in float32. What that rounds is bounded, so no column that is
# not returned is nearer than the bound says.

_ABSOLUTE_STEP_BITS = 10  # of a score, at most: 2^-12 of a distance brings few more columns near
_UNIT = 2.0**-24  # half the distance from 1 to the next float32 number
_SMALLEST = 1e-37  # below it float32 numbers are flushed to zero


class AbsoluteCandidates:
    """Columns, ready for searches.

    Parameters
    ----------
    columns : (m, d) float64 tensor
        As they are.
    count : int
        How many nearest columns are wanted.
    """

    def __init__(self, columns: Tensor, count: int) -> None:
        self._buckets = Buckets(
            len(columns), count, SMALLEST_TILE.width, most_bits=_ABSOLUTE_STEP_BITS
        )
        centre = columns.mean(dim=0)
        self._centre = torch.where(centre.isfinite(), centre, 0.0)
        near = columns - self._centre
        self._y, self._longest = _in_float32(near), near.abs().sum(dim=1).amax()

    @property
    def width(self) -> int:
        """How many scores are written for each row."""
        return self._buckets.width

    def search(self, rows: Tensor) -> FoundColumns:
        """Find candidates for (n, d) float64 rows."""
        near = rows - self._centre
        x = _in_float32(near)
        ways = ((LeafLayout.COLUMNS, int(x.shape[1])),)
        found = keep_smallest(lower(AbsDist()), [x, self._y], ways, len(rows), self._buckets)
        numbers, least = self._buckets.candidates(*found)
        lengths = near.abs().sum(dim=1) + self._longest
        share = self._buckets.rounding + 2.0 * (rows.shape[1] + 8) * _UNIT
        lowest = least * (1.0 - share) - 4.0 * _UNIT * lengths - rows.shape[1] * _SMALLEST
        return FoundColumns(numbers, torch.where(lengths < LONGEST, lowest, -torch.inf))


def suits_absolute(count: int, columns: int, features: int) -> bool:
    """Return whether a search by candidates is less work than one of all distances.

    Examples
    --------
    >>> suits_absolute(10, 10_000, 64), suits_absolute(10, 1000, 64)
    (True, False)
    """
    return features > 0 and buckets.suits_buckets(count, columns, SMALLEST_TILE.width)


def _in_float32(rows: Tensor) -> Tensor:
    return side_of(rows, LeafLayout.COLUMNS, 1.0, left=True, halves=False).rows


# --- candidates ----------------------------------------------------------------------------------
#
# Columns that may be among the k nearest of each row: one kernel, and nothing of n m is written.
#
# A program holds a tile of rows, walks over the columns of its buckets, and keeps the two
# smallest scores |y|^2 / 2 - x'y of each. Of the others it keeps the smallest of all, which says
# how near any column can be that is not among the candidates.
#
# Rows and columns, each times a power of two, are 16-bit numbers h, or h + l. What that leaves
# out, what sums of tensor cores round and what the last bits hide are bounded; no column that is
# not returned is nearer than the bound says.

DEPTH = 4096  # features: sums of more are rounded as much as 16-bit numbers are
HELD = 512  # depth of products up to which a tile of rows is held from beginning to end
_LEAST_DEPTH = 16  # of the smallest product of tensor cores
_CANDIDATES_HEIGHT, _CANDIDATES_WIDTH, _CANDIDATES_WARPS = (
    64,
    32,
    4,
)  # the fastest of six on an H200, with 64 columns as fast
_CANDIDATES_STAGES, _FEW_STAGES, _SHALLOW = 3, 2, 256  # few where columns are deep: shared memory
_STEP, _STEP_STAGES = 64, 4  # features at a time, where rows are not held
_EXPONENT = 8  # of the largest entry: far from both ends of 16-bit numbers
_CANDIDATES_SUMS = (
    2.0**-22
)  # of |x| |y|, for each feature: rounding of sums on tensor cores, twice what it is
_CANDIDATES_STEP_BITS = 10  # at most: as many steps as 16-bit products have bits to spare
_SPLIT_BITS = 7  # the same where l is multiplied, too: with 4 no more rows of real sets are sure

_CANDIDATES_SEARCH = """
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
_HELD = _CANDIDATES_SEARCH.format(
    **_KEEPING,
    depth="BD",
    before="x = tl.load(X + rows[:, None] * BD + inner[None, :])",
    product="p = tl.dot(x, tl.load(there))",
)
_STEPPED = _CANDIDATES_SEARCH.format(
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
            len(columns),
            count,
            _CANDIDATES_WIDTH,
            most_bits=_SPLIT_BITS if split else _CANDIDATES_STEP_BITS,
        )
        self._y = _side(columns, split, left=False, unit=_CANDIDATES_WIDTH)
        self._squares = (columns * self._y.scale).square().sum(dim=1)

    @property
    def width(self) -> int:
        """How many scores are written for each row."""
        return self._buckets.width

    def search(self, rows: Tensor) -> FoundColumns:
        """Find candidates for (n, d) float64 rows, about the same centre as the columns."""
        n, buckets = len(rows), self._buckets
        x = _side(rows, self._split, left=True, unit=_CANDIDATES_HEIGHT)
        half = self._half_squares(x.scale)
        text, at_once, stages = _by_depth(x.rows.shape[1])
        scores, dropped = buckets.empty(n, rows.device)
        with torch.cuda.device_of(rows):  # Triton launches on the current one
            compiled(text)[(triton.cdiv(n, _CANDIDATES_HEIGHT), buckets.parts)](
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
                BM=_CANDIDATES_HEIGHT,
                BN=_CANDIDATES_WIDTH,
                BD=at_once,
                num_warps=_CANDIDATES_WARPS,
                num_stages=stages,
            )
        numbers, least = buckets.candidates(scores, dropped)
        return FoundColumns(numbers, self._bound(least, x, half))

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
        off = products + _CANDIDATES_SUMS * features * summed + 2.0**-23 * longest
        lowest = least - self._buckets.rounding * least.abs() - off
        unscaled = x.lengths / x.scale
        bound = unscaled.square() + (2.0 / x.scale) * (lowest / self._y.scale)
        return torch.where(longest < LONGEST, bound, -torch.inf)


def suits_squares(count: int, columns: int, features: int) -> bool:
    """Return whether a search by candidates is less work than one of all distances.

    Examples
    --------
    >>> suits_squares(10, 10_000, 64), suits_squares(10, 1000, 64), suits_squares(10, 10_000, 5000)
    (True, False, False)
    """
    return 0 < features <= DEPTH and buckets.suits_buckets(count, columns, _CANDIDATES_WIDTH)


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
    return _HELD, depth, _CANDIDATES_STAGES if depth <= _SHALLOW else _FEW_STAGES


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


# --- closest -------------------------------------------------------------------------------------
#
# The nearest column of each row by one product of 16-bit numbers, and again where that is close.
#
# A product of rows x = h + l by their upper halves h alone is off by |l| |y| + |x| |l_y| at most.
# Where the second nearest column is farther than the nearest by more than twice that, nothing
# better could say otherwise. Where the third is, one of the two is the nearest: their distances
# are taken from differences. The other rows, two in a thousand among normal ones, are searched by
# three products. Which rows these are the card keeps to itself: the host would have to wait for
# it.

_LEAST = 16  # depth of the smallest product of tensor cores
_CLOSEST_HEIGHT, _CLOSEST_WIDTH, _CLOSEST_WARPS, _CLOSEST_STAGES = (
    64,
    64,
    4,
    2,
)  # the fastest of nineteen on an H200
_REGISTERS = 128  # of a thread: four programs on a processor
MOST_COLUMNS = (
    _CLOSEST_WIDTH << 10
)  # so many steps, in the last bits of a score, are as much as h is off
_CLOSEST_SUMS = 2.0**-18  # of the lengths of both rows: rounding of sums on tensor cores, with room
_HALF_SQUARES = 2.0**-22  # of themselves: rounding of squared lengths, and of what is taken off
_PROGRAMS = 1024  # that share the rows in doubt, however many these are: enough for any card
_ROWS, _PART = 32, 32  # rows and features at a time, where two columns are compared

# Of each lane the two smallest scores are kept, with the step at which they came in their last
# bits. The third smallest score of a row tells whether one other column may be nearer than the one
# that was found, or more of them (so it does where the first two are of one lane).
_CLOSEST_SEARCH = """
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
        steps = triton.cdiv(m, _CLOSEST_WIDTH)
        bits, columns = (steps - 1).bit_length(), steps * _CLOSEST_WIDTH
        leaf, tile = self._leaf, {"D": self._depth, "BM": _CLOSEST_HEIGHT, "BN": _CLOSEST_WIDTH}
        launched = {"num_warps": _CLOSEST_WARPS, "num_stages": _CLOSEST_STAGES}
        found, operands = (number, other, counts, doubts), (leaf.x.rows, leaf.y.rows)
        sides = (self._x, self._y, self._half, self._off)
        with torch.cuda.device_of(number):  # Triton launches on the current one
            compiled(_CLOSEST_SEARCH)[(triton.cdiv(n, _CLOSEST_HEIGHT),)](
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
                num_warps=_CLOSEST_WARPS,
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
    products = low * (most + most_low) + high * (most_low + _CLOSEST_SUMS * most)
    off = 2.0 * (products + _HALF_SQUARES * half.amax())
    return torch.where(half.amax() < LONGEST, off, torch.inf)


def _lengths(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=1, dtype=torch.float32)


def _widened(rows: Tensor, depth: int) -> Tensor:
    return torch.nn.functional.pad(rows, (0, depth - rows.shape[1])).contiguous()


# --- searching -----------------------------------------------------------------------------------
#
# How each distance is searched: by which candidates, the quickest first.


class NearestSearch(Protocol):
    """A search for candidates."""

    @property
    def width(self) -> int:
        """How many scores are written for each row."""

    def search(self, rows: Tensor) -> FoundColumns:
        """Find candidates for float64 rows."""


def suits(key: Expression, count: int, columns: int, features: int) -> bool:
    """Return whether a key is searched by candidates, of so many columns and features."""
    if isinstance(key, SqDist):
        return suits_squares(count, columns, features)
    return isinstance(key, AbsDist) and suits_absolute(count, columns, features)


def searches(key: Expression, columns: Tensor, count: int) -> list[NearestSearch]:
    """Return the searches of a key that `suits`, the quickest first.

    Parameters
    ----------
    key : Expression
        What is to be small.
    columns : (m, d) float64 tensor
        Columns, about the centre that rows are taken about.
    count : int
        How many nearest columns are wanted.
    """
    if isinstance(key, AbsDist):
        return [AbsoluteCandidates(columns, count)]
    kinds = kinds_of_products(columns.shape[1])
    return [Candidates(columns, count, split=split) for split in kinds]
