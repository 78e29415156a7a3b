"""Penalties of ridge regression as one path over all folds, leave-one-out included."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags

from mercer.array_types import Array, Points
from mercer.deadline import TimeLimitError
from mercer.expression import Expression, bind_columns
from mercer.gram import Gram, Source
from mercer.gram.build import evaluated_gram, factor_gram, matrix_gram
from mercer.gram.policy import SHARED_ROWS_PER_FEATURE, SQUARED
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import dimension, feature_map
from mercer.machines.base.approximate import is_exact
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.parameters import is_real
from mercer.machines.base.sharing import KnownRegressor
from mercer.machines.ridge.folds import fold_order
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.machines.ridge.krylov_folds import room
from mercer.machines.ridge.problem import FeatureMoments, FoldedPathValue, FoldedRidgePath
from mercer.resources import call_threads
from mercer.rows.points import is_objects, is_sparse
from mercer.selection.folds import FitRows, take_rows
from mercer.selection.sharing.base import (
    Group,
    Judged,
    Stop,
    Stopped,
    asks_only_for_answers,
    judge_fit,
    register,
    scored,
)
from mercer.selection.sharing.gram import Parts, checked_rows, kernels_of
from mercer.selection.task import Point, Task
from mercer.solvers.base import Callback, Progress, Status
from mercer.solvers.dispatch import solve

# --- group ---------------------------------------------------------------------------------------
#
# Ridge regression: points of a grid that differ in their penalties only are one path.
#
# A grid search refits for every penalty. Here all penalties of a kernel on all folds are one
# problem, `FoldedRidgePath`, whose solvers share what can be shared: a subspace, a reduction,
# features.


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
    unsorted = np.arange(len(y))
    made: list[Group] = []
    found = _kernels(task, points)
    parts = _parts(found)
    for kernel, bias, positions, rows, names in found:
        settings = {position: points[position] for position in positions}
        rest = (task, settings, y, bias)
        if isinstance(kernel, Precomputed):
            made.append(path(_given(rows), order, *rest))
            continue
        expression = bind_columns(kernel.expression(), names)
        count = _feature_count(expression, rows)
        if count is not None and not alone:
            make = _features(expression, rows)
            made.append(FeaturePath(kernel, count, make, unsorted, *rest))
        else:
            made.append(path(_evaluated(expression, rows, parts), order, *rest))
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
        and is_exact(machine)
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


def _features(expression: Expression, rows: Points) -> MakeGram:
    """Evaluate features when they are asked for; their products need no order."""

    def make(order: Array) -> Gram:
        found = feature_map(expression, rows.shape[1])
        assert found is not None
        F = np.ascontiguousarray(found(np.asarray(rows, dtype=np.float64)))
        return factor_gram(found, F)

    return make


def _evaluated(expression: Expression, rows: Points, parts: Parts) -> MakeGram:
    """Evaluate a kernel when its matrix is asked for; common parts are of rows as they are."""

    def make(order: Array) -> Gram:
        source = Source(expression, take_rows(rows, order), np.dtype(np.float64))
        if not parts.count:
            return _finite(evaluated_gram(source, parts.dense(source)))
        K = parts.dense(Source(expression, rows, np.dtype(np.float64)))
        return _finite(evaluated_gram(source, K if _as_is(order) else K[np.ix_(order, order)]))

    return make


def _given(K: Points) -> MakeGram:
    """Take a precomputed matrix."""
    matrix = np.asarray(K, dtype=np.float64)
    return lambda order: _finite(matrix_gram(matrix, None if _as_is(order) else order))


def _as_is(order: Array) -> bool:
    return np.array_equal(order, np.arange(len(order)))


def _finite(gram: Gram) -> Gram:
    if not np.isfinite(gram.dense()).all():
        raise ValueError("the kernel is not finite on all rows")
    return gram


# --- paths ---------------------------------------------------------------------------------------
#
# Groups of ridge regression: penalties of one kernel are one problem over all folds.
#
# A `FoldedRidgePath` is solved for all of them together; where it does not meet the equations of
# a fold (penalties that are tiny beside the matrix), the machine itself is fitted.

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
            raise TimeLimitError("tune: the time limit expired before all folds were fitted")
        found: FoldedPathValue = solution.value
        return found

    def _machine(self, position: int) -> FitRows:
        """Return a machine to be fitted where the equations are not met, with its rows."""
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=Precomputed())
        # the matrix as if no one had sorted it: its rounding is part of such answers
        return FitRows(machine, self.make(np.arange(len(self.y))).dense(), True)

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

    def _machine(self, position: int) -> FitRows:
        machine = self.task.machine_at(self.settings[position]).set_params(kernel=self.kernel)
        return FitRows.of(machine, self.task.X)


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


# --- left out ------------------------------------------------------------------------------------
#
# Leave-one-out: whether folds are that, and scores of single rows, many at a time.
#
# A scorer's checks of one row take longer than a subtraction.

_OF_ONE: dict[str, Callable[[Array], Array]] = {
    "neg_mean_squared_error": lambda off: -np.square(off),
    "neg_root_mean_squared_error": lambda off: -np.abs(off),
    "neg_mean_absolute_error": lambda off: -np.abs(off),
    "neg_median_absolute_error": lambda off: -np.abs(off),
    "neg_max_error": lambda off: -np.abs(off),
}


def leaves_one_out(splits: tuple[tuple[Array, Array], ...], n: int) -> bool:
    """Return whether each row is left out once, alone."""
    if len(splits) != n or any(len(test) != 1 or len(train) != n - 1 for train, test in splits):
        return False
    left = np.array([int(test[0]) for _, test in splits])
    if not np.array_equal(np.sort(left), np.arange(n)):
        return False
    whole = n * (n - 1) // 2
    return all(
        int(train.sum()) == whole - int(test[0]) and len(np.unique(train)) == n - 1
        for train, test in splits
    )


def one_by_one(task: Task, rows: Array, values: Array) -> list[tuple[dict[str, float], str]]:
    """Score a prediction of each row on its own: scores by name, and why one is missing."""
    known = {repr(get_scorer(name)): rule for name, rule in _OF_ONE.items()}
    rules = {name: known.get(repr(scorer)) for name, scorer in task.scorers.items()}
    counted = task.weights is None or bool((task.weights[rows] > 0).all())
    if counted and all(rule is not None for rule in rules.values()):
        off = np.asarray(task.y, dtype=np.float64)[rows] - values
        columns = {name: rule(off).tolist() for name, rule in rules.items() if rule is not None}
        return [
            ({name: column[k] for name, column in columns.items()}, "") for k in range(len(rows))
        ]
    nothing = np.empty((1, 0))
    return [
        scored(
            task,
            KnownRegressor(values[k : k + 1]),
            nothing,
            (take_rows(task.y, rows[k : k + 1]),),
            rows[k : k + 1],
        )
        for k in range(len(rows))
    ]
