"""Features in place of a kernel: found once for each fold and kernel, then the linear kernel.

Points that differ in neither kernel nor approximation see the same features, and share on them
whatever the machine can share with the linear kernel. Features are found on the rows of a fold that
are learnt from, as a fit to these would find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.approximation import ApproximateKernel, Approximation
from mercer.card_rows import CardRows
from mercer.kernels import Linear
from mercer.machines.base.approximate import approximation_of, used_kernel
from mercer.machines.base.inputs import new_rows, rows_of_fits, training_rows_alone
from mercer.machines.base.inputs.kept import passing_fits
from mercer.machines.base.machine import is_precomputed, kernel_of
from mercer.selection.running.identity import digest
from mercer.selection.running.rows import take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.pipeline import NotShareable, SharedSteps, stacked
from mercer.selection.sharing.share import register

_LISTEN = 0.05  # seconds between looks at who may want to stop
# Fits on a card are launches from Python, one after the other, and Python runs one thread at a
# time: of more threads each waits for all others after every launch.
_ON_CARD = BoundedSemaphore(2)


class SharedFeatures(SharedSteps):
    """Points with the same features, fold by fold.

    Parameters
    ----------
    task : Task
        What is tuned.
    machine : estimator
        With the kernel and the approximation of all points.
    inner : dict of int to dict
        The other parameters of each point, by position.
    """

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Judge a fold; of folds on a card few at a time."""
        if not isinstance(self.task.X, CardRows):
            return super().judge(unit, stop)
        while not _ON_CARD.acquire(timeout=_LISTEN):
            if stop():
                raise Stopped
        try:
            return super().judge(unit, stop)
        finally:
            _ON_CARD.release()

    def _judged(self, task: Task, stop: Stop) -> dict[tuple[int, int], Judged]:
        with passing_fits():
            return super()._judged(task, stop)

    def _transformed(self, fold: int, stop: Stop) -> Task:
        """Return the task of the linear kernel on features of rows learnt from and judged by."""
        if stop():
            raise Stopped
        train, test = self.task.splits[fold]
        machine, weights = clone(self.pipeline), self.task.weights
        rows = training_rows_alone(machine, take_rows(self.task.X, train), False)
        names = getattr(machine, "feature_names_in_", None)
        names = None if names is None else list(names)
        learnt = None if weights is None else weights[train]
        kernel = kernel_of(machine.kernel, rows, learnt, names)
        found = used_kernel(machine, kernel, rows, learnt, names).kernel
        if not isinstance(found, ApproximateKernel):
            raise NotShareable("the kernel is zero on the rows")
        others = new_rows(machine, take_rows(self.task.X, test), False, stay=True)
        order = np.concatenate([train, test])
        places = np.arange(len(order))
        return replace(
            self.task,
            machine=clone(self.pipeline).set_params(kernel=Linear(), approximation=None),
            X=stacked(found.phi.placed(rows), found.phi.placed(others)),
            y=None if self.task.y is None else take_rows(self.task.y, order),
            weights=None if weights is None else weights[order],
            splits=((places[: len(train)], places[len(train) :]),),
        )


@register(Approximation)
def by_features(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by their kernel and approximation; those without one are left out."""
    if not asks_only_for_answers(task.scorers, task.machine):
        return []
    settings: dict[str, tuple[Point, dict[int, Point]]] = {}
    approximates: dict[str, bool] = {}  # machines are looked at once for each setting of features
    for position, point in enumerate(points):
        outer = {name: value for name, value in point.items() if _is_of_features(name)}
        inner = {name: value for name, value in point.items() if name not in outer}
        try:
            key = digest(dict(sorted(outer.items())))
            if key not in approximates:
                approximates[key] = _approximates(task.machine_at(outer))
        except (TypeError, AttributeError, RecursionError, ValueError):
            continue  # refitting will say what is wrong with it
        if approximates[key]:
            settings.setdefault(key, (outer, {}))[1][position] = inner
    if not settings:
        return []
    task = replace(task, X=rows_of_fits(task.X))
    return [
        SharedFeatures(task, task.machine_at(outer), inner_points)
        for outer, inner_points in settings.values()
    ]


def _approximates(machine: Any) -> bool:
    shared = isinstance(approximation_of(machine), Approximation)
    return shared and not is_precomputed(machine.kernel)


def _is_of_features(name: str) -> bool:
    return name.partition("__")[0] in ("kernel", "approximation")
