"""Groups of ridge regression: penalties of one kernel are one problem over all folds.

A `FoldedRidgePath` is solved for all of them together; where it does not meet the equations of a
fold (penalties that are tiny beside the matrix), the machine itself is fitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.deadline import TimeLimitError
from mercer.gram import Gram
from mercer.kernels import Kernel, Precomputed
from mercer.problems import FoldedPathValue, FoldedRidgePath
from mercer.problems.ridge.folded_path import FeatureMoments
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped
from mercer.selection.sharing.known import KnownRegressor
from mercer.selection.sharing.refit import judge_fit, scored
from mercer.selection.sharing.ridge.left_out import one_by_one
from mercer.solvers import Callback, Progress, Status, solve
from mercer.solvers.ridge.folds.krylov import room

_COPIES = 3.5  # of the matrix: that of a fold, the tiles it is reduced in, Q, what is between

MakeGram = Callable[[Array], Gram]
"""Returns K with rows in a given order."""


class Path(Group):
    """Penalties of one kernel, with a bias or without.

    Parameters
    ----------
    make : callable
        Returns K with rows in a given order.
    order : (n,) int array
        Rows in the order that products of folds are fastest in.
    task : Task
        What is tuned.
    settings : dict of int to dict
        The points, by their positions.
    y : (n,) array
        Targets.
    bias : bool
        Whether there is one.
    """

    def __init__(
        self,
        make: MakeGram,
        order: Array,
        task: Task,
        settings: dict[int, Point],
        y: Array,
        bias: bool,
    ) -> None:
        self.make, self.order, self.task = make, order, task
        self.settings, self.y, self.bias = settings, y, bias
        self.points = tuple(settings)
        self.penalties = np.array(
            [float(task.machine_at(point).penalty) for point in settings.values()]
        )
        self._place = np.argsort(order)
        self._gram: Gram | None = None
        self._moments: FeatureMoments | None = None

    def prepare(self) -> None:
        """Evaluate the kernel."""
        self._gram = self.make(self.order)

    def release(self) -> None:
        """Drop what was evaluated."""
        self._gram = self._moments = None

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit all penalties to the rows of each fold, then score them."""
        folds = self.units[unit]
        if stop():
            raise Stopped
        started = time.perf_counter()
        found = self._fits(folds, stop)
        seconds = (time.perf_counter() - started) / (len(self.points) * len(folds))
        return {
            (position, fold): self._judged(position, fold, found.values[f, :, k], seconds)
            if found.met[f, k]
            else judge_fit(self.task, partial(self._machine, position), fold, stop)
            for f, fold in enumerate(folds)
            for k, position in enumerate(self.points)
        }

    def _fits(self, folds: tuple[int, ...], stop: Stop) -> FoldedPathValue:
        """Fit all penalties to the rows of each fold."""
        trains = [self.task.splits[fold][0] for fold in folds]
        return self._solved(tuple(np.sort(self._place[train]) for train in trains), stop)

    def _solved(self, folds: tuple[Array, ...] | None, stop: Stop) -> FoldedPathValue:
        assert self._gram is not None
        weights = np.ones(len(self.y)) if self.task.weights is None else self.task.weights
        problem = FoldedRidgePath(
            self._gram,
            self.y[self.order],
            weights[self.order],
            self.penalties,
            self.bias,
            folds,
            self._moments,
        )
        # what is not met is fitted, and how that ends is told then
        solution = solve(problem, callback=_listening(stop), warn=False)
        if solution.status is Status.TIME_LIMIT:
            raise TimeLimitError("tune: the time limit was over before all folds were fitted")
        found: FoldedPathValue = solution.value
        return found

    def _machine(self, position: int) -> Rows:
        """Return a machine to be fitted where the equations are not met, with its rows."""
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=Precomputed())
        # the matrix as if no one had sorted it: its rounding is part of such answers
        return Rows(machine, self.make(np.arange(len(self.y))).dense(), True)

    def _judged(self, position: int, fold: int, values: Array, seconds: float) -> Judged:
        """Score values at the rows, in the order of K."""
        train, test = self.task.splits[fold]
        started = time.perf_counter()
        found, trouble = self._scores(values, test)
        took = time.perf_counter() - started
        seen: dict[str, float] = {}
        if self.task.train_scores:
            seen, more = self._scores(values, train)
            trouble = trouble or more
        return Judged(found, seen, seconds, took, trouble=trouble)

    def _scores(self, values: Array, index: Array) -> tuple[dict[str, float], str]:
        known, nothing = KnownRegressor(values[self._place[index]]), np.empty((len(index), 0))
        return scored(self.task, known, nothing, (take_rows(self.task.y, index),), index)


