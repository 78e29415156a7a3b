"""Working-set descent for box QPs if K is not stored: choice, rounds, and solution of subsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.box_programs import Box, BoxAnswer, multiplier
from mercer.gram import CachedGram, LazyGram
from mercer.gram.evaluated import Source
from mercer.gram.policy import LARGEST_STORED, box_bytes, largest_set
from mercer.machines.svm.descent import VIOLATION, BoxState, Criterion, Engine, begin
from mercer.machines.svm.problem import BoxQP, Many
from mercer.machines.svm.smo import (
    StoredEngine,
    answer,
    conclude,
    limit_of,
    programmes,
    refusal,
    resting,
    starts,
)
from mercer.resources import rows_at_once, within_budget
from mercer.rows.points import row_count, take
from mercer.solvers.base import Solution, Solver, Status, Watch

# --- choose set ----------------------------------------------------------------------------------
#
# Which variables of a programme form the next working set.

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


def sample_points(n: int, blocks: list[SharedRows]) -> Array:
    """Return which of n points are a fair sample: one in so many of each block, some of small ones.

    Points of one block are those that the same programmes have: a class, where these are pairs.
    """
    chosen = np.zeros(n, dtype=bool)
    for block in blocks:
        points = np.arange(n)[block.points]
        taken = min(len(points), max(SAMPLED, len(points) // ONE_IN))
        chosen[points[np.linspace(0, len(points) - 1, taken).astype(np.int64)]] = True
    return chosen


# --- some variables ------------------------------------------------------------------------------
#
# Programmes in some of their variables, the others held: how they are written and put back.


def among(parts: dict[int, BoxState], chosen: Array) -> dict[int, tuple[BoxState, Array]]:
    """Return the programmes in the variables at some points, and which variables these are."""
    some = {}
    for k, part in parts.items():
        rows = np.flatnonzero(chosen[part.points(slice(None))])
        one = BoxState(part.problem.among(rows, part.b), part.b[rows], part.F[rows])
        one.steps, one.rounds = part.steps, part.rounds
        some[k] = (one, rows)
    return some


def points_of(parts: list[BoxState], n: int) -> Array:
    """Return which of n points are in some of the parts."""
    seen = np.zeros(n, dtype=bool)
    for part in parts:
        seen[part.points(slice(None))] = True
    return seen


def share_in_use(parts: list[BoxState], n: int) -> float:
    """Return which share of the points that parts have is in use in some of them."""
    seen, used = points_of(parts, n), np.zeros(n, dtype=bool)
    for part in parts:
        used[part.points(np.flatnonzero(part.b))] = True
    return float(np.count_nonzero(used)) / max(1.0, float(np.count_nonzero(seen)))


def level_of(part: BoxState) -> Array:
    """Return the multiplier of the sum of each variable; before the first step none is known."""
    if not part.b.any():
        return np.zeros(len(part.b))
    return np.asarray(part.problem.spread(part.problem.offsets(part.b, part.F)))


def batches(
    parts: list[BoxState], sets: list[Array], now: list[int], n: int, largest: int
) -> Iterator[list[int]]:
    """Yield numbers of parts whose sets together are no more points, of n, than `largest`."""
    batch: list[int] = []
    taken = np.zeros(n, dtype=bool)
    for k in now:
        before = taken.copy()
        taken[parts[k].points(sets[k])] = True
        if batch and np.count_nonzero(taken) > largest:
            yield batch
            batch, taken = [], np.zeros_like(before)
            taken[parts[k].points(sets[k])] = True
        batch.append(k)
    if batch:
        yield batch


def box_of(part: BoxState, chosen: Array, level: Array, place: Array) -> Box:
    """Write the programme in some variables for a backend; `place` has the rows of all points."""
    problem, held = part.problem, part.unwrapped
    return Box(
        part.F[chosen] - level[chosen],  # float32 resolves the rest of F better
        part.b[chosen],
        problem.lower[chosen],
        problem.upper[chosen],
        problem.epsilons[chosen] if np.any(problem.epsilon) else None,
        None if held.shift is None else held.shift[chosen],
        None if problem.group is None else problem.group[chosen],
        np.ascontiguousarray(place[part.points(chosen)], dtype=np.int64),
    )


def moved_of(variables: Array, step: Array) -> Step:
    """Return the variables that moved, and by how much."""
    moved = np.flatnonzero(step)
    return variables[moved], step[moved]


def with_shift(part: BoxState, product: Array, changed: Array, step: Array) -> Array:
    """Add what the diagonal shift of a programme makes of a step to its product with K."""
    shift = part.unwrapped.shift
    if shift is not None:
        product[changed] += shift[changed] * step
    return product


# --- shared products -----------------------------------------------------------------------------
#
# K times steps of several programmes at once, where K is evaluated and dropped again.

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
class SharedRows:
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


def _blocks(n: int, indices: list[Array | None]) -> list[SharedRows]:
    """Cut the points where the programmes that have them change."""
    everything = slice(0, n)
    if all(index is None for index in indices):
        return [
            SharedRows(everything, [Member(k, everything, everything) for k in range(len(indices))])
        ]
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
    blocks = [SharedRows(as_slice(points[first:last]), []) for first, last in pairwise(cuts)]
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


# --- rounds --------------------------------------------------------------------------------------
#
# Descents on sets of rows, chosen anew: rounds of them, until K is worth storing.

_INNER = 0.1  # of the violation: how far a set is solved, ...
_INNER_SMALL, _SMALL = 0.01, 1024  # ... and one of so few variables, where pair steps cost nothing
_AT_ONCE = 4096  # points: K of so few costs less than to choose among them
_ENOUGH = 2.0  # times all entries of K evaluated: then it is stored, where it fits
_LEAST = 16  # variables of a set, however small the memory budget


class WorkingSetRounds(Engine):
    """The engine that computes entries of K when they are needed.

    Parameters
    ----------
    source : Source
        Kernel and points.
    watch : Watch
        Told the steps of all runs together.
    limit : int
        Pair steps allowed for each programme.

    Attributes
    ----------
    most : float
        Sets allowed for each programme.
    """

    most = np.inf

    def __init__(self, source: Source, watch: Watch, limit: int) -> None:
        super().__init__(watch, limit, float(np.finfo(source.dtype).eps))
        self.source = source
        self._largest = max(_LEAST, largest_set(source.dtype))
        self._few = min(_AT_ONCE, self._largest)
        self._entries = 0.0  # of K, evaluated so far
        self._stored: StoredEngine | None = None

    def is_spent(self, part: BoxState) -> bool:
        """Return whether a part has had all the pair steps, or sets, that it is allowed."""
        return super().is_spent(part) or part.rounds >= self.most

    def crawled(self, parts: list[BoxState], ends: list[Status]) -> str:
        """Return whether sets too small for the free variables led to the limit, in words."""
        limited = [
            part for part, end in zip(parts, ends, strict=True) if end is Status.ITERATION_LIMIT
        ]
        free = max((np.count_nonzero(part.free()) for part in limited), default=0)
        if free <= self._largest:
            return ""
        return (
            f"the memory budget leaves room for sets of {self._largest} variables, too few for the "
            f"{free} that are free; raise it with mercer.config(memory=...)"
        )

    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Multiply by the rows that are stored, or by entries that live only for it."""
        if self._stored is not None:
            return self._stored.applied(part, changed, step)
        products = SharedProducts(self.source, [part.unwrapped.index])
        return self._times(products, [part], {0: (changed, step)})[0]

    def _at_once(self, parts: list[BoxState], tol: float) -> None:
        """Descend on K of all points that the parts have, where these are few."""
        sets = [np.arange(len(part.b)) for part in parts]
        levels = [level_of(part) for part in parts]
        _, ends = self._pair_steps(parts, sets, levels, range(len(parts)), tol)
        for part, level, end in zip(parts, levels, ends.values(), strict=True):
            part.b, part.F, part.violation = end.b, end.gradient + level, end.violation
            part.error, part.steps = np.inf, part.steps + end.iterations
            part.rounds += 1

    def _rounds(
        self, parts: list[BoxState], tol: float, products: SharedProducts | None = None
    ) -> None:
        """Solve set after set until none of the parts is left."""
        if products is None:
            products = SharedProducts(self.source, [part.unwrapped.index for part in parts])
        sets = [np.zeros(0, dtype=np.int64) for _ in parts]
        stands = [standing(part) for part in parts]
        for part, stand in zip(parts, stands, strict=True):
            part.violation = stand.violation
        left = list(range(len(parts)))
        whole = products.points == self.source.n
        while not self.watch.stopped:
            if whole and self._entries > _ENOUGH * self.source.n**2 and self._fits(parts):
                self._store()
            if self._stored is not None:
                self._on_stored(self._stored, parts, tol)
                return
            left = [k for k in left if parts[k].violation > tol and not self.is_spent(parts[k])]
            worst = max((parts[k].violation for k in left), default=-np.inf)
            if not left or self.watch.tick(self.steps, worst):
                return
            coarse = max(0.5 * tol, _INNER * worst)
            now = [k for k in left if parts[k].violation > coarse]
            for k in now:
                sets[k] = choose_set(parts[k], stands[k], sets[k], self._largest)
            small = max(len(sets[k]) for k in now) <= _SMALL
            inner = max(0.5 * tol, _INNER_SMALL * worst) if small else coarse
            for batch in batches(parts, sets, now, self.source.n, self._largest):
                stuck = self._solve(parts, sets, stands, batch, inner, products)
                left = [k for k in left if k not in stuck]
                if self._is_over():
                    return

    def _solve(
        self,
        parts: list[BoxState],
        sets: list[Array],
        stands: list[Standing],
        batch: list[int],
        tol: float,
        products: SharedProducts,
    ) -> set[int]:
        """Solve in the variables of the sets alone; return the parts that did not move."""
        levels = [stand.level for stand in stands]
        points, ends = self._pair_steps(parts, sets, levels, batch, tol)
        self._entries += 0.5 * points**2
        steps = {k: moved_of(sets[k], end.b - parts[k].b[sets[k]]) for k, end in ends.items()}
        changes = self._times(products, parts, steps)
        for k, end in ends.items():
            part = parts[k]
            part.F, part.b = part.F - changes[k], part.b.copy()
            part.b[sets[k]] = end.b
            stands[k] = standing(part)
            part.violation = stands[k].violation
            part.error, part.steps = np.inf, part.steps + end.iterations
            part.rounds += 1
        return {k for k in batch if not len(steps[k][0])}

    def _pair_steps(
        self,
        parts: list[BoxState],
        sets: list[Array],
        levels: list[Array],
        batch: Sequence[int],
        tol: float,
    ) -> tuple[int, dict[int, BoxAnswer]]:
        """Descend on K between the points of some sets; return how many, and where it ended."""
        taken = np.zeros(self.source.n, dtype=bool)
        for k in batch:
            taken[parts[k].points(sets[k])] = True
        points = np.flatnonzero(taken)
        place = np.cumsum(taken) - 1
        K = self.source.only(points).pairs().dense()
        boxes = [box_of(parts[k], sets[k], levels[k], place) for k in batch]
        before, worst = self.steps, max(parts[k].violation for k in batch)
        found = choose_backend().box_qps(
            K,
            boxes,
            tol,
            self.limit - max(parts[k].steps for k in batch),
            lambda n, _: self.watch.tick(before + n, worst),
        )
        self.steps += sum(end.iterations for end in found)
        return len(points), dict(zip(batch, found, strict=True))

    def _times(
        self, products: SharedProducts, parts: list[BoxState], steps: dict[int, Step]
    ) -> dict[int, Array]:
        """Return K, with its shift, times steps of some of the parts."""
        before = products.entries
        changes = products({k: parts[k].on_base(*step) for k, step in steps.items()})
        self._entries += products.entries - before
        return {k: with_shift(parts[k], changes[k], *step) for k, step in steps.items()}

    def _fits(self, parts: list[BoxState]) -> bool:
        """Return whether K of all points may be stored, and descended on."""
        variables = max(len(part.b) for part in parts)
        return within_budget(box_bytes(self.source.n, variables, self.source.dtype))

    def _store(self) -> None:
        self._stored = StoredEngine(self.source.pairs().stored(), self.watch, self.limit)

    def _on_stored(self, stored: StoredEngine, parts: list[BoxState], tol: float) -> None:
        stored.limit, stored.steps = self.limit, self.steps
        stored.descend(parts, tol)
        self.steps = stored.steps

    def _is_over(self) -> bool:
        return bool(self.watch.stopped)


