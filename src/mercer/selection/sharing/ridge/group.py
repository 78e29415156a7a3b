"""Ridge regression: points of a grid that differ in their penalties only are one path.

A grid search refits for every penalty. Here all penalties of a kernel on all folds are one problem,
`FoldedRidgePath`, whose solvers share what can be shared: a subspace, a reduction, features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from mercer.array_types import Array, Points
from mercer.expression import Expression, bind_columns
from mercer.gram import Gram, Source
from mercer.gram.build import evaluated_gram, factor_gram, matrix_gram
from mercer.gram.policy import SHARED_ROWS_PER_FEATURE, SQUARED
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import dimension, feature_map
from mercer.machines import KernelRidge
from mercer.machines.base.approximate import is_exact
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.parameters import is_real
from mercer.points import is_objects, is_sparse
from mercer.resources import call_threads
from mercer.selection.running.rows import take_rows
from mercer.selection.running.task import Point, Task
from mercer.selection.sharing.base import Group
from mercer.selection.sharing.gram import checked_rows, kernels_of
from mercer.selection.sharing.known import asks_only_for_answers
from mercer.selection.sharing.parts import Parts
from mercer.selection.sharing.ridge.left_out import leaves_one_out
from mercer.selection.sharing.ridge.paths import FeaturePath, LeftOutPath, MakeGram, MatrixPath
from mercer.selection.sharing.share import register
from mercer.solvers.ridge.folds.products import fold_order


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
