"""Columns dealt out to buckets as cards are: how many there are, and what their scores tell.

Each bucket keeps its two smallest scores, whose last bits say at which step they came. If all of
the k nearest columns are to be kept, no three of them may be in one bucket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import torch

from mercer.backends.torch.fusing.reductions import FAR

Tensor: TypeAlias = torch.Tensor

MOST = 64  # neighbours: beyond them buckets are as many as columns
LONGEST = 1e30  # scores beyond it are too near the end of float32
# Of k nearest columns three are in one bucket with probability k^3 / 6 B^2: one row in 200.
_BUCKETS = 6.0
_COLUMNS = 8  # of a bucket, at least: less is no gain


class Found(NamedTuple):
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


def suits(neighbours: int, columns: int, lanes: int) -> bool:
    """Return whether a search by buckets is less work than one of all columns.

    Examples
    --------
    >>> suits(10, 10_000, 32), suits(10, 1000, 32), suits(100, 10**9, 32)
    (True, False, False)
    """
    return 0 < neighbours <= MOST and columns >= _COLUMNS * max(lanes, enough(neighbours))
