"""Class `Task`: the estimator, rows, folds and scorers of a search; checks, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_outlier_detector, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length

from mercer.array_types import Array
from mercer.machines.base.parameters import is_real
from mercer.rows.points import is_sparse
from mercer.selection.artificial_outliers import ArtificialOutliers
from mercer.selection.folds import FitRows, count_rows, folds_of, indexable, take_rows

# --- task ----------------------------------------------------------------------------------------
#
# What is tuned: a machine, the rows it learns from, the folds, and how answers are scored.

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
            X=FitRows.of(self.machine if machine is None else machine, self.X).train(rows),
            y=None if self.y is None else take_rows(self.y, rows),
            weights=None if self.weights is None else self.weights[rows],
            splits=tuple((train[train >= 0], test[test >= 0]) for train, test in moved),
        )


# --- task setup ----------------------------------------------------------------------------------
#
# From what the user gives to a task: rows, folds, scorers, weights, all checked.

ONLY = "score"  # name of a score that is alone, as in scikit-learn


def make_task(
    machine: Any,
    X: Any,
    y: Any,
    *,
    cv: Any,
    scoring: Any,
    sample_weight: npt.ArrayLike | None,
    groups: npt.ArrayLike | None,
    train_scores: bool,
    error_score: float | str,
    random_state: Any = 0,
) -> Task:
    """Check everything and put it together."""
    for needed in ("fit", "get_params", "set_params"):
        if not hasattr(machine, needed):
            raise TypeError(
                f"machine={machine!r} must be an estimator compatible with scikit-learn; it has no "
                f"{needed}"
            )
    if not (error_score == "raise" or is_real(error_score)):
        raise ValueError(f"error_score={error_score!r} must be a number or 'raise'")
    if y is None and get_tags(machine).target_tags.required:
        raise ValueError(
            f"{type(machine).__name__} requires y to be passed, but the target y is None"
        )
    X = indexable(X)
    y = y if y is None or is_sparse(y) else np.asarray(y)
    check_consistent_length(X, y)
    return Task(
        machine,
        X,
        y,
        folds_of(machine, X, y, cv, groups, random_state),
        scorers_of(machine, scoring, cv, y),
        _weights(sample_weight, count_rows(X)),
        bool(train_scores),
        error_score,
    )


def scorers_of(machine: Any, scoring: Any, cv: Any, y: Any) -> dict[str, Any]:
    """Return scorers by name."""
    if scoring is None:
        scoring = _default_scoring(machine, cv, y)
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    elif isinstance(scoring, list | tuple | set | frozenset):
        named = {name: name for name in scoring}
    else:
        return {ONLY: _scorer(machine, scoring)}
    if not named or not all(isinstance(name, str) for name in named):
        raise ValueError(f"scoring={scoring!r} must have at least one name")
    return {name: _scorer(machine, one) for name, one in named.items()}


def _scorer(machine: Any, scoring: Any) -> Any:
    if isinstance(scoring, str):
        refuse_unknown_score(scoring)
    return check_scoring(machine, scoring=scoring)


def refuse_unknown_score(name: str) -> None:
    """Raise if a name is no score of scikit-learn, and say which may be meant."""
    known = get_scorer_names()
    if name not in known:
        near = get_close_matches(name, known, n=3) or ("accuracy", "roc_auc", "r2")
        raise ValueError(
            f"scoring={name!r} is not a scikit-learn score; choose from {', '.join(near)} and "
            "others (see sklearn.metrics.get_scorer_names())"
        )


def _default_scoring(machine: Any, cv: Any, y: Any) -> Any:
    """Return how to judge where `scoring` does not say; None for the `score` of the machine."""
    if isinstance(cv, str) and is_regressor(machine):
        return "neg_mean_squared_error"  # R^2 is not defined on the single row of "loo"
    if y is None and is_outlier_detector(machine) and not hasattr(machine, "score"):
        return ArtificialOutliers()
    return None


def metric_of(task: Task, metric: str | None, scoring: Any) -> str:
    """Return the name of the score that decides."""
    names = list(task.scorers)
    if metric is None:
        if len(names) > 1:
            raise ValueError(
                f"scoring has several scores ({', '.join(names)}); select one with metric="
            )
        return names[0]
    several = callable(scoring)  # may give any names
    if metric not in names and not several:
        raise ValueError(f"metric={metric!r} is not among the scores ({', '.join(names)})")
    return metric


def _weights(weights: npt.ArrayLike | None, n: int) -> Array | None:
    if weights is None:
        return None
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (n,):
        raise ValueError(f"sample_weight has shape {found.shape}, but X has {n} rows")
    return found


# --- progress ------------------------------------------------------------------------------------
#
# How far a tuning is.


@dataclass(frozen=True)
class TuningProgress:
    """Progress of a search, passed to callbacks.

    Attributes
    ----------
    done : int
        Number of finished candidates.
    points : int
        Number of known candidates. Adaptive searches add more.
    best_params : dict or None
        Parameters of the best candidate so far.
    best_score : float
        Mean score of the best candidate. NaN before the first.
    seconds : float
        Time since the start.
    seconds_left : float
        Estimated remaining time. NaN before the first candidate.
    """

    done: int
    points: int
    best_params: Mapping[str, Any] | None
    best_score: float
    seconds: float
    seconds_left: float

    def __str__(self) -> str:
        return (
            f"{self.done}/{self.points} points, best {self.best_score:.4g}, "
            f"{self.seconds:.1f} s, {self.seconds_left:.1f} s left"
        )


TuningCallback = Callable[[TuningProgress], bool | None]
"""Called during a search. Return True to stop and keep the results so far."""
