"""Rows in the order in which a stored matrix of support vector machines is read best.

They are sorted by class, and within a class by the folds they are judged in, so that what a fold
learns from is a few long runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector

from mercer.array_types import Array, Points
from mercer.machines.base.inputs import training_rows_alone
from mercer.machines.base.targets import check_weights, refuse_targets
from mercer.points import row_count, take
from mercer.selection.running.rows import take_square
from mercer.selection.running.task import Task

_SORTED = 32  # folds that rows are sorted by: with more, each leaves few rows out


@dataclass(frozen=True, eq=False)
class Sorted:
    """All rows of a task in the order in which they are stored.

    Attributes
    ----------
    X : Points
        Rows, or the matrix between them.
    names : list of str or None
        Names of the columns.
    place : (n,) int array
        Where each row of the task is.
    targets : (n,) array
        Labels or targets, in the new order; zeros where there are none.
    weight : (n,) array
        How often each row counts, in the new order.
    classes : int
        How many labels there are; zero where targets are no labels.
    """

    X: Points
    names: list[str] | None
    place: Array
    targets: Array
    weight: Array
    classes: int = 0


def sorted_rows(task: Task, machine: Any, given: bool) -> Sorted:
    """Check all rows, and sort them by class and fold."""
    witness = clone(machine)
    X = training_rows_alone(witness, task.X, given)
    n = row_count(X)
    labelled = is_classifier(machine)
    targets = np.zeros(n) if is_outlier_detector(machine) else _targets(task, labelled, n)
    weight = check_weights(machine, task.weights, n)
    splits = task.splits[:_SORTED]
    keys = np.zeros((len(splits) + 1, n), dtype=np.int64)
    for key, (train, _) in zip(keys, splits, strict=False):
        key[train] = 1
    classes = 0
    if labelled:
        labels, keys[-1] = np.unique(targets, return_inverse=True)
        classes = len(labels)
    order = np.lexsort(keys)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    names = getattr(witness, "feature_names_in_", None)
    return Sorted(
        take_square(X, order, order) if given else take(X, order),
        None if names is None else list(names),
        place,
        targets[order],
        weight[order],
        classes,
    )


def _targets(task: Task, labelled: bool, n: int) -> Array:
    y = np.asarray(task.y)
    if y.shape != (n,):
        raise ValueError("there must be one label or target for each row")
    if labelled:
        refuse_targets(y)
        return y
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        raise ValueError("targets must be finite")
    return y
