"""Descents on sets of rows, chosen anew: the rounds of `WorkingSets`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import BoxAnswer
from mercer.gram.policy import LARGEST_STORED
from mercer.gram.sizes import box_bytes, largest_set
from mercer.gram.source import Source
from mercer.resources import within_budget
from mercer.solvers.base import Status, Watch
from mercer.solvers.margin.choose_set import (
    Standing,
    choose_set,
    near_points,
    sample_points,
    standing,
)
from mercer.solvers.margin.descent import BoxState, Engine
from mercer.solvers.margin.divide import LEAST_USED, SideBySide, clusters
from mercer.solvers.margin.shared_products import SharedProducts, Step
from mercer.solvers.margin.smo import (
    StoredEngine,
)
from mercer.solvers.margin.some_variables import (
    among,
    batches,
    box_of,
    level_of,
    moved_of,
    points_of,
    share_in_use,
    with_shift,
)

_INNER = 0.1  # of the violation: how far a set is solved, ...
_INNER_SMALL, _SMALL = 0.01, 1024  # ... and one of so few variables, where pair steps cost nothing
_AT_ONCE = 4096  # points: K of so few costs less than to choose among them
_LEAST_SAMPLED = 4096  # points: with fewer no sample is worth its rounds
_LOOSE = 0.025  # of the spread of F at the start: what the violation on a sample may be
# Of a sample in use, and of one an eighth as large, where more are: then all of K is worth storing,
# where it fits.
_MANY, _MANY_OF_FEW = 0.4, 0.6
_PROBE = 4  # times as many rows a sample must have for a smaller one to be worth its time
_ENOUGH = 2.0  # times all entries of K evaluated: then it is stored, where it fits
# Entries of K for each programme that cost no more than the sets of that programme: with fewer K is
# stored at once, as for many pairs of small classes.
_ENTRIES_PER_PART = 1.5e6
_NEARER = 4  # one in so many, at most, is near enough to look at first
_LOOKS = 6  # at all rows, from answers on few of them
_LEAST = 16  # variables of a set, however small the memory budget


class Sets(Engine):
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

    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Solve set after set, those of all parts together, on few rows as long as few matter."""
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
        if self._stored is None and self._looks(parts, tol, products):
            return
        self._rounds(parts, tol, products)

    def _looks(self, parts: list[BoxState], tol: float, products: SharedProducts) -> bool:
        """Solve among the points near to deciding, a few times; return whether all are settled."""
        left = list(range(len(parts)))
        for _ in range(_LOOKS):
            stands = {k: standing(parts[k]) for k in left}
            for k, stand in stands.items():
                parts[k].violation = stand.violation
            left = [k for k in left if parts[k].violation > tol]
            if not left:
                return True
            if self.watch.stopped or any(self.is_spent(parts[k]) for k in left):
                return False
            near = near_points([(parts[k], stands[k]) for k in left], self.source.n)
            count = np.count_nonzero(near)
            if count > max(self._few, products.points // _NEARER):
                return False
            some = among({k: parts[k] for k in left}, near)
            solve = self._at_once if count <= self._few else self._rounds
            solve([one for one, _ in some.values()], 0.5 * tol)
            self._adopt(parts, some, products)
        return False

    def _at_once(self, parts: list[BoxState], tol: float) -> None:
        """Descend on K of all points that the parts have, where these are few."""
        sets = [np.arange(len(part.b)) for part in parts]
        levels = [level_of(part) for part in parts]
        _, ends = self._pair_steps(parts, sets, levels, range(len(parts)), tol)
        for part, level, end in zip(parts, levels, ends.values(), strict=True):
            part.b, part.F, part.violation = end.b, end.gradient + level, end.violation
            part.error, part.steps = np.inf, part.steps + end.iterations
            part.rounds += 1

    def _on_a_sample(self, parts: list[BoxState], tol: float, products: SharedProducts) -> None:
        """Start all parts from answers on clusters of the rows, or on a sample, or store K at once.

        A small sample tells how many rows matter. Where many do, and there are clusters, these are
        the start. Else most rows that matter are found on a fair sample, for an eighth of the
        price, or, if many do and K fits, K is stored, and pair steps begin anew.
        """
        whole = products.points == self.source.n <= LARGEST_STORED and self._fits(parts)
        loose = max(tol, _LOOSE * max(float(np.ptp(part.F)) for part in parts))
        fair, small = sample_points(self.source.n, products.blocks)
        if 2 * np.count_nonzero(fair) > products.points:  # of so many classes that none has many
            return
        if _PROBE * np.count_nonzero(small) <= np.count_nonzero(fair):
            few, some = self._solved_among(parts, small, loose)
            many = share_in_use(few, self.source.n) > LEAST_USED and not self.watch.stopped
            if many and self._in_clusters(parts, some, loose, products):
                return
            if whole and self._stores(parts, few, _MANY_OF_FEW):
                return
        few, some = self._solved_among(parts, fair, loose)
        if not (whole and self._stores(parts, few, _MANY)):
            self._adopt(parts, some, products)

    def _in_clusters(
        self,
        parts: list[BoxState],
        some: dict[int, tuple[BoxState, Array]],
        tol: float,
        products: SharedProducts,
    ) -> bool:
        """Start all parts from answers on clusters of the rows; return whether there are clusters.

        All parts stand at zero. If time runs out before the last cluster, they start from the
        answers at some points that are known instead.
        """
        seen = points_of(parts, self.source.n)
        groups = clusters(self.source, np.flatnonzero(seen), self._few, self.watch)
        if groups is None:
            return False
        found = SideBySide(parts, [one for one, _ in some.values()], seen)
        for points in groups:
            over = self.watch.tick(self.steps, found.worst)
            if over or any(map(self.is_spent, found.states)):
                self._adopt(parts, some, products)
                return True
            apart = found.apart(points)
            if apart:
                self._at_once([one for one, _ in apart.values()], tol)
            found.take(apart)
        self._adopt(parts, found.answers, products)
        return True

    def _solved_among(
        self, parts: list[BoxState], chosen: Array, tol: float
    ) -> tuple[list[BoxState], dict[int, tuple[BoxState, Array]]]:
        """Return the answers at some points alone, and which variables these are."""
        some = among(dict(enumerate(parts)), chosen)
        few = [one for one, _ in some.values()]
        self.descend(few, tol)
        return few, some

    def _stores(self, parts: list[BoxState], few: list[BoxState], many: float) -> bool:
        """Store K if more than a share of a sample is in use; return whether it was."""
        if self.watch.stopped or share_in_use(few, self.source.n) <= many:
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

    def _is_soon_stored(self, parts: list[BoxState]) -> bool:
        """Return whether K costs less than the sets of so many parts, and fits."""
        n = self.source.n
        cheap = _LEAST_SAMPLED <= n <= LARGEST_STORED and n**2 < _ENTRIES_PER_PART * len(parts)
        return cheap and bool(points_of(parts, n).all()) and self._fits(parts)

    def _store(self) -> None:
        self._stored = StoredEngine(self.source.pairs().stored(), self.watch, self.limit)

    def _on_stored(self, stored: StoredEngine, parts: list[BoxState], tol: float) -> None:
        stored.limit, stored.steps = self.limit, self.steps
        stored.descend(parts, tol)
        self.steps = stored.steps

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

    def _is_over(self) -> bool:
        return bool(self.watch.stopped)

    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Multiply by the rows that are stored, or by entries that live only for it."""
        if self._stored is not None:
            return self._stored.applied(part, changed, step)
        products = SharedProducts(self.source, [part.unwrapped.index])
        return self._times(products, [part], {0: (changed, step)})[0]

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
