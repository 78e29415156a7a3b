"""Clusters and components: one matrix, and one decomposition of it, for all numbers of them.

Points that differ in the number of clusters or components, and in what is done with these, are
fitted to a fold one after the other, the largest number first, with one store between them: a fit
takes the matrix and the leading eigenpairs from there and finds the rest by itself. So every point
gets a machine that is truly fitted, which any scorer can ask for anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mercer.machines.base.parameters import is_real
from mercer.machines.base.reuse import Store
from mercer.machines.base.sharing import SharedDecomposition, shares_of
from mercer.selection.running.identity import digest
from mercer.selection.running.rows import Rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.refit import judge_fit
from mercer.selection.sharing.share import register


class OneDecomposition(Group):
    """Points whose matrix is the same.

    Parameters
    ----------
    task : Task
        What is tuned.
    settings : dict of int to dict
        The points, by their positions, those that need most first.
    """

    def __init__(self, task: Task, settings: dict[int, Point]) -> None:
        self.task, self.settings = task, settings
        self.points = tuple(settings)
        self.units = tuple((fold,) for fold in range(len(task.splits)))

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit and score every point, with one store."""
        (fold,) = self.units[unit]
        store = Store()
        found = {
            (position, fold): judge_fit(self.task, partial(self._rows, point, store), fold, stop)
            for position, point in self.settings.items()
        }
        share = sum(one.fit_seconds for one in found.values()) / len(found)
        return {key: replace(one, fit_seconds=share) for key, one in found.items()}

    def _rows(self, point: Point, store: Store) -> Rows:
        machine = self.task.machine_at(point)
        store.leave_with(machine)
        return Rows.of(machine, self.task.X)


@register(SharedDecomposition)
def by_decomposition(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points that differ in numbers of clusters or components, and in what follows."""
    ways = shares_of(task.machine)
    free = next(way.free for way in ways if isinstance(way, SharedDecomposition))
    made: dict[str, list[tuple[float, int]]] = {}
    for position, point in enumerate(points):
        try:
            machine = task.machine_at(point)
            rest = {k: v for k, v in machine.get_params().items() if k not in free}
            key = digest(rest)
        except (TypeError, AttributeError, RecursionError, ValueError):
            continue  # refitting will say what is wrong with it
        if machine.callback is None and machine.time_limit is None:
            made.setdefault(key, []).append((-_need(getattr(machine, free[0])), position))
    return [
        OneDecomposition(task, {position: points[position] for _, position in sorted(alike)})
        for alike in made.values()
        if len(alike) > 1
    ]


def _need(count: Any) -> float:
    """Return how much of a decomposition a number needs; what chooses its number may need all."""
    whole = is_real(count) and isinstance(count, int | np.integer)
    return float(count) if whole else np.inf