# --- set engine ----------------------------------------------------------------------------------
#
# The engine of `WorkingSets`: a sample first, then rounds on all rows, or K stored.

_LEAST_SAMPLED = 4096  # points: with fewer no sample is worth its rounds
_LOOSE = 0.025  # of the spread of F at the start: what the violation on a sample may be
_MANY = 0.4  # of a sample in use: then all of K is worth storing, where it fits
# Entries of K for each programme that cost no more than the sets of that programme: with fewer K is
# stored at once, as for many pairs of small classes.
_ENTRIES_PER_PART = 1.5e6


class Sets(WorkingSetRounds):
    """Rounds that start from the answer on a sample."""

    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Solve set after set, those of all parts together; many rows start from a sample."""
        if not parts:
            return
        cold = all(not part.b.any() for part in parts)
        if self._stored is None and cold and self._is_soon_stored(parts):
            self._store()
        if self._stored is not None:
            self._on_stored(self._stored, parts, tol)
            return
        products = SharedProducts(self.source, [part.unwrapped.index for part in parts])
        if products.points <= self._few:
            self._at_once(parts, tol)
            return
        if cold and products.points >= _LEAST_SAMPLED:
            self._on_a_sample(parts, tol, products)
        self._rounds(parts, tol, products)

    def _on_a_sample(self, parts: list[BoxState], tol: float, products: SharedProducts) -> None:
        """Start all parts from answers on a sample, or store K at once if much of it is in use."""
        chosen = sample_points(self.source.n, products.blocks)
        if 2 * np.count_nonzero(chosen) > products.points:  # so many classes that none has many
            return
        loose = max(tol, _LOOSE * max(float(np.ptp(part.F)) for part in parts))
        few, some = self._solved_among(parts, chosen, loose)
        whole = products.points == self.source.n <= LARGEST_STORED and self._fits(parts)
        if not (whole and self._stores(parts, few)):
            self._adopt(parts, some, products)

    def _solved_among(
        self, parts: list[BoxState], chosen: Array, tol: float
    ) -> tuple[list[BoxState], dict[int, tuple[BoxState, Array]]]:
        """Return the answers at some points alone, and which variables these are."""
        some = among(dict(enumerate(parts)), chosen)
        few = [one for one, _ in some.values()]
        self.descend(few, tol)
        return few, some

    def _stores(self, parts: list[BoxState], few: list[BoxState]) -> bool:
        """Store K if more than a share of a sample is in use; return whether it was."""
        if self.watch.stopped or share_in_use(few, self.source.n) <= _MANY:
            return False
        for part, one in zip(parts, few, strict=True):
            part.steps, part.rounds = one.steps, one.rounds
        self._store()
        return True

    def _adopt(
        self,
        parts: list[BoxState],
        some: dict[int, tuple[BoxState, Array]],
        products: SharedProducts,
    ) -> None:
        """Take over some variables of some parts; F of all variables moves by their sum."""
        steps = {k: moved_of(rows, one.b - parts[k].b[rows]) for k, (one, rows) in some.items()}
        changes = self._times(products, parts, steps)
        for k, (one, rows) in some.items():
            part = parts[k]
            part.F, part.b = part.F - changes[k], part.b.copy()
            part.b[rows] = one.b
            part.steps, part.rounds, part.error = one.steps, one.rounds, np.inf

    def _is_soon_stored(self, parts: list[BoxState]) -> bool:
        """Return whether K costs less than the sets of so many parts, and fits."""
        n = self.source.n
        cheap = _LEAST_SAMPLED <= n <= LARGEST_STORED and n**2 < _ENTRIES_PER_PART * len(parts)
        return cheap and bool(points_of(parts, n).all()) and self._fits(parts)


# --- working sets --------------------------------------------------------------------------------
#
# Box programmes on a K that is not stored: pair steps inside small sets of rows, chosen anew.
#
# Again and again rows that violate the conditions, and those that are still free, form a set W. K
# between them is computed and the programme in these variables solved, the others held. Then F is
# corrected for what moved, by products that store nothing. The set must hold all free variables
# with room to spare, or it crawls.
#
# At first all this is done on a sample of the rows. Where much of it is in use, K of all rows is
# stored if it fits the memory budget, and pair steps start there; else the answer on the sample is
# the start of rounds on all rows. K is stored, too, once these have evaluated as many entries.

# Sets for each row, when nobody says: five times as many as the slowest that ended took. One is
# worth a thousand pair steps in time, so that a limit of those alone would take hours to reach.
_SETS_PER_ROW, _LEAST_SETS = 20, 1000


@dataclass(frozen=True)
class WorkingSets(Solver):
    """Pair steps inside sets of rows, for a K too large to store or of which few rows matter.

    Parameters
    ----------
    tol : float
        What the criterion may be at the end.
    max_iter : int or None
        Largest number of pair steps of a programme; None takes max(10^7, 100 n), in at most
        max(10^3, 20 n) sets.
    criterion : Violation or Gap
        What `tol` speaks of.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    criterion: Criterion = VIOLATION

    answers = (BoxQP, Many)

    def _obstacle(self, problem: BoxQP | Many) -> str | None:
        """Take feasible box programmes on one Gram that can be evaluated in parts."""
        refused = refusal("WorkingSets", problem)
        if refused is not None:
            return refused
        if not isinstance(programmes(problem)[0].unwrapped.base, LazyGram | CachedGram):
            return (
                "WorkingSets is for a Gram that is not stored; use SMO(), and store a Gram of your "
                "own for it: PrecomputedGram(gram.dense())"
            )
        return None

    def run(self, problem: Any, watch: Watch, start: Any = None) -> Solution:
        """Choose, solve and correct sets until the tolerance, a limit or the callback ends it."""
        problems, begins = programmes(problem), starts(problem, start)
        if watch.tick(0, np.inf):
            parts = [resting(p, b) for p, b in zip(problems, begins, strict=True)]
            return conclude(self, problem, parts, [Status.STOPPED] * len(parts), watch)
        base: Any = problems[0].unwrapped.base
        engine = Sets(base.source, watch, self.max_iter or limit_of(problems))
        if self.max_iter is None:
            engine.most = max(_LEAST_SETS, _SETS_PER_ROW * base.source.n)
        parts = [begin(engine, p, b) for p, b in zip(problems, begins, strict=True)]
        ends = answer(engine, parts, self.criterion, self.tol)
        return conclude(self, problem, parts, ends, watch, engine.crawled(parts, ends))
