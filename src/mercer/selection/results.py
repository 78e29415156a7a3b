"""Results as scikit-learn's `cv_results_` has them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from scipy.stats import rankdata

from mercer.array_types import Array
from mercer.selection.running.evaluator import Evaluator


def cv_results(evaluator: Evaluator) -> dict[str, Any]:
    """Return a dict of columns, a row for each point."""
    found: dict[str, Any] = {}
    for name, times in (("fit", _times(evaluator, "fit")), ("score", _times(evaluator, "score"))):
        with warnings.catch_warnings():  # points without any fold have no time
            warnings.simplefilter("ignore", RuntimeWarning)
            found[f"mean_{name}_time"] = np.nanmean(times, axis=1)
            found[f"std_{name}_time"] = np.nanstd(times, axis=1)
    found.update(_columns(evaluator))
    found["params"] = [dict(point) for point in evaluator.points]
    for metric in evaluator.names():
        found.update(_scores(evaluator, metric, "test"))
        if evaluator.task.train_scores:
            found.update(_scores(evaluator, metric, "train"))
    return found


def _times(evaluator: Evaluator, which: str) -> Array:
    found = np.full((len(evaluator.points), len(evaluator.task.splits)), np.nan)
    for (subset, place, fold), judged in evaluator.table.items():
        if not subset:
            found[place, fold] = getattr(judged, f"{which}_seconds")
    return found


def _scores(evaluator: Evaluator, metric: str, part: str) -> dict[str, Any]:
    scores = evaluator.scores(metric, train=part == "train")
    found: dict[str, Any] = {
        f"split{fold}_{part}_{metric}": scores[:, fold] for fold in range(scores.shape[1])
    }
    with np.errstate(invalid="ignore"):  # scores may be infinite
        found[f"mean_{part}_{metric}"] = scores.mean(axis=1)
        found[f"std_{part}_{metric}"] = scores.std(axis=1)
    if part == "test":
        found[f"rank_test_{metric}"] = ranks(found[f"mean_test_{metric}"])
    return found


def ranks(means: Array) -> Array:
    """Return 1 to the highest mean, equal ranks to equal means, the last one to those without."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1
    return rankdata(-np.nan_to_num(means, nan=worst), method="min").astype(np.int32)


def _columns(evaluator: Evaluator) -> dict[str, Any]:
    """Return a masked column for each parameter: points that do not set it are masked."""
    names = sorted({name for point in evaluator.points for name in point})
    return {f"param_{name}": _column(evaluator, name) for name in names}


def _column(evaluator: Evaluator, name: str) -> Any:
    tried = {k: point[name] for k, point in enumerate(evaluator.points) if name in point}
    numbers = all(isinstance(value, bool | int | float | np.number) for value in tried.values())
    dtype = np.array(list(tried.values())).dtype if numbers else object
    column = MaskedArray(np.empty(len(evaluator.points), dtype=dtype), mask=True)
    for k, value in tried.items():
        column[k] = value
    return column
