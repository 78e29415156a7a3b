"""Nearest neighbours: one search for the largest number of them serves all smaller numbers.

Neighbours are found nearest first, with a rule for ties, so the first k of more are those that a
search for k finds. What a machine then answers is a count of votes.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mercer.array_types import Array, Points
from mercer.machines import NearestNeighbors
from mercer.machines.base.parameters import is_real
from mercer.machines.classification.nearest import Found, NeighbourSearch
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.refit import fit_to, judge_fit, scored
from mercer.selection.sharing.share import register


@dataclass(frozen=True, eq=False)
class _Remembered(NeighbourSearch):
    """A search whose answer is known, for rows that are known, too."""

    found: Found

    def of(self, Z: Points, count: int) -> Found:
        """Return the first of what was found."""
        whole = self.found
        return Found(whole.index[:, :count], whole.key[:, :count], whole.similarity[:, :count])

    def among(self, count: int) -> Found:
        """Return the first of what was found."""
        return self.of(None, count)

    def own(self) -> tuple[Array, Array]:
        """Only fits ask for this, and this machine is fitted."""
        raise NotImplementedError


class OneSearch(Group):
    """Numbers of neighbours that share everything else.

    Parameters
    ----------
    task : Task
        What is tuned.
    settings : dict of int to dict
        The points, by their positions.
    """

    def __init__(self, task: Task, settings: dict[int, Point]) -> None:
        self.task, self.settings = task, settings
        self.points = tuple(settings)
        self.units = tuple((fold,) for fold in range(len(task.splits)))

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Search once, then count votes for every number."""
        (fold,) = self.units[unit]
        if stop():
            raise Stopped
        train, test = self.task.splits[fold]
        counts = {k: int(self._machine(k).machine.n_neighbors) for k in self.points}
        shared = [k for k in self.points if counts[k] <= len(train)]
        shared.sort(key=counts.__getitem__)
        found: dict[tuple[int, int], Judged] = {}
        if shared:
            started = time.perf_counter()
            rows = self._machine(shared[-1])
            weights = None if self.task.weights is None else self.task.weights[train]
            learnt, machine = rows.train(train), rows.machine
            try:
                fit_to(machine, learnt, take_rows(self.task.y, train), weights)
            except ValueError:
                shared = []  # each point says for itself what is wrong
            else:
                parts = [(test, machine._near(rows.test(test, train)))]
                if self.task.train_scores:
                    parts.append((train, machine._near(learnt)))
                seconds = (time.perf_counter() - started) / len(shared)
                for k in shared:
                    found[k, fold] = self._judged(machine, counts[k], parts, seconds)
        for k in set(self.points) - set(shared):
            found[k, fold] = judge_fit(self.task, partial(self._machine, k), fold, stop)
        return found

    def _machine(self, position: int) -> Rows:
        return Rows.of(self.task.machine_at(self.settings[position]), self.task.X)

    def _judged(
        self, machine: Any, count: int, parts: Sequence[tuple[Array, Found]], seconds: float
    ) -> Judged:
        scores: list[dict[str, float]] = []
        trouble, started = "", time.perf_counter()
        for index, near in parts:
            twin = copy.copy(machine)
            twin.n_neighbors = twin.n_neighbors_ = count
            twin._search = _Remembered(near)
            X, y = (take_rows(rows, index) for rows in (self.task.X, self.task.y))
            one, why = scored(self.task, twin, X, (y,), index)
            scores.append(one)
            trouble = trouble or why
        seen = scores[1] if len(scores) > 1 else {}
        took = time.perf_counter() - started
        return Judged(scores[0], seen, seconds, took, trouble=trouble)


@register(NearestNeighbors)
def by_search(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points that differ in the number of neighbours only."""
    if task.y is None or not asks_only_for_answers(task.scorers, task.machine):
        return []
    made: list[tuple[dict[str, Any], dict[int, Point]]] = []
    for position, point in enumerate(points):
        machine = task.machine_at(point)
        if not _is_count(machine.n_neighbors) or machine._is_precomputed():
            continue
        rest = {k: v for k, v in machine.get_params().items() if k != "n_neighbors"}
        for known, settings in made:
            if known == rest:
                settings[position] = point
                break
        else:
            made.append((rest, {position: point}))
    return [OneSearch(task, settings) for _, settings in made if len(settings) > 1]


def _is_count(value: Any) -> bool:
    return is_real(value) and value >= 1 and int(value) == value
