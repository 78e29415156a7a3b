"""Inputs of Triton kernels: padded rows, split numbers, and buckets of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import torch

from mercer.array_types import Index
from mercer.backends.torch.evaluate import Operands
from mercer.backends.torch.triton.source import BAND, FAR, HELD, LeafLayout, padded_depth
from mercer.expression import Dot, SqDist

# --- buckets -------------------------------------------------------------------------------------
#
# Columns dealt out to buckets as cards are: how many there are, and what their scores tell.
#
# Each bucket keeps its two smallest scores, whose last bits say at which step they came. If all
# of the k nearest columns are to be kept, no three of them may be in one bucket.

Tensor: TypeAlias = torch.Tensor

MOST = 64  # neighbours: beyond them buckets are as many as columns
LONGEST = 1e30  # scores beyond it are too near the end of float32
# Of k nearest columns three are in one bucket with probability k^3 / 6 B^2: one row in 200.
_BUCKETS = 6.0
_COLUMNS = 8  # of a bucket, at least: less is no gain


class FoundColumns(NamedTuple):
    """Candidates of some rows.

    Attributes
    ----------
    numbers : (n, c) int64 tensor
        Columns; -1 where there are no more.
    bound : (n,) float64 tensor
        No other column has a smaller key.
    """

    numbers: Tensor
    bound: Tensor


@dataclass(frozen=True)
class Buckets:
    """How columns are dealt out.

    Attributes
    ----------
    columns : int
        How many there are.
    neighbours : int
        How many of them are wanted for each row.
    lanes : int
        Columns that a program looks at in one step, each for another bucket.
    most_bits : int
        Of a score that may say at which step it came.
    """

    columns: int
    neighbours: int
    lanes: int
    most_bits: int

    @cached_property
    def parts(self) -> int:
        """Programs that share the columns of a row: each has a bucket in every lane."""
        steps = self.lanes << self.most_bits
        wanted = math.ceil(enough(self.neighbours) / self.lanes)
        return max(wanted, math.ceil(self.columns / steps))

    @cached_property
    def bits(self) -> int:
        """Bits that say at which step a score came."""
        tiles = math.ceil(self.columns / self.lanes)
        return (math.ceil(tiles / self.parts) - 1).bit_length()

    @property
    def stride(self) -> int:
        """Columns from one step to the next."""
        return self.lanes * self.parts

    @property
    def width(self) -> int:
        """Scores that are written for each row."""
        return 2 * self.lanes * self.parts

    @property
    def padded(self) -> int:
        """Columns in whole steps of lanes."""
        return math.ceil(self.columns / self.lanes) * self.lanes

    @property
    def mask(self) -> int:
        """What is left of a score, as bits of an integer."""
        return -(1 << self.bits)

    @property
    def rounding(self) -> float:
        """Of a score: what its last bits hide, and float32 rounds."""
        return float(2.0 ** (self.bits - 22) + 2.0**-22)

    def empty(self, rows: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return where a kernel writes scores, and the smallest of those that it drops."""
        scores = torch.empty((rows, self.width), dtype=torch.float32, device=device)
        return scores, scores.new_empty((rows, self.parts))

    def candidates(self, scores: Tensor, dropped: Tensor) -> tuple[Tensor, Tensor]:
        """Return the columns of the smallest scores of each row, and the score of the next one.

        Some more than are wanted, so that rounding seldom leaves a doubt.
        """
        count = self.neighbours + 8 + self.neighbours // 2
        values, places = scores.topk(min(count, self.width - 1) + 1, dim=1, largest=False)
        least = torch.minimum(values[:, -1], dropped.amin(dim=1)).double()
        values, places = values[:, :-1].contiguous(), places[:, :-1]
        step = values.view(torch.int32).bitwise_and((1 << self.bits) - 1).long()
        part, lane = places // (2 * self.lanes), places % self.lanes
        numbers = (step * self.parts + part) * self.lanes + lane
        known = (values < FAR / 2) & (numbers < self.columns)
        return torch.where(known, numbers, -1), least


