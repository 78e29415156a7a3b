"""Columns that may be among the k nearest by sums of absolute differences: the generated kernel.

Features are compared one by one in float32. What that rounds is bounded, so no column that is not
returned is nearer than the bound says.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from mercer.backends.lowering.lower import lower
from mercer.backends.torch.fusing.launch import SMALLEST_TILE, keep_smallest
from mercer.backends.torch.fusing.leaves import side_of
from mercer.backends.torch.fusing.nearest import buckets
from mercer.backends.torch.fusing.nearest.buckets import LONGEST, Buckets, Found
from mercer.backends.torch.fusing.tiling import Way
from mercer.expression import AbsDist

Tensor: TypeAlias = torch.Tensor

_STEP_BITS = 10  # of a score, at most: 2^-12 of a distance brings few more columns near
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
        self._buckets = Buckets(len(columns), count, SMALLEST_TILE.width, most_bits=_STEP_BITS)
        centre = columns.mean(dim=0)
        self._centre = torch.where(centre.isfinite(), centre, 0.0)
        near = columns - self._centre
        self._y, self._longest = _in_float32(near), near.abs().sum(dim=1).amax()

    @property
    def width(self) -> int:
        """How many scores are written for each row."""
        return self._buckets.width

    def search(self, rows: Tensor) -> Found:
        """Find candidates for (n, d) float64 rows."""
        near = rows - self._centre
        x = _in_float32(near)
        ways = ((Way.COLUMNS, int(x.shape[1])),)
        found = keep_smallest(lower(AbsDist()), [x, self._y], ways, len(rows), self._buckets)
        numbers, least = self._buckets.candidates(*found)
        lengths = near.abs().sum(dim=1) + self._longest
        share = self._buckets.rounding + 2.0 * (rows.shape[1] + 8) * _UNIT
        lowest = least * (1.0 - share) - 4.0 * _UNIT * lengths - rows.shape[1] * _SMALLEST
        return Found(numbers, torch.where(lengths < LONGEST, lowest, -torch.inf))


def suits(count: int, columns: int, features: int) -> bool:
    """Return whether a search by candidates is less work than one of all distances.

    Examples
    --------
    >>> suits(10, 10_000, 64), suits(10, 1000, 64)
    (True, False)
    """
    return features > 0 and buckets.suits(count, columns, SMALLEST_TILE.width)


def _in_float32(rows: Tensor) -> Tensor:
    return side_of(rows, Way.COLUMNS, 1.0, left=True, halves=False).rows
