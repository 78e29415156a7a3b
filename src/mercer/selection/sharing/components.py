"""Decompositions that serve several settings: numbers of components are cut from the largest.

Components come in the order of their variance, so those of a smaller number are the first of a
larger one. Pipelines that project before they classify or regress are projected once for each fold
and kernel; every number of components is then a choice of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.machines import PCA
from mercer.machines.base.parameters import is_real
from mercer.selection.running.identity import digest
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.pipeline import SharedSteps, is_shareable
from mercer.selection.sharing.share import register


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
        if not _is_count(count) or last.removesuffix("__") in point:
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


def _is_count(value: Any) -> bool:
    return is_real(value) and value >= 1 and isinstance(value, int | np.integer)
