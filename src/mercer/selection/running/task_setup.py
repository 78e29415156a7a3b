"""From what the user gives to a task: rows, folds, scorers, weights, all checked."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_outlier_detector, is_regressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length

from mercer.array_types import Array
from mercer.machines.base.parameters import is_real
from mercer.points import is_sparse
from mercer.selection.judging.artificial_outliers import ArtificialOutliers
from mercer.selection.running.folds import folds_of
from mercer.selection.running.rows import count_rows, indexable
from mercer.selection.running.task import Task

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
                f"machine={machine!r} must be an estimator of scikit-learn's kind; it has no "
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
        raise ValueError(f"scoring={scoring!r} must have names, at least one")
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
            f"scoring={name!r} is no score of scikit-learn; there are {', '.join(near)} and others "
            "(sklearn.metrics.get_scorer_names() lists them)"
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
                f"several scores are asked for ({', '.join(names)}); say by metric= which decides"
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