def enough(neighbours: int) -> int:
    """Return how many buckets are enough.

    Examples
    --------
    >>> enough(1), enough(10), enough(64)
    (6, 190, 3072)
    """
    return math.ceil(_BUCKETS * math.sqrt(neighbours) ** 3)


def suits_buckets(neighbours: int, columns: int, lanes: int) -> bool:
    """Return whether a search by buckets is less work than one of all columns.

    Examples
    --------
    >>> suits_buckets(10, 10_000, 32), suits_buckets(10, 1000, 32), suits_buckets(100, 10**9, 32)
    (True, False, False)
    """
    return 0 < neighbours <= MOST and columns >= _COLUMNS * max(lanes, enough(neighbours))


# --- leaves --------------------------------------------------------------------------------------
#
# Leaves as kernels read them: padded, split into 16-bit numbers or laid out by features.

_EXPONENT = 8  # of the largest entry of what is split: far from both ends of 16-bit numbers
SPLITS = 3  # operands of a product of h + l: times the features
_EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class LeafSide:
    """One side of a leaf as a kernel reads it.

    Attributes
    ----------
    rows : tensor
        (padded rows, depth) of 16-bit numbers, twice that where they are split, or (bands, depth,
        rows of a band) of float32.
    squares : (padded rows,) float32 tensor
        Squared lengths, for products; what is added to the product of another leaf.
    """

    rows: Tensor
    squares: Tensor

    def taken(self, index: Tensor, way: LeafLayout) -> LeafSide:
        """Return some rows, laid out as all are."""
        rows = self.rows
        if way is LeafLayout.COLUMNS:
            rows = rows[index // BAND, :, index % BAND]
        elif way.is_product:
            rows = rows[index]
        squares = padded(self.squares[index])
        if way is LeafLayout.SHARED:
            return LeafSide(squares, squares)
        rows = padded(rows)
        return LeafSide(_in_bands(rows) if way is LeafLayout.COLUMNS else rows, squares)


@dataclass(frozen=True, eq=False)
class Leaf:
    """A leaf as a kernel reads it.

    Attributes
    ----------
    way : Way
        How it is compared.
    depth : int
        Padded features; the number of the other leaf, if its product is shared.
    x, y : Side
        Rows and columns.
    factor : float
        What products are multiplied by: powers of two taken back, and the 2 of a distance.
    features : int
        Features before they were padded and split; zero where they are not split.
    least : float
        Squared distances from products are zero below this share of both squared lengths.
    """

    way: LeafLayout
    depth: int
    x: LeafSide
    y: LeafSide
    factor: float
    features: int = 0
    least: float = 0.0

    def taken(self, rows: Tensor, columns: Tensor | None) -> Leaf:
        """Return the same leaf of some rows, and columns."""
        y = self.y if columns is None else self.y.taken(columns, self.way)
        return replace(self, x=self.x.taken(rows, self.way), y=y)

    def arguments(self) -> list[Any]:
        """Return what a kernel is called with."""
        rows, numbers = [self.x.rows, self.y.rows], [self.x.squares, self.y.squares]
        if self.way is LeafLayout.COLUMNS:
            return rows
        if self.way is LeafLayout.SHARED:
            return [*numbers, self.factor]
        return [*rows, *numbers, self.factor, self.least]


def prepare_all(
    every: Sequence[Operands],
    ways: Sequence[LeafLayout],
    rows: Index = _EVERY,
    columns: Index = _EVERY,
    halves: bool = False,
) -> list[Leaf]:
    """Write both sides of all leaves, or some rows and columns of them, as kernels read them."""
    return [
        _shared(operands, every, rows, columns)
        if way is LeafLayout.SHARED
        else prepare(operands, way, rows, columns, halves)
        for operands, way in zip(every, ways, strict=True)
    ]


def giver(operands: Operands, every: Sequence[Operands]) -> int | None:
    """Return which leaf has distances of the same rows, whose product a dot product can share."""
    for number, other in enumerate(every):
        same = isinstance(operands.leaf, Dot) and operands.leaf.steps == other.leaf.steps
        if same and isinstance(other.leaf, SqDist) and other.rows.centre is not None:
            return number
    return None


def _shared(operands: Operands, every: Sequence[Operands], rows: Index, columns: Index) -> Leaf:
    """Write down what turns (x - c).(y - c) into x.y."""
    number = giver(operands, every)
    assert number is not None
    other = every[number]
    c = other.rows.centre
    assert c is not None
    x, y = operands.rows.block(rows) @ c, operands.columns.block(columns) @ c
    half = 0.5 * c.square().sum()
    left, right = (padded((part - half).to(torch.float32)) for part in (x, y))
    factor = 1.0 / _scale(other) ** 2
    return Leaf(LeafLayout.SHARED, number, LeafSide(left, left), LeafSide(right, right), factor)


def prepare(
    operands: Operands,
    way: LeafLayout,
    rows: Index = _EVERY,
    columns: Index = _EVERY,
    halves: bool = False,
) -> Leaf:
    """Write both sides of a leaf, or some rows and columns of it, as kernels read them.

    Products are those of upper halves alone if `halves` are asked for.
    """
    scale, features = _scale(operands), operands.rows.shape[1]
    if way is LeafLayout.PRODUCTS and not halves and SPLITS * features <= HELD:
        way = LeafLayout.SPLIT
    x = side_of(operands.rows.block(rows), way, scale, left=True, halves=halves)
    if operands.columns is operands.rows and way is LeafLayout.COLUMNS and rows is columns:
        y = x
    else:
        y = side_of(operands.columns.block(columns), way, scale, left=False, halves=halves)
    depth = int(x.rows.shape[1]) // (2 if way is LeafLayout.SPLIT else 1)
    doubled = 2.0 if isinstance(operands.leaf, SqDist) else 1.0
    return Leaf(way, depth, x, y, doubled / scale**2, 0 if halves else features)


def side_of(block: Tensor, way: LeafLayout, scale: float, *, left: bool, halves: bool) -> LeafSide:
    """Write float64 rows as kernels read them, products of them times a scale."""
    squares = padded(block.square().sum(dim=1).to(torch.float32))
    if way is LeafLayout.COLUMNS:
        rows = padded(block.to(torch.float32))
    elif halves:
        rows = padded((scale * block).to(torch.float16))
    elif way is LeafLayout.SPLIT:
        missing = padded_depth(way, block.shape[1]) - block.shape[1]
        parts = [torch.nn.functional.pad(part, (0, missing)) for part in split(scale * block)]
        return LeafSide(padded(torch.cat(parts, dim=1)), squares)
    else:
        high, low = split(scale * block)
        # small terms first: tensor cores cut off what does not fit beside the sum so far
        rows = padded(torch.cat([high, low, high] if left else [low, high, high], dim=1))
    missing = padded_depth(way, rows.shape[1]) - rows.shape[1]
    rows = torch.nn.functional.pad(rows, (0, missing))
    if way is LeafLayout.COLUMNS:
        return LeafSide(_in_bands(rows), squares)
    return LeafSide(rows.contiguous(), squares)


def _in_bands(rows: Tensor) -> Tensor:
    """Lay out padded rows by features, those of a band together."""
    return rows.reshape(-1, BAND, rows.shape[1]).transpose(1, 2).contiguous()


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return 16-bit numbers h and l with x = h + l up to 2^-22 of the largest entries."""
    high = x.to(torch.float16)
    return high, (x - high.to(x.dtype)).to(torch.float16)


def _scale(operands: Operands) -> float:
    """Return the power of two that brings the largest entry of both sides near 2^8."""
    largest = max(operands.rows.largest, operands.columns.largest)
    if not 0 < largest < float("inf"):
        return 1.0
    return float(2.0 ** (_EXPONENT - torch.tensor(largest).frexp()[1].item()))


def padded(rows: Tensor) -> Tensor:
    """Repeat the last row up to a multiple of the tiles, and for one tile that begins anywhere."""
    missing = -len(rows) % BAND + BAND
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])])
