"""Leave-one-out: whether folds are that, and scores of single rows, many at a time.

A scorer's checks of one row take longer than a subtraction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.metrics import get_scorer

from mercer.array_types import Array
from mercer.selection.running.rows import take_rows
from mercer.selection.running.task import Task
from mercer.selection.sharing.known import KnownRegressor
from mercer.selection.sharing.refit import scored

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
