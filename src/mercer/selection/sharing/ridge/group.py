"""Ridge regression: the penalties of a kernel share one factorisation for each fold.

A grid search refits for every penalty. Here all penalties of a kernel on a fold come from one of

- a subspace that grows with all folds together, by products with the matrix, and with one inverse
  on all rows where these do not get on (`ridge_krylov`);
- in small folds one reduction of the matrix to a band (`ridge_band`), or a factorisation for each
  penalty where they are few (`ridge_cholesky`);
- one small eigenproblem, where the kernel has few features (`ridge_features`);
- one reduction for all folds, where each row is left out alone (`ridge_left_out`).

Every answer is checked against the equations of its fold; where they are not met to nearly all
digits (penalties that are tiny beside the matrix), the machine itself is fitted.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from mercer.array_types import Array, Points
from mercer.expression import Expression, bind_columns
from mercer.gram.policy import SHARED_ROWS_PER_FEATURE, SQUARED
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import dimension, feature_map
from mercer.machines import KernelRidge
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.parameters import is_real
from mercer.points import is_objects, is_sparse
from mercer.resources import call_threads
from mercer.selection.running.rows import Rows, take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group, Judged, Stop, Stopped
from mercer.selection.sharing.gram import checked_rows, kernels_of
from mercer.selection.sharing.known import KnownRegressor, asks_only_for_answers
from mercer.selection.sharing.parts import Parts
from mercer.selection.sharing.refit import judge_fit, scored
from mercer.selection.sharing.ridge.band import by_band
from mercer.selection.sharing.ridge.cholesky import FEW, by_cholesky
from mercer.selection.sharing.ridge.features import Features
from mercer.selection.sharing.ridge.krylov import FEWEST_ROWS, by_krylov, room
from mercer.selection.sharing.ridge.left_out import leaves_one_out, left_out
from mercer.selection.sharing.ridge.matrix import given_matrix, matrix_of
from mercer.selection.sharing.ridge.parts import fold_order
from mercer.selection.sharing.ridge.scores import one_by_one
from mercer.selection.sharing.ridge.system import FoldAnswer, FoldSystem
from mercer.selection.sharing.share import register

_COPIES = 3.5  # of the matrix: that of a fold, the tiles it is reduced in, Q, what is between


class Path(Group):
    """Penalties of one kernel, with a bias or without.

    Parameters
    ----------
    task : Task
        What is tuned.
    settings : dict of int to dict
        The points, by their positions.
    y : (n,) array
        Targets.
    bias : bool
        Whether there is one.
    """

    def __init__(self, task: Task, settings: dict[int, Point], y: Array, bias: bool) -> None:
        self.task, self.settings, self.y, self.bias = task, settings, y, bias
        self.points = tuple(settings)
        self.units: tuple[tuple[int, ...], ...] = tuple((k,) for k in range(len(task.splits)))
        self.penalties = np.array(
            [float(task.machine_at(point).penalty) for point in settings.values()]
        )

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Fit all penalties to the rows of each fold, then score them."""
        folds = self.units[unit]
        if stop():
            raise Stopped
        started = time.perf_counter()
        answers = self._fits(folds, stop)
        seconds = (time.perf_counter() - started) / (len(self.points) * len(folds))
        return {
            (position, fold): self._judged(position, fold, answer.values[:, k], seconds)
            if answer.met[k]
            else judge_fit(self.task, partial(self._machine, position), fold, stop)
            for fold, answer in zip(folds, answers, strict=True)
            for k, position in enumerate(self.points)
        }

    @abstractmethod
    def _fits(self, folds: tuple[int, ...], stop: Stop) -> list[FoldAnswer]:
        """Fit all penalties to the rows of each fold."""

    @abstractmethod
    def _machine(self, position: int) -> Rows:
        """Return a machine to be fitted where the equations are not met, with its rows."""

    def _judged(self, position: int, fold: int, values: Array, seconds: float) -> Judged:
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
        known, nothing = KnownRegressor(values[index]), np.empty((len(index), 0))
        return scored(self.task, known, nothing, (take_rows(self.task.y, index),), index)


class FeaturePath(Path):
    """A kernel with few features."""

    def __init__(self, kernel: Kernel, make: Callable[[], Array], columns: int, *args: Any) -> None:
        super().__init__(*args)
        self.kernel, self.make = kernel, make
        self._features: Features | None = None
        self.size = 8.0 * (len(self.y) * columns * 3 + columns**2 * 5)

    def prepare(self) -> None:
        """Evaluate the features and multiply them."""
        self._features = Features.of(self.make(), self.task.weights, self.bias)

    def release(self) -> None:
        """Drop the features."""
        self._features = None

    def _fits(self, folds: tuple[int, ...], stop: Stop) -> list[FoldAnswer]:
        assert self._features is not None
        rows = [self.task.splits[fold][0] for fold in folds]
        return [self._features.fits(train, self.y, self.penalties) for train in rows]

    def _machine(self, position: int) -> Rows:
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=self.kernel)
        return Rows.of(machine, self.task.X)


