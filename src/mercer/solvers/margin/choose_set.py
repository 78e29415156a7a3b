"""Which variables of a programme form the next working set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import multiplier
from mercer.solvers.margin.descent import BoxState
from mercer.solvers.margin.shared_products import Block

DIRECT = 512  # variables: up to here all of them are the set
FIRST, LEAST_FIRST, FIRST_SHARE = 512, 64, 0.06  # variables of a first set, and of all
LARGEST_SHARE = 0.15  # of the variables: larger sets cost more than they save, ...
# ... and so do sets of more: covertype, 90000 rows, in seconds with 13500, 7200 and 4500: 10.2, 9.2
# and 9.9 at C = 100, 8.1, 7.4 and 7.2 at C = 10, 6.5, 5.9 and 6.1 at C = 1
LARGEST = 7200
SMALLEST = 256
GROWTH, LEAST_JOINING = 2.0, 256  # times the support vectors known: how many join, at least
SPARE = 1.5  # times the free variables: a set must hold them all with room to spare
SAMPLED, ONE_IN = 128, 8  # points of a sample: at least, and one in so many
LEAST_NEAR, NEAR = 64, 128  # variables nearest to deciding: at least, and one in so many
STRONGEST = 8  # one in so many that join is among the worst; the others are evenly spaced


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a programme stands: looked at once, for all that is decided by it.

    Attributes
    ----------
    rising, falling : (n,) array
        The two sides of the optimality conditions.
    level : (n,) array
        The multiplier of the sum of each variable.
    free : (n,) bool array
        Which variables can move both ways.
    violation : float
        The largest violation by a pair.
    """

    rising: Array
    falling: Array
    level: Array
    free: Array
    violation: float


def standing(part: BoxState) -> Standing:
    """Look at a programme."""
    problem = part.problem
    rising, falling = problem.rising(part.b, part.F), problem.falling(part.b, part.F)
    members = problem.members()
    levels = np.array([multiplier(rising[m], falling[m]) for m in members])
    pairs = (
        float(rising[m].max(initial=-np.inf) - falling[m].min(initial=np.inf)) for m in members
    )
    level = np.broadcast_to(levels, rising.shape) if len(levels) == 1 else problem.spread(levels)
    return Standing(rising, falling, level, part.free(), max(pairs, default=-np.inf))


def choose_set(part: BoxState, now: Standing, last: Array, largest: int) -> Array:
    """Choose the next set: what is free, violators that join, others that can still move.

    Violators are a fair sample of all, in proportion to the support vectors known: the worst of
    them alone would be much alike. Never more than `largest`, which is what fits the memory: then
    it takes more sets.

    Parameters
    ----------
    part : BoxState
        The programme.
    now : Standing
        Where it stands.
    last : int array
        The last set.
    largest : int
        Most variables of a set.

    Returns
    -------
    int array
        The variables, in order.
    """
    problem, n = part.problem, len(part.b)
    if n <= min(DIRECT, largest):
        return np.arange(n)
    rising, falling, level = now.rising, now.falling, now.level
    few = int(np.count_nonzero(now.free))
    size = _size(part, few, len(last) == 0, largest)
    taken = now.free.copy()
    if few >= size:  # no room for all: the worst of them, and others
        taken[:] = False
        free = np.flatnonzero(now.free)
        taken[_largest(free, np.abs(part.F - level)[free], size // 2)] = True
    movable = now.free.copy()
    for m in problem.members():
        where = np.arange(n)[m]
        if not len(where):
            continue
        high, low = int(np.argmax(rising[m])), int(np.argmin(falling[m]))
        taken[where[[high, low]]] = True  # the worst pair, so that every set moves something
        movable[m] |= (rising[m] > falling[m][low]) | (falling[m] < rising[m][high])
    room = (size - int(np.count_nonzero(taken)) + 1) // 2
    for wrong in (rising - level, level - falling):
        joining = np.flatnonzero((wrong > 0) & ~taken)
        _join(taken, joining, wrong[joining], room)
    left = last[~taken[last] & movable[last]]
    wrong = np.maximum(rising[left] - level[left], level[left] - falling[left])
    taken[_largest(left, wrong, size - int(np.count_nonzero(taken)))] = True
    return np.flatnonzero(taken)


def _size(part: BoxState, free: int, first: bool, largest: int) -> int:
    n, used = len(part.b), np.count_nonzero(part.b)
    size = first_size(n) if first and not used else free + max(LEAST_JOINING, int(GROWTH * used))
    size = min(size, LARGEST, max(SMALLEST, int(LARGEST_SHARE * n)))
    return min(n, largest, max(size, int(SPARE * free) + LEAST_FIRST))


def first_size(n: int) -> int:
    """Return the size of the first set of n variables."""
    return min(FIRST, max(LEAST_FIRST, int(FIRST_SHARE * n)))


def _join(taken: Array, joining: Array, wrong: Array, count: int) -> None:
    """Take so many violators: the worst few, and a fair sample of the others."""
    if count >= len(joining):
        taken[joining] = True
        return
    if count <= 0:
        return
    equal = wrong.max() <= wrong.min()
    worst = 0 if equal else max(1, count // STRONGEST)
    taken[_largest(joining, wrong, worst)] = True
    others = joining[~taken[joining]]
    taken[others[np.linspace(0, len(others) - 1, count - worst).astype(np.int64)]] = True


def _largest(index: Array, value: Array, count: int) -> Array:
    if count <= 0:
        return index[:0]
    if count >= len(index):
        return index
    return np.asarray(index[np.argpartition(-value, count)[:count]])


def sample_points(n: int, blocks: list[Block]) -> tuple[Array, Array]:
    """Return which of n points are a fair sample of each block, and which a much smaller one.

    Points of one block are those that the same programmes have: a class, where these are pairs.
    """
    return _one_in(ONE_IN, n, blocks), _one_in(ONE_IN**2, n, blocks)


def _one_in(count: int, n: int, blocks: list[Block]) -> Array:
    """Return one in so many of the points of each block, some of small ones."""
    chosen = np.zeros(n, dtype=bool)
    for block in blocks:
        points = np.arange(n)[block.points]
        taken = min(len(points), max(SAMPLED, len(points) // count))
        chosen[points[np.linspace(0, len(points) - 1, taken).astype(np.int64)]] = True
    return chosen


def near_points(parts: Iterable[tuple[BoxState, Standing]], n: int) -> Array:
    """Return which of n points are in use, violate a condition of a programme, or are near to that.

    Programmes get all of these that they have: rows near in one of them are often so in another.
    """
    chosen = np.zeros(n, dtype=bool)
    for part, now in parts:
        wrong = np.maximum(now.rising - now.level, now.level - now.falling)
        used = part.b != 0
        matter = int(np.count_nonzero(used | (wrong > 0)))
        wrong[used] = np.inf
        count = max(LEAST_NEAR, len(used) // NEAR, int(SPARE * matter))
        chosen[part.points(_largest(np.arange(len(used)), wrong, count))] = True
    return chosen
