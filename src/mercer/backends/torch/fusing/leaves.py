"""Leaves as kernels read them: padded, split into 16-bit numbers or laid out by features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from mercer.array_types import Index
from mercer.backends.torch.fusing.tiling import BAND, HELD, Way, padded_depth
from mercer.backends.torch.operands import Operands
from mercer.expression import Dot, SqDist

Tensor: TypeAlias = torch.Tensor

_EXPONENT = 8  # of the largest entry of what is split: far from both ends of 16-bit numbers
SPLITS = 3  # operands of a product of h + l: times the features
_EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class Side:
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

    def taken(self, index: Tensor, way: Way) -> Side:
        """Return some rows, laid out as all are."""
        rows = self.rows
        if way is Way.COLUMNS:
            rows = rows[index // BAND, :, index % BAND]
        elif way.is_product:
            rows = rows[index]
        squares = padded(self.squares[index])
        if way is Way.SHARED:
            return Side(squares, squares)
        rows = padded(rows)
        return Side(_in_bands(rows) if way is Way.COLUMNS else rows, squares)


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

    way: Way
    depth: int
    x: Side
    y: Side
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
        if self.way is Way.COLUMNS:
            return rows
        if self.way is Way.SHARED:
            return [*numbers, self.factor]
        return [*rows, *numbers, self.factor, self.least]


def prepare_all(
    every: Sequence[Operands],
    ways: Sequence[Way],
    rows: Index = _EVERY,
    columns: Index = _EVERY,
    halves: bool = False,
) -> list[Leaf]:
    """Write both sides of all leaves, or some rows and columns of them, as kernels read them."""
    return [
        _shared(operands, every, rows, columns)
        if way is Way.SHARED
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
    return Leaf(Way.SHARED, number, Side(left, left), Side(right, right), factor)


def prepare(
    operands: Operands,
    way: Way,
    rows: Index = _EVERY,
    columns: Index = _EVERY,
    halves: bool = False,
) -> Leaf:
    """Write both sides of a leaf, or some rows and columns of it, as kernels read them.

    Products are those of upper halves alone if `halves` are asked for.
    """
    scale, features = _scale(operands), operands.rows.shape[1]
    if way is Way.PRODUCTS and not halves and SPLITS * features <= HELD:
        way = Way.SPLIT
    x = side_of(operands.rows.block(rows), way, scale, left=True, halves=halves)
    if operands.columns is operands.rows and way is Way.COLUMNS and rows is columns:
        y = x
    else:
        y = side_of(operands.columns.block(columns), way, scale, left=False, halves=halves)
    depth = int(x.rows.shape[1]) // (2 if way is Way.SPLIT else 1)
    doubled = 2.0 if isinstance(operands.leaf, SqDist) else 1.0
    return Leaf(way, depth, x, y, doubled / scale**2, 0 if halves else features)


def side_of(block: Tensor, way: Way, scale: float, *, left: bool, halves: bool) -> Side:
    """Write float64 rows as kernels read them, products of them times a scale."""
    squares = padded(block.square().sum(dim=1).to(torch.float32))
    if way is Way.COLUMNS:
        rows = padded(block.to(torch.float32))
    elif halves:
        rows = padded((scale * block).to(torch.float16))
    elif way is Way.SPLIT:
        missing = padded_depth(way, block.shape[1]) - block.shape[1]
        parts = [torch.nn.functional.pad(part, (0, missing)) for part in split(scale * block)]
        return Side(padded(torch.cat(parts, dim=1)), squares)
    else:
        high, low = split(scale * block)
        # small terms first: tensor cores cut off what does not fit beside the sum so far
        rows = padded(torch.cat([high, low, high] if left else [low, high, high], dim=1))
    missing = padded_depth(way, rows.shape[1]) - rows.shape[1]
    rows = torch.nn.functional.pad(rows, (0, missing))
    if way is Way.COLUMNS:
        return Side(_in_bands(rows), squares)
    return Side(rows.contiguous(), squares)


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