class FeaturePath(Path):
    """A kernel with few features; folds share their moments.

    Parameters
    ----------
    kernel : Kernel
        The kernel, for machines that are fitted.
    columns : int
        How many features it has.
    *args
        As of `Path`.
    """

    def __init__(self, kernel: Kernel, columns: int, *args: Any) -> None:
        super().__init__(*args)
        self.kernel = kernel
        self.units = tuple((fold,) for fold in range(len(self.task.splits)))
        self.size = 8.0 * (len(self.y) * columns * 3 + columns**2 * 5)

    def prepare(self) -> None:
        """Evaluate the features and multiply them."""
        super().prepare()
        assert self._gram is not None
        weights = np.ones(len(self.y)) if self.task.weights is None else self.task.weights
        self._moments = FeatureMoments.of(self._gram, weights, self.bias)

    def _machine(self, position: int) -> Rows:
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=self.kernel)
        return Rows.of(machine, self.task.X)


class MatrixPath(Path):
    """A kernel by its matrix; folds are one unit, as they share passes over it.

    Attributes
    ----------
    broad : bool
        Whether everything is done in `prepare`, which has all threads: where there are fewer
        groups than threads.
    """

    broad = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        folds, n = len(self.task.splits), len(self.y)
        self.units = (tuple(range(folds)),)
        self.size = max(8.0 * n**2 * (1 + _COPIES), 8.0 * n**2 + room(n, folds))
        self._found: FoldedPathValue | None = None

    def prepare(self) -> None:
        """Evaluate the kernel, and solve where all threads are at hand."""
        super().prepare()
        if self.broad:
            self._found = super()._fits(self.units[0], lambda: False)

    def release(self) -> None:
        """Drop the matrix and the answers."""
        super().release()
        self._found = None

    def _fits(self, folds: tuple[int, ...], stop: Stop) -> FoldedPathValue:
        return super()._fits(folds, stop) if self._found is None else self._found


class LeftOutPath(MatrixPath):
    """A kernel by its matrix, where each fold is one row."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.size = 8.0 * len(self.y) ** 2 * (2 + _COPIES)

    def prepare(self) -> None:
        """Solve, with all threads; what is left to judge is a formula."""
        Path.prepare(self)
        started = time.perf_counter()
        self._found = self._solved(None, lambda: False)
        self._took = time.perf_counter() - started

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Score every row alone."""
        assert self._found is not None
        folds = self.units[unit]
        share = self._took / (len(self.points) * len(folds))
        rows = np.array([int(self.task.splits[fold][1][0]) for fold in folds])
        out: dict[tuple[int, int], Judged] = {}
        for k, position in enumerate(self.points):
            if not self._found.met[0, k]:
                machine = partial(self._machine, position)
                out |= {(position, f): judge_fit(self.task, machine, f, stop) for f in folds}
                continue
            if stop():
                raise Stopped
            scores = one_by_one(self.task, rows, self._found.values[0, rows, k])
            for fold, (found, trouble) in zip(folds, scores, strict=True):
                out[position, fold] = Judged(found, {}, share, 0.0, trouble=trouble)
        return out


def _listening(stop: Stop) -> Callback:
    """Return a callback that leaves a solver when a unit is to be left."""

    def listen(progress: Progress) -> None:
        if stop():
            raise Stopped

    return listen
