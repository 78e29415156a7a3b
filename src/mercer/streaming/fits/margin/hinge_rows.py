"""What the rows of a block say of a hinge loss: its rounded form, and the rows near its corner.

The loss of a row is C max(0, r), r = 1 - y (w'(phi - centre) + b). Rounded over a width d, its
slope a(r) rises from 0 to C while r passes from -d/2 to d/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks import Block
from mercer.problems.blocks import feature_pieces
from mercer.problems.blocks.questions import PartRows


@dataclass(frozen=True, eq=False)
class Plane:
    """A function w'(phi - centre) + b of features phi."""

    features: Any
    centre: Array
    w: Array
    b: float

    def moved(self, step: Array, length: float) -> Plane:
        """Return the plane after a step of (w, b)."""
        w, b = self.w + length * step[:-1], self.b + length * float(step[-1])
        return Plane(self.features, self.centre, w, b)

    @property
    def offset(self) -> float:
        """The bias where nothing is taken off the features."""
        return self.b - float(self.w @ self.centre)

    @property
    def unknowns(self) -> Array:
        """Weights and bias in one vector."""
        return np.append(self.w, self.b)


@dataclass(frozen=True, eq=False)
class NearRows:
    """Rows of a block near the corner, and what all its other rows add up to.

    Attributes
    ----------
    first : int
        Number of the first row of the block.
    places : (k,) int array
        Where near rows are among those of the block that are in the part.
    F : (k, D) array
        Their features, less the centre.
    y, cost : (k,) arrays
        Their signs and C_i.
    pull : (D + 1,) array
        Sum of C_i y_i (phi_i - centre, 1) over others with r > 0.
    level : float
        Sum of their C_i.
    slack : float
        Sum of C_i max(0, r_i) over all rows.
    """

    first: int
    places: Array
    F: Array
    y: Array
    cost: Array
    pull: Array
    level: float
    slack: float


def class_sums(block: Block, part: PartRows) -> tuple[float, float, int, int]:
    """Return what the slack of both classes costs, and how many rows they have."""
    _, y, cost = part.of(block)
    up = y > 0
    return float(cost[up].sum()), float(cost[~up].sum()), int(up.sum()), int((~up).sum())


def feature_sums(block: Block, part: PartRows, features: Any) -> tuple[int, Array]:
    """Count the rows, and return the sum of their features."""
    block, _, _ = part.of(block)
    sums = np.zeros(features.dimension)
    for _, F in feature_pieces(block, features):
        sums += F.sum(axis=0)
    return len(block), sums


def sampled(
    block: Block, part: PartRows, shares: Array, features: Any
) -> tuple[Array, Array, Array]:
    """Draw a share of each class: features, signs, and C_i of all rows that one stands for."""
    block, y, cost = part.of(block)
    share = np.where(y > 0, shares[0], shares[1])
    drawn = np.random.default_rng([0, block.first]).random(len(y)) < share
    chosen = np.flatnonzero(drawn)
    F = np.empty((len(chosen), features.dimension))
    for rows, piece in feature_pieces(block.only(chosen), features):
        F[rows] = piece
    return F, y[chosen], cost[chosen] / share[chosen]


def balanced_costs(y: Array, cost: Array, shares: Array) -> Array:
    """Return C_i times the share of its class, by which both classes together cost the same."""
    return np.asarray(cost * np.where(y > 0, shares[0], shares[1]))


def middle_of_boxes(block: Block, part: PartRows, shares: Array) -> Array:
    """Begin with multipliers in the middle of the box, balanced between the classes."""
    _, y, cost = part.of(block)
    return 0.5 * balanced_costs(y, cost, shares)


def rounded_sums(
    block: Block, kept: Array, part: PartRows, at: Plane, width: float, band: float
) -> tuple[Array, tuple[Any, ...]]:
    """Keep the slopes of the rounded losses; return their sum and its derivatives in (w, b).

    Returns
    -------
    tuple
        Slopes, and: the sum of losses, minus its gradient, second derivatives, a bound on their
        diagonal for steps of any length, the sum of C_i over rows that rounding concerns, rows
        within the band.
    """
    block, y, cost = part.of(block)
    D = len(at.w)
    value = bent_cost = 0.0
    near, pull, H = 0, np.zeros(D + 1), np.zeros((D + 1, D + 1))
    bound = np.zeros(D + 1)
    slopes = np.empty(len(block))
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        sign, C = y[rows], cost[rows]
        r = 1.0 - sign * (F @ at.w + at.b)
        risen = np.clip(r / width + 0.5, 0.0, 1.0)
        bent = np.flatnonzero((risen > 0) & (risen < 1))
        loss = np.where(risen < 1, 0.5 * width * risen**2, r)
        a = slopes[rows] = C * risen
        value += float(C @ loss)
        near += int(np.count_nonzero(np.abs(r) <= band))
        pull[:D] += (a * sign) @ F
        pull[D] += float(a @ sign)
        # a parabola of this bend that touches the loss at r is nowhere below it
        bend = 0.5 * C / np.maximum(np.abs(r), 0.5 * width)
        bound[:D] += np.einsum("i,ij,ij->j", bend, F, F)
        bound[D] += float(bend.sum())
        bent_cost += float(C[bent].sum())
        G = np.sqrt(C[bent] / width)[:, None] * np.column_stack([F[bent], np.ones(len(bent))])
        H += G.T @ G
    return slopes, (value, pull, H, bound, bent_cost, near)