class MatrixPath(Path):
    """A kernel by its matrix; folds are one unit, as they share passes over it.

    Parameters
    ----------
    make : callable
        Returns the matrix of rows in some order.
    order : (n,) int array
        Rows in the order that products of folds are fastest in.

    Attributes
    ----------
    broad : bool
        Whether everything is done in `prepare`, which has all threads: where there are fewer
        groups than threads.
    """

    broad = False

    def __init__(self, make: Callable[[Array], Array], order: Array, *args: Any) -> None:
        super().__init__(*args)
        self.make, self.order = make, order
        self.units = (tuple(range(len(self.task.splits))),)
        n = len(self.y)
        self._place = np.argsort(order)
        self.size = max(8.0 * n**2 * (1 + _COPIES), 8.0 * n**2 + room(n, len(self.task.splits)))
        self._K: Array = np.empty((0, 0))
        self._answers: list[FoldAnswer] = []

    def prepare(self) -> None:
        """Evaluate the kernel."""
        self._K = self.make(self.order)
        if self.broad:
            self._answers = self._search(lambda: False)

    def release(self) -> None:
        """Drop the matrix."""
        self._K, self._answers = np.empty((0, 0)), []

    def _search(self, stop: Stop) -> list[FoldAnswer]:
        """Answer what subspaces can."""
        systems = [self._system(fold) for fold in range(len(self.task.splits))]
        if min(len(system.rows) for system in systems) < FEWEST_ROWS:
            return [FoldAnswer.nothing(system, self.penalties) for system in systems]
        return by_krylov(systems, self.penalties, stop)

    def _system(self, fold: int) -> FoldSystem:
        train, _ = self.task.splits[fold]
        weights = None if self.task.weights is None else self.task.weights[self.order]
        rows = np.sort(self._place[train])
        return FoldSystem.of(self._K, rows, self.y[self.order], weights, self.bias)

    def _fits(self, folds: tuple[int, ...], stop: Stop) -> list[FoldAnswer]:
        """Return what subspaces have answered, and factor for the rest."""
        answers = self._answers or self._search(stop)
        for fold, answer in zip(folds, answers, strict=True):
            rest = np.flatnonzero(~answer.met)
            if len(rest):
                way = by_cholesky if len(rest) <= FEW else by_band
                again = way(self._system(fold), self.penalties[rest], stop)
                answer.values[:, rest], answer.met[rest] = again.values, again.met
        return [FoldAnswer(answer.values[self._place], answer.met) for answer in answers]

    def _machine(self, position: int) -> Rows:
        """Return the matrix as if no one had sorted it: its rounding is part of such answers."""
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=Precomputed())
        return Rows(machine, self.make(np.arange(len(self.y))), True)


class LeftOutPath(MatrixPath):
    """A kernel by its matrix, where each fold is one row."""

    def __init__(self, make: Callable[[Array], Array], order: Array, *args: Any) -> None:
        super().__init__(make, order, *args)
        self.size = 8.0 * len(self.y) ** 2 * (2 + _COPIES)
        self._answered: FoldAnswer | None = None

    def prepare(self) -> None:
        """Reduce the matrix, with all threads; what is left to judge is a formula."""
        self._K = self.make(self.order)
        self._started = time.perf_counter()
        self._answered = left_out(self._K, self.y, self.task.weights, self.bias, self.penalties)
        self._took = time.perf_counter() - self._started

    def release(self) -> None:
        """Drop everything."""
        super().release()
        self._answered = None

    def judge(self, unit: int, stop: Stop) -> dict[tuple[int, int], Judged]:
        """Score every row alone."""
        assert self._answered is not None
        folds = self.units[unit]
        share = self._took / (len(self.points) * len(folds))
        rows = np.array([int(self.task.splits[fold][1][0]) for fold in folds])
        out: dict[tuple[int, int], Judged] = {}
        for k, position in enumerate(self.points):
            if not self._answered.met[k]:
                for fold in folds:
                    out[position, fold] = judge_fit(
                        self.task, partial(self._machine, position), fold, stop
                    )
                continue
            if stop():
                raise Stopped
            scores = one_by_one(self.task, rows, self._answered.values[rows, k])
            for fold, (found, trouble) in zip(folds, scores, strict=True):
                out[position, fold] = Judged(found, {}, share, 0.0, trouble=trouble)
        return out


