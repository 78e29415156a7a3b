"""Steps before an estimator, fitted once a fold: pipelines, and approximate feature maps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mercer.approximation import ApproximateKernel, Approximation
from mercer.data.table import Table
from mercer.kernels import Linear
from mercer.machines.base.approximate import approximation_of, used_kernel
from mercer.machines.base.inputs import new_rows, passing_fits, rows_of_fits, training_rows_alone
from mercer.machines.base.machine import is_precomputed, kernel_of
from mercer.resources import call_threads, memory_budget
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_sparse, to_host
from mercer.selection.folds import FitRows, count_rows, take_rows
from mercer.selection.identity import digest
from mercer.selection.sharing.base import (
    Group,
    Judged,
    Stop,
    Stopped,
    asks_only_for_answers,
    failed,
    groups,
    listening,
    refits,
    register,
)
from mercer.selection.task import Point, Task, unshared

# --- pipeline ------------------------------------------------------------------------------------
#
# Pipelines: steps before the last are fitted once for each fold and each of their settings.
#
# Points that differ in the last step only see the same transformed rows, and share on them
# whatever that step can share.


class SharedSteps(Group):
    """Points with the same first steps, fold by fold.

    Parameters
    ----------
    task : Task
        What is tuned.
    pipeline : Pipeline
        With the setting of the first steps.
    inner : dict of int to dict
        Points of the last step, by position.
    """

    def __init__(self, task: Task, pipeline: Pipeline, inner: dict[int, Point]) -> None:
        self.task, self.pipeline, self.inner = task, pipeline, inner
        self.points = tuple(inner)
        self.units = tuple((fold,) for fold in range(len(task.splits)))
        self._share = memory_budget() / call_threads(np.inf)  # of each fold that is at work

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit the first steps to a fold, then judge all points on what they make of it."""
        (fold,) = self.units[unit]
        started = time.perf_counter()
        try:
            task = self._transformed(fold, stop)
        except NotShareable:
            raise
        except Exception as error:
            failure = failed(self.task, error, started)
            return dict.fromkeys(((position, fold) for position in self.points), failure)
        each = (time.perf_counter() - started) / len(self.points)
        positions, found = list(self.inner), {}
        for (place, _), judged in self._judged(task, stop).items():
            seconds = judged.fit_seconds + each
            found[positions[place], fold] = replace(judged, fit_seconds=seconds)
        return found

    def _judged(self, task: Task, stop: Stop) -> dict[tuple[int, int], Judged]:
        points = list(self.inner.values())
        found: dict[tuple[int, int], Judged] = {}
        for group in groups(task, points):
            fits = group.size <= self._share
            for one in [group] if fits else refits(task, points, group.points):
                try:
                    one.prepare()
                    for unit in range(len(one.units)):
                        found |= one.judge(unit, stop)
                finally:
                    one.release()
        return found

    def _transformed(self, fold: int, stop: Stop) -> Task:
        """Return the last step's own task: rows learnt from and rows judged by, transformed."""
        if stop():
            raise Stopped
        train, test = self.task.splits[fold]
        steps, last = unshared(clone(self.pipeline[:-1])), clone(self.pipeline.steps[-1][1])
        given = FitRows.of(self.pipeline, self.task.X)
        rows = given.train(train)
        y = None if self.task.y is None else take_rows(self.task.y, train)
        with listening(steps, stop):
            learnt = steps.fit_transform(rows, y)
        if self.task.train_scores and not _same(learnt, steps.transform(rows)):
            raise NotShareable("steps transform rows they were fitted to in another way")
        X = stacked(learnt, steps.transform(given.test(test, train)))
        order = np.concatenate([train, test])
        places = np.arange(len(order))
        return replace(
            self.task,
            machine=last,
            X=X,
            y=None if self.task.y is None else take_rows(self.task.y, order),
            weights=None if self.task.weights is None else self.task.weights[order],
            splits=((places[: len(train)], places[len(train) :]),),
        )


class NotShareable(TypeError):  # noqa: N818  it is no error
    """Something that cannot be shared: these points are refitted."""


@register(Pipeline)
def by_steps(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points by the setting of all steps but the last."""
    if not asks_only_for_answers(task.scorers, task.machine) or len(task.machine.steps) < 2:
        return []
    last = f"{task.machine.steps[-1][0]}__"
    settings: dict[str, tuple[Point, dict[int, Point]]] = {}
    for position, point in enumerate(points):
        outer = {name: value for name, value in point.items() if not name.startswith(last)}
        inner = {name[len(last) :]: value for name, value in point.items() if name not in outer}
        try:
            key = digest(dict(sorted(outer.items())))
            machine = task.machine_at(point)
        except (TypeError, AttributeError, RecursionError, ValueError):
            continue  # refitting will say what is wrong with it
        if not is_shareable(machine):
            continue
        settings.setdefault(key, (outer, {}))[1][position] = inner
    return [
        SharedSteps(task, task.machine_at(outer), inner_points)
        for outer, inner_points in settings.values()
    ]


def is_shareable(pipeline: Pipeline) -> bool:
    """Return whether the steps before the last are those that a fit of the whole would make."""
    last = pipeline.steps[-1][1]
    return (
        hasattr(last, "fit")
        and hasattr(last, "get_params")
        and not get_tags(last).input_tags.pairwise  # rows are no part of a square matrix then
        and getattr(pipeline, "transform_input", None) is None
        and len(pipeline.steps) > 1
    )


def stacked(upper: Any, lower: Any) -> Any:
    """Put rows one below the other, keeping what they are."""
    if is_sparse(upper):
        return sparse.vstack([upper, lower], format="csr")
    if isinstance(upper, CardRows) and isinstance(lower, CardRows):
        return upper.below(lower)
    if isinstance(upper, np.ndarray | CardRows):  # of two places: here
        return np.concatenate([to_host(upper), to_host(lower)])
    if isinstance(upper, list):
        return [*upper, *lower]
    if isinstance(upper, Table):
        return upper.below(lower)
    if hasattr(upper, "iloc"):
        import pandas as pd  # noqa: PLC0415  only where somebody uses its tables

        return pd.concat([upper, lower])
    raise NotShareable(f"rows of type {type(upper).__name__} are not stacked")


def _same(A: Any, B: Any) -> bool:
    if type(A) is not type(B) or count_rows(A) != count_rows(B):
        return False
    if is_sparse(A):
        return bool(A.shape == B.shape and abs(A - B).max() <= _near(abs(A).max()))
    if hasattr(A, "iloc"):
        A, B = A.to_numpy(), B.to_numpy()
    if not isinstance(A, np.ndarray) or A.dtype.kind not in "fiub":
        return digest(A) == digest(B)
    return A.shape == B.shape and bool(
        np.allclose(A, B, rtol=0, atol=_near(np.abs(A).max(initial=0.0)), equal_nan=True)
    )


def _near(size: Any) -> float:
    """Return the rounding that two ways to one result may differ by."""
    return 1e-10 * float(size)


# --- features ------------------------------------------------------------------------------------
#
# Features in place of a kernel: found once for each fold and kernel, then the linear kernel.
#
# Points that differ in neither kernel nor approximation see the same features, and share on them
# whatever the machine can share with the linear kernel. Features are found on the rows of a fold
# that are learnt from, as a fit to these would find them.

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