def rows_near(
    block: Block, part: PartRows, at: Plane, others: Array, band: float, most: int
) -> NearRows | None:
    """Return the rows near their corner; None where they are more than `most`.

    Parameters
    ----------
    block : Block
        Rows.
    part : PartRows
        Which of them there are, and their signs.
    at : Plane
        Where r is measured.
    others : (D + 1, p) array
        (w, b) of other planes: rows that are on the other side of a corner there are near, too.
    band : float
        Of r: rows within it are near.
    most : int
        Rows that there is room for.
    """
    block, y, cost = part.of(block)
    D = len(at.w)
    pull, level, slack = np.zeros(D + 1), 0.0, 0.0
    places: list[Array] = []
    found = [np.empty((0, D))]
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        sign, C = y[rows], cost[rows]
        r = 1.0 - sign * (F @ at.w + at.b)
        close = np.abs(r) <= band
        if others.shape[1]:
            there = 1.0 - sign[:, None] * (F @ others[:-1] + others[-1])
            close |= ((there > 0) != (r > 0)[:, None]).any(axis=1)
        slack += float(C @ np.maximum(r, 0.0))
        a = np.where(~close & (r > 0), C, 0.0)
        pull[:D] += (a * sign) @ F
        pull[D] += float(a @ sign)
        level += float(a.sum())
        here = np.flatnonzero(close)
        places.append(here + rows.start)
        found.append(F[here])
        if sum(map(len, places)) > most:
            return None
    where = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return NearRows(
        block.first, where, np.concatenate(found), y[where], cost[where], pull, level, slack
    )


@dataclass(frozen=True, eq=False)
class NearBlocks:
    """Rows near their corner of several blocks, in their order, as long as there is room; they add.

    So that sums of them never hold more than the room, and a block beside it.

    Attributes
    ----------
    parts : tuple of NearRows or None
        One for each block; None where they are too many.
    room : int
        Rows that there is room for, of all blocks together.
    """

    parts: tuple[NearRows, ...] | None
    room: int

    def __add__(self, other: NearBlocks) -> NearBlocks:
        if self.parts is None or other.parts is None:
            return NearBlocks(None, self.room)
        parts = (*self.parts, *other.parts)
        too_many = sum(len(one.y) for one in parts) > self.room
        return NearBlocks(None if too_many else parts, self.room)


def near_blocks(
    block: Block, part: PartRows, at: Plane, others: Array, band: float, most: int, room: int
) -> NearBlocks:
    """Return the rows of a block near their corner, to be added up; see `rows_near`."""
    found = rows_near(block, part, at, others, band, most)
    return NearBlocks(None if found is None else (found,), room)


def slack_of(block: Block, part: PartRows, at: Plane) -> float:
    """Return the sum of C_i max(0, r_i)."""
    block, y, cost = part.of(block)
    slack = 0.0
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        slack += float(cost[rows] @ np.maximum(1.0 - y[rows] * (F @ at.w + at.b), 0.0))
    return slack


def decided(
    block: Block, kept: Array, part: PartRows, at: Plane, near: dict[int, tuple[Array, Array]]
) -> tuple[Array, int]:
    """Keep multipliers: those that were found for the rows near a corner, else a bound."""
    block, y, cost = part.of(block)
    a = np.empty(len(block))
    for rows, F in feature_pieces(block, at.features):
        np.subtract(F, at.centre, out=F)
        r = 1.0 - y[rows] * (F @ at.w + at.b)
        a[rows] = np.where(r > 0, cost[rows], 0.0)
    if block.first in near:
        places, found = near[block.first]
        a[places] = np.clip(found, 0.0, cost[places])
    return a, 0


def total_slack(near: list[NearRows]) -> float:
    """Return the sum of C_i max(0, r_i) over all rows."""
    return float(sum(one.slack for one in near))


def multipliers_of(near: list[NearRows], b: Array) -> dict[int, tuple[Array, Array]]:
    """Return places and multipliers of near rows, by the first row of their block."""
    parts = np.split(b, np.cumsum([len(one.y) for one in near])[:-1])
    return {
        one.first: (one.places, part * one.y)
        for one, part in zip(near, parts, strict=True)
        if len(part)
    }
