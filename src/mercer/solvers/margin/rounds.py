"""Descents on sets of rows, chosen anew: rounds of them, until K is worth storing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import BoxAnswer
from mercer.gram.sizes import box_bytes, largest_set
from mercer.gram.source import Source
from mercer.resources import within_budget
from mercer.solvers.base import Status, Watch
from mercer.solvers.margin.choose_set import Standing, choose_set, standing
from mercer.solvers.margin.descent import BoxState, Engine
from mercer.solvers.margin.shared_products import SharedProducts, Step
from mercer.solvers.margin.smo import StoredEngine
from mercer.solvers.margin.some_variables import batches, box_of, level_of, moved_of, with_shift

_INNER = 0.1  # of the violation: how far a set is solved, ...
_INNER_SMALL, _SMALL = 0.01, 1024  # ... and one of so few variables, where pair steps cost nothing
_AT_ONCE = 4096  # points: K of so few costs less than to choose among them
_ENOUGH = 2.0  # times all entries of K evaluated: then it is stored, where it fits
_LEAST = 16  # variables of a set, however small the memory budget


class Rounds(Engine):
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
