"""Box programmes on a K that is not stored: pair steps inside small sets of rows, chosen anew.

Again and again the rows that violate the conditions most, and those that are still free, form a
set W. K between them is computed and the programme in these variables solved, the others held.
Then F of all rows is corrected for what moved, by products that store nothing or by rows that are
kept. The set must hold all free variables with room to spare, or it crawls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.boxes import Box
from mercer.gram import CachedGram, LazyGram
from mercer.gram.build import largest_set
from mercer.gram.source import Source
from mercer.problems import BoxQP, Many
from mercer.resources import memory_budget
from mercer.solvers.base import Solution, Solver, Status, Watch
from mercer.solvers.margin.descent import VIOLATION, BoxState, Criterion, Engine, begin
from mercer.solvers.margin.row_store import RowStore
from mercer.solvers.margin.smo import (
    answer,
    conclude,
    limit_of,
    programmes,
    refusal,
    resting,
    starts,
)

_DIRECT = 2048  # variables: up to here all of them are the set
_SMALLEST, _SET_SIZE, _FIRST = 256, 1536, 512  # unless the free variables ask for more
_OF_VIOLATORS = 8  # one in so many is taken
_SPARE = 1.5  # times the free variables: a set must hold them all with room to spare
_INNER = 0.1  # of the violation: how far a set is solved
_LEAST = 16  # variables of a set, however small the memory budget
_SHARE = 0.4  # of the memory budget, for kept rows
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
        self._room = int(_SHARE * memory_budget())
        self._largest = max(_LEAST, largest_set(source.dtype))
        self.store = RowStore(source, self._room)
        self._last: tuple[Array, RowStore] | None = None

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
        """Solve set after set of each part."""
        for part in parts:
            self._one(part, tol)
            if self.watch.stopped:
                return

    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Multiply by kept rows, or by entries that live only for it."""
        held = part.unwrapped
        if held.index is None or 2 * len(held.index) > self.source.n:
            product = self.store.product(*part.on_base(changed, step))
            product = product if held.index is None else product[held.index]
        else:
            product = self._small_store(held.index).product(changed, step)
        if held.shift is not None:
            product[changed] += held.shift[changed] * step
        return product

    def _small_store(self, index: Array) -> RowStore:
        """Return the rows kept for a part much smaller than the whole; those of the last part go.

        From the first such part on, it and the whole have half of the room each.
        """
        if self._last is None or not np.array_equal(self._last[0], index):
            self._last = None  # before others come
            self.store.shrink(self._room // 2)
            self._last = (index, RowStore(self.source.only(index), self._room // 2))
        return self._last[1]

    def _one(self, part: BoxState, tol: float) -> None:
        chosen, outer = np.zeros(0, dtype=np.int64), 0
        part.violation = part.problem.violation(part.b, part.F)
        while part.violation > tol and not self.is_spent(part):
            if self.watch.tick(self.steps, part.violation):
                return
            set_size = _FIRST if outer == 0 else _SET_SIZE
            chosen = choose_set(part, chosen, set_size, self._largest)
            moved = self._solve(part, chosen, max(0.5 * tol, _INNER * part.violation))
            outer, part.rounds = outer + 1, part.rounds + 1
            if not moved:
                return

    def _solve(self, part: BoxState, W: Array, tol: float) -> int:
        """Solve in the variables W alone; return how many moved."""
        problem, held = part.problem, part.unwrapped
        points, rows = (W, None) if held.index is None else _distinct(held.index[W])
        K = self.source.only(points).pairs().dense()
        level = problem.spread(problem.offsets(part.b, part.F))[W]
        box = Box(
            part.F[W] - level,  # float32 resolves the rest of F better
            part.b[W],
            problem.lower[W],
            problem.upper[W],
            problem.epsilons[W] if np.any(problem.epsilon) else None,
            None if held.shift is None else held.shift[W],
            None if problem.group is None else problem.group[W],
            rows,
        )
        before = self.steps
        found = choose_backend().box_qps(
            K,
            [box],
            tol,
            self.limit - part.steps,
            lambda n, _: self.watch.tick(before + n, part.violation),
        )[0]
        step = found.b - part.b[W]
        moved = np.flatnonzero(step)
        part.F = part.F - self.applied(part, W[moved], step[moved])
        part.b = part.b.copy()
        part.b[W] = found.b
        part.violation = problem.violation(part.b, part.F)
        part.error, part.steps = np.inf, part.steps + found.iterations
        self.steps += found.iterations
        return len(moved)


def _distinct(index: Array) -> tuple[Array, Array | None]:
    points, rows = np.unique(index, return_inverse=True)
    return (index, None) if len(points) == len(index) else (points, rows.astype(np.int64))


def choose_set(part: BoxState, last: Array, set_size: int, largest: int) -> Array:
    """Choose the next set: the free of the last, the worst violators, others of the last.

    Of `set_size` size, unless the free variables ask for more; never more than `largest`, which is
    what fits the memory: then it takes more sets.
    """
    problem, n = part.problem, len(part.b)
    if n <= min(_DIRECT, largest):
        return np.arange(n)
    rising, falling = problem.rising(part.b, part.F), problem.falling(part.b, part.F)
    free = part.free()
    members = problem.members()
    top = problem.spread(np.array([rising[m].max(initial=-np.inf) for m in members]))
    bottom = problem.spread(np.array([falling[m].min(initial=np.inf) for m in members]))
    up, down = np.flatnonzero(rising > bottom), np.flatnonzero(falling < top)
    size = min(set_size, max(_SMALLEST, (len(up) + len(down)) // _OF_VIOLATORS))
    size = min(n, largest, max(size, int(_SPARE * np.count_nonzero(free)) + _SMALLEST))
    level = problem.spread(problem.offsets(part.b, part.F))
    taken = np.zeros(n, dtype=bool)
    old = last[free[last]]
    taken[_largest(old, np.abs(part.F - level)[old], size // 2)] = True
    taken[_largest(up, (rising - bottom)[up], (size - int(taken.sum())) // 2)] = True
    for index, value in ((down, top - falling), (up, rising - bottom), (last, 0.0 * level)):
        left = index[~taken[index]]
        taken[_largest(left, value[left], size - int(taken.sum()))] = True
    return np.flatnonzero(taken)


def _largest(index: Array, value: Array, count: int) -> Array:
    if count <= 0:
        return index[:0]
    if count >= len(index):
        return index
    return np.asarray(index[np.argpartition(-value, count)[:count]])
