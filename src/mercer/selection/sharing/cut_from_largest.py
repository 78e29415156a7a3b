"""Candidates cut from the largest number of components, of eigenpairs, or of neighbors."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import is_real
from mercer.machines.base.sharing import SharedDecomposition, Store, shares_of
from mercer.machines.decomposition.pca import PCA
from mercer.machines.neighbors.nearest_neighbors import NearestNeighbors
from mercer.machines.neighbors.search import FoundRows, NeighbourSearch
from mercer.selection.folds import FitRows, take_rows
from mercer.selection.identity import digest
from mercer.selection.sharing.base import (
    Group,
    Judged,
    Stop,
    Stopped,
    asks_only_for_answers,
    fit_to,
    judge_fit,
    register,
    scored,
)
from mercer.selection.sharing.steps import SharedSteps, is_shareable
from mercer.selection.task import Point, Task


class FoldByFold(Group):
    """Points that are judged together, one fold after the other.

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


# --- components ----------------------------------------------------------------------------------
#
# Decompositions that serve several settings: numbers of components are cut from the largest.
#
# Components come in the order of their variance, so those of a smaller number are the first of a
# larger one. Pipelines that project before they classify or regress are projected once for each
# fold and kernel; every number of components is then a choice of columns.


class Truncated(Group):
    """Points that project alike but for the number of components.

    Parameters
    ----------
    task : Task
        What is tuned; its machine is a pipeline whose last step but one is `PCA`.
    pipeline : Pipeline
        With the setting of the first steps, and the largest number of components.
    inner : dict of int to dict of int to dict
        By number of components: points of the last step, by position.
    """

    def __init__(self, task: Task, pipeline: Pipeline, inner: dict[int, dict[int, Point]]) -> None:
        self.task, self.pipeline = task, pipeline
        self.parts = {
            count: SharedSteps(task, pipeline, settings) for count, settings in inner.items()
        }
        self.points = tuple(position for part in self.parts.values() for position in part.points)
        self.units = tuple((fold,) for fold in range(len(task.splits)))

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Project the rows of a fold once, then judge every number of components."""
        (fold,) = self.units[unit]
        largest = max(self.parts)
        task = self.parts[largest]._transformed(fold, stop)
        if type(task.X) is not np.ndarray or task.X.shape[1] != largest:
            raise TypeError("the projection gives something else than columns of an array")
        found: dict[tuple[int, int], Judged] = {}
        for count, part in self.parts.items():
            cut = replace(task, X=np.ascontiguousarray(task.X[:, :count]))
            for (place, _), judged in part._judged(cut, stop).items():
                found[part.points[place], fold] = judged
        return found


@register(Pipeline)
def by_components(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by everything before the last step, except the number of components."""
    steps = task.machine.steps
    if len(steps) < 2 or not asks_only_for_answers(task.scorers, task.machine):
        return []
    name, last = f"{steps[-2][0]}__n_components", f"{steps[-1][0]}__"
    made: dict[str, tuple[Point, dict[int, dict[int, Point]]]] = {}
    for position, point in enumerate(points):
        count: Any = point.get(name)
        if not _components_is_count(count) or last.removesuffix("__") in point:
            continue
        outer = {k: v for k, v in point.items() if not k.startswith(last) and k != name}
        inner = {k.removeprefix(last): v for k, v in point.items() if k.startswith(last)}
        try:
            key = digest(dict(sorted(outer.items())))
            pipeline = task.machine_at(point)
        except (TypeError, AttributeError, RecursionError, ValueError):
            continue  # refitting will say what is wrong with it
        if type(pipeline.steps[-2][1]) is not PCA or not is_shareable(pipeline):
            continue
        _, counts = made.setdefault(key, (outer, {}))
        counts.setdefault(int(count), {})[position] = inner
    return [
        Truncated(task, task.machine_at({**outer, name: max(counts)}), counts)
        for outer, counts in made.values()
        if len(counts) > 1
    ]


def _components_is_count(value: Any) -> bool:
    return is_real(value) and value >= 1 and isinstance(value, int | np.integer)


# --- decompositions ------------------------------------------------------------------------------
#
# Clusters and components: one matrix, and one decomposition of it, for all numbers of them.
#
# Points that differ in the number of clusters or components, and in what is done with these, are
# fitted to a fold one after the other, the largest number first, with one store between them: a
# fit takes the matrix and the leading eigenpairs from there and finds the rest by itself. So
# every point gets a machine that is truly fitted, which any scorer can ask for anything.


class OneDecomposition(FoldByFold):
    """Points whose matrix is the same; those that need most of its decomposition come first."""

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

    def _rows(self, point: Point, store: Store) -> FitRows:
        machine = self.task.machine_at(point)
        store.leave_with(machine)
        return FitRows.of(machine, self.task.X)


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


# --- neighbours ----------------------------------------------------------------------------------
#
# Nearest neighbours: one search for the largest number of them serves all smaller numbers.
#
# Neighbours are found nearest first, with a rule for ties, so the first k of more are those that
# a search for k finds. What a machine then answers is a count of votes.


@dataclass(frozen=True, eq=False)
class _Remembered(NeighbourSearch):
    """A search whose answer is known, for rows that are known, too."""

    found: FoundRows

    def of(self, Z: Points, count: int) -> FoundRows:
        """Return the first of what was found."""
        whole = self.found
        return FoundRows(whole.index[:, :count], whole.key[:, :count], whole.similarity[:, :count])

    def among(self, count: int) -> FoundRows:
        """Return the first of what was found."""
        return self.of(None, count)

    def own(self) -> tuple[Array, Array]:
        """Only fits ask for this, and this machine is fitted."""
        raise NotImplementedError


class OneSearch(FoldByFold):
    """Numbers of neighbours that share everything else."""

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

    def _machine(self, position: int) -> FitRows:
        return FitRows.of(self.task.machine_at(self.settings[position]), self.task.X)

    def _judged(
        self, machine: Any, count: int, parts: Sequence[tuple[Array, FoundRows]], seconds: float
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
        if not _neighbours_is_count(machine.n_neighbors) or machine._is_precomputed():
            continue
        rest = {k: v for k, v in machine.get_params().items() if k != "n_neighbors"}
        for known, settings in made:
            if known == rest:
                settings[position] = point
                break
        else:
            made.append((rest, {position: point}))
    return [OneSearch(task, settings) for _, settings in made if len(settings) > 1]


def _neighbours_is_count(value: Any) -> bool:
    return is_real(value) and value >= 1 and int(value) == value