@register(KernelRidge)
def by_path(task: Task, points: Sequence[Point]) -> list[Group]:
    """Group points that differ in their penalties only."""
    y = _targets(task)
    if y is None or not asks_only_for_answers(task.scorers, task.machine):
        return []
    alone = leaves_one_out(task.splits, len(y)) and not task.train_scores
    trains = [] if alone else [train for train, _ in task.splits]
    order = fold_order(trains, task.weights, len(y))
    path = LeftOutPath if alone else MatrixPath
    made: list[Group] = []
    found = _kernels(task, points)
    parts = _parts(found)
    for kernel, bias, positions, rows, names in found:
        settings = {position: points[position] for position in positions}
        rest = (task, settings, y, bias)
        if isinstance(kernel, Precomputed):
            made.append(path(given_matrix(rows), order, *rest))
            continue
        expression = bind_columns(kernel.expression(), names)
        count = _feature_count(expression, rows)
        if count is not None and not alone:
            made.append(FeaturePath(kernel, _features(expression, rows), count, *rest))
        else:
            made.append(path(matrix_of(expression, rows, parts), order, *rest))
            made[-1].size += 8.0 * len(y) ** 2 * parts.count
    for group in made:
        if isinstance(group, MatrixPath):
            group.broad = len(made) < call_threads(np.inf)
    return made


def _parts(found: Sequence[tuple[Kernel, bool, list[int], Points, list[str] | None]]) -> Parts:
    """Return what the kernels have in common, by the rows that all but given matrices share."""
    told = [(kernel, rows, names) for kernel, _, _, rows, names in found]
    formulas = {
        bind_columns(kernel.expression(), names): rows
        for kernel, rows, names in told
        if not isinstance(kernel, Precomputed)
    }
    return Parts(list(formulas), next(iter(formulas.values()), np.empty((0, 0))))


def _kernels(
    task: Task, points: Sequence[Point]
) -> list[tuple[Kernel, bool, list[int], Points, list[str] | None]]:
    """Return the kernels and bias flags of points that a path can answer, with their rows."""
    machines = [task.machine_at(point) for point in points]
    able = [k for k, machine in enumerate(machines) if _is_plain(machine)]
    pairwise = [k for k in able if get_tags(machines[k]).input_tags.pairwise]
    found: list[tuple[Kernel, bool, list[int], Points, list[str] | None]] = []
    if pairwise:
        given = training_rows_alone(clone(machines[pairwise[0]]), task.X, True)
        for flag in (True, False):
            chosen = [k for k in pairwise if machines[k].bias == flag]
            if chosen:
                found.append((Precomputed(), flag, chosen, given, None))
    others = [k for k in able if k not in set(pairwise)]
    if not others or get_tags(task.machine).input_tags.pairwise:
        return found
    rows, names = checked_rows(task)
    known = kernels_of(task, points, rows)
    for k in (k for k in others if k in known):
        key = (known[k], bool(machines[k].bias))
        for kernel, bias, positions, _, _ in found:
            if (kernel, bias) == key:
                positions.append(k)
                break
        else:
            found.append((*key, [k], rows, names))
    return found


def _is_plain(machine: Any) -> bool:
    """Return whether a path gives what the machine would: one positive penalty, nothing else."""
    penalty = machine.penalty
    return (
        is_real(penalty)
        and bool(np.isfinite(penalty))
        and penalty > 0
        and isinstance(machine.bias, bool | np.bool_)
        and machine.solver is None
        and machine.callback is None
        and machine.time_limit is None
    )


def _targets(task: Task) -> Array | None:
    """Return the targets if they are one finite number for each row."""
    y = np.asarray(task.y)
    if y.ndim != 1 or y.dtype.kind not in "fiub":
        return None
    y = y.astype(np.float64)
    if task.weights is not None and not (
        np.isfinite(task.weights).all() and (task.weights >= 0).all()
    ):
        return None
    return y if np.isfinite(y).all() else None


def _feature_count(expression: Expression, rows: Points) -> int | None:
    """Return the number of features if they are few and rows are dense."""
    if is_objects(rows) or is_sparse(rows):
        return None
    count = dimension(expression, rows.shape[1])
    if count is None or count > SQUARED or SHARED_ROWS_PER_FEATURE * count >= rows.shape[0]:
        return None
    return count


def _features(expression: Expression, rows: Points) -> Callable[[], Array]:
    def make() -> Array:
        found = feature_map(expression, rows.shape[1])
        assert found is not None
        return np.ascontiguousarray(found(np.asarray(rows, dtype=np.float64)))

    return make
