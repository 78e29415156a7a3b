"""What is tuned: a machine, the rows it learns from, the folds, and how answers are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from mercer.array_types import Array
from mercer.selection.running.rows import Rows, count_rows, take_rows

Point = Mapping[str, Any]
"""One setting of parameters, by name."""


def machine_at(machine: Any, point: Point) -> Any:
    """Return a new machine with the parameters of a point; both are left as they are."""
    values = {name: clone(value, safe=False) for name, value in point.items()}
    made = clone(machine).set_params(**values)
    return unshared(made) if isinstance(made, Pipeline) else made


def unshared(machine: Any) -> Any:
    """Return frozen parts of a clone, which are those of the original, a shell of their own.

    Fits in several threads write to it what they are called from.
    """
    parts = {n: copy(p) for n, p in machine.get_params().items() if isinstance(p, FrozenEstimator)}
    return machine.set_params(**parts) if parts else machine


@dataclass(frozen=True, eq=False)
class Task:
    """A question of selection, with its rows.

    Attributes
    ----------
    machine : estimator
        What is fitted, before any point of a grid is set; never changed.
    X : object
        Rows: array, sparse matrix, table, list, or the square matrix of a precomputed kernel.
    y : array or None
        Targets of all rows.
    splits : tuple of pairs of int arrays
        Rows to learn from and rows to judge by, for each fold.
    scorers : dict of str to callable
        scikit-learn's scorers, `scorer(machine, X, y)`, by name.
    weights : array or None
        How often each row counts, in fits and in scores that can be weighted.
    train_scores : bool
        Whether rows learnt from are judged, too.
    error_score : float or "raise"
        Score of a point that cannot be fitted; "raise" lets its error through.
    """

    machine: Any
    X: Any
    y: Any
    splits: tuple[tuple[Array, Array], ...]
    scorers: Mapping[str, Any]
    weights: Array | None = None
    train_scores: bool = False
    error_score: Any = np.nan

    def machine_at(self, point: Point) -> Any:
        """Return a new machine with the parameters of a point."""
        return machine_at(self.machine, point)

    def on_folds(self, folds: Sequence[int]) -> Task:
        """Return the task with some of its folds."""
        return replace(self, splits=tuple(self.splits[fold] for fold in folds))

    def on_rows(self, rows: Array, machine: Any = None) -> Task:
        """Return the task with some of its rows; folds keep those of their rows that are left.

        The machine, that of the task by default, says whether rows are a square matrix.
        """
        place = np.full(count_rows(self.X), -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        moved = [(place[train], place[test]) for train, test in self.splits]
        return replace(
            self,
            X=Rows.of(self.machine if machine is None else machine, self.X).train(rows),
            y=None if self.y is None else take_rows(self.y, rows),
            weights=None if self.weights is None else self.weights[rows],
            splits=tuple((train[train >= 0], test[test >= 0]) for train, test in moved),
        )
