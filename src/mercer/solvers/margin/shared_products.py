"""K times steps of several programmes at once, where K is evaluated and dropped again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.source import Source
from mercer.points import row_count, take
from mercer.resources import rows_at_once

_MOST_ROWS = 1 << 20  # of a product that is held at once
_SPARE_BLOCKS = 8  # beyond two for each programme: then all points are one block
_KEY = 0x9E3779B97F4A7C15  # an odd number with bits of no pattern: marks who has a point

Step = tuple[Array, Array]  # points of the base, in order, and what is added at each


@dataclass(frozen=True, eq=False)
class Member:
    """A programme that has variables at the points of a block.

    Attributes
    ----------
    part : int
        Its number.
    variables : slice or int array
        Which of its variables.
    rows : slice or int array
        Where in the block their points are.
    """

    part: int
    variables: Any
    rows: Any


@dataclass(frozen=True, eq=False)
class Block:
    """Points that the same programmes have.

    Attributes
    ----------
    points : slice or int array
        Which points of the base.
    members : list of Member
        The programmes.
    """

    points: Any
    members: list[Member]


class SharedProducts:
    """Products with columns of a K that several programmes share.

    Points of the same programmes form a block: rows of a class, for all pairs of classes. Each
    block is evaluated against the points that moved in one of its programmes, once for all of them.

    Parameters
    ----------
    source : Source
        Kernel and points.
    indices : list of (m,) int arrays or None
        The point of each variable of each programme; None for all points in order.

    Attributes
    ----------
    blocks : list of Block
        The points, by the programmes that have them.
    points : int
        How many of them there are.
    entries : float
        Entries of K that have been evaluated.
    """

    def __init__(self, source: Source, indices: list[Array | None]) -> None:
        self.source = source
        self.entries = 0.0
        self.indices = indices
        self.blocks = _blocks(source.n, indices)
        self.points = sum(_count(block.points) for block in self.blocks)

    def __call__(self, steps: dict[int, Step]) -> dict[int, Array]:
        """Return K times the step of each programme, at all of its variables."""
        products = {k: np.zeros(self._size(k)) for k in steps}
        for block in self.blocks:
            members = [m for m in block.members if m.part in steps and len(steps[m.part][0])]
            if members:
                self._add(block.points, members, steps, products)
        return products

    def _size(self, part: int) -> int:
        index = self.indices[part]
        return self.source.n if index is None else len(index)

    def _add(
        self, points: Any, members: list[Member], steps: dict[int, Step], products: dict[int, Array]
    ) -> None:
        moved, coef = _columns([steps[m.part] for m in members])
        X = take(self.source.X, points)
        columns, height = self.source.only(moved), row_count(X)
        self.entries += float(height) * len(moved)
        at_once = rows_at_once(coef.shape[1], min(_MOST_ROWS, max(1, height)), arrays=3)
        sums = np.empty((height, coef.shape[1])) if height > at_once else None
        for first in range(0, height, at_once):
            rows = slice(first, first + at_once)
            values = columns.cross(X if sums is None else take(X, rows)) @ coef
            if sums is None:
                sums = values
            else:
                sums[rows] = values
        assert sums is not None
        for column, member in enumerate(members):
            products[member.part][member.variables] = sums[member.rows, column]


def _columns(steps: list[Step]) -> tuple[Array, Array]:
    """Return the points that moved in any of the programmes, and a column of steps for each."""
    if len(steps) == 1:
        return steps[0][0], steps[0][1][:, None]
    moved = np.unique(np.concatenate([points for points, _ in steps]))
    coef = np.zeros((len(moved), len(steps)))
    for column, (points, step) in enumerate(steps):
        coef[np.searchsorted(moved, points), column] = step
    return moved, coef


def _blocks(n: int, indices: list[Array | None]) -> list[Block]:
    """Cut the points where the programmes that have them change."""
    everything = slice(0, n)
    if all(index is None for index in indices):
        return [Block(everything, [Member(k, everything, everything) for k in range(len(indices))])]
    mark, used = np.zeros(n, dtype=np.uint64), np.zeros(n, dtype=bool)
    for k, index in enumerate(indices):
        own = everything if index is None else index
        mark[own] ^= np.uint64((_KEY * (2 * k + 1)) & (2**64 - 1))
        used[own] = True
    points, place = np.flatnonzero(used), np.cumsum(used) - 1
    cuts = np.flatnonzero(np.diff(mark[points])) + 1
    if len(cuts) > 2 * len(indices) + _SPARE_BLOCKS:
        cuts = cuts[:0]
    cuts = np.concatenate([[0], cuts, [len(points)]])
    blocks = [Block(as_slice(points[first:last]), []) for first, last in pairwise(cuts)]
    for k, index in enumerate(indices):
        rows = place if index is None else place[index]
        for g, variables in _cut(rows, cuts):
            own = rows[variables] - cuts[g]
            blocks[g].members.append(Member(k, variables, as_slice(own)))
    return blocks


def _cut(rows: Array, cuts: Array) -> Iterator[tuple[int, Any]]:
    """Yield the numbers of the blocks that have some of the rows, and which of the rows."""
    if (rows[1:] > rows[:-1]).all():
        edges = np.searchsorted(rows, cuts).tolist()
        for g, (first, last) in enumerate(pairwise(edges)):
            if first < last:
                yield g, slice(first, last)
        return
    numbers = np.searchsorted(cuts, rows, side="right") - 1
    for g in np.unique(numbers).tolist():
        yield g, np.flatnonzero(numbers == g)


def as_slice(index: Array) -> Any:
    """Return numbers without a gap as a slice, others as they are: slices are not copied."""
    if len(index) and index[-1] - index[0] + 1 == len(index) and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _count(index: Any) -> int:
    return index.stop - index.start if isinstance(index, slice) else len(index)
