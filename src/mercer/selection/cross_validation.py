"""Cross-validation on one shared kernel matrix, nested cross-validation, and learning curves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring

from mercer.array_types import Array
from mercer.selection.evaluator import Evaluator
from mercer.selection.folds import FitRows, folds_of, indexable
from mercer.selection.task import Task, make_task

# --- validation ----------------------------------------------------------------------------------
#
# Cross-validation and learning curves over one shared Gram.

_PLAIN: dict[str, Any] = {
    "sample_weight": None,
    "groups": None,
    "train_scores": True,
    "error_score": "raise",
}


@dataclass(frozen=True, eq=False)
class Validation:
    """Cross-validation scores.

    Attributes
    ----------
    scores : (folds,) array
        Scores on the held-out samples.
    train_scores : (folds,) array
        Scores on the training samples.
    seconds : (folds,) array
        Time of each fit.
    mean : float
        Mean of the scores.
    standard_error : float
        Standard deviation of the scores over the square root of their number: a rough guide, since
        folds share rows.
    """

    scores: Array
    train_scores: Array
    seconds: Array

    @property
    def mean(self) -> float:
        """Mean of the scores."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return _standard_error(self.scores)

    def __str__(self) -> str:
        return f"{self.mean:.4g} +- {self.standard_error:.2g} over {len(self.scores)} folds"


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Scores by the number of training samples.

    Attributes
    ----------
    sizes : (k,) int array
        Numbers of training samples.
    scores : (k, folds) array
        Scores on the held-out samples.
    train_scores : (k, folds) array
        Scores on the training samples.
    """

    sizes: Array
    scores: Array
    train_scores: Array


def cross_validate(
    machine: Any, X: Any, y: Any = None, *, cv: Any = 5, scoring: Any = None
) -> Validation:
    """Evaluate an estimator by cross-validation.

    Parameters
    ----------
    machine : estimator
        Any of scikit-learn's kind; for machines of this library that need inner products only, the
        kernel is evaluated once for all folds.
    X : array-like
        Rows.
    y : array-like, optional
        Targets.
    cv : int, splitter or iterable
        As in scikit-learn.
    scoring : str, callable or None
        As in scikit-learn.

    Returns
    -------
    Validation
        The scores.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> found = cross_validate(SVC(Gaussian(1.0)), X, X[:, 0] ** 2 + X[:, 1] ** 2 > 1, cv=4)
    >>> found.mean > 0.9
    True
    """
    task = make_task(clone(machine), X, y, cv=cv, scoring=scoring, **_PLAIN)
    tests, trains, seconds = _judged(task)
    return Validation(tests, trains, seconds)


def learning_curve(
    machine: Any,
    X: Any,
    y: Any = None,
    *,
    sizes: npt.ArrayLike = (0.1, 0.325, 0.55, 0.775, 1.0),
    cv: Any = 5,
    scoring: Any = None,
    random_state: int = 0,
) -> LearningCurve:
    """Evaluate an estimator for increasing numbers of training samples.

    Parameters
    ----------
    machine : estimator
        Any estimator compatible with scikit-learn.
    X : array-like
        Rows.
    y : array-like, optional
        Targets.
    sizes : array-like
        Numbers of training samples if integers, fractions of the smallest training fold if floats.
    cv : int, splitter or iterable
        As in scikit-learn.
    scoring : str, callable or None
        As in scikit-learn.
    random_state : int
        Random seed of the order of the samples.

    Returns
    -------
    LearningCurve
        Scores of each size and fold. NaN if a class is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(200, 1))
    >>> curve = learning_curve(KernelRidge(0.1, kernel=Gaussian(1.0)), X, np.sin(X[:, 0]), cv=4)
    >>> curve.scores.shape
    (5, 4)
    """
    task = make_task(clone(machine), X, y, cv=cv, scoring=scoring, **_PLAIN)
    rng = np.random.default_rng(random_state)
    splits = [(rng.permutation(train), test) for train, test in task.splits]
    counts = _counts(sizes, min(len(train) for train, _ in splits))
    scores = np.full((2, len(counts), len(splits)), np.nan)
    parts = {
        (i, j): (train[:count], test)
        for (i, count), (j, (train, test)) in product(enumerate(counts), enumerate(splits))
        if not is_classifier(machine) or task.y is None or _several(task.y[train[:count]])
    }
    if parts:
        tests, trains, _ = _judged(replace(task, splits=tuple(parts.values())))
        for (i, j), test, train in zip(parts, tests, trains, strict=True):
            scores[:, i, j] = test, train
    return LearningCurve(counts, scores[0], scores[1])


def _standard_error(scores: Array) -> float:
    folds = len(scores)
    return float(scores.std(ddof=1) / np.sqrt(folds)) if folds > 1 else float("nan")


def _judged(task: Task) -> tuple[Array, Array, Array]:
    """Judge the machine as it is on every fold: scores left out, scores learnt from, seconds."""
    evaluator = Evaluator(task, next(iter(task.scorers)), np.random.default_rng(0))
    tests = evaluator.evaluate([{}])[0]
    seconds = [evaluator.table["", 0, fold].fit_seconds for fold in range(len(task.splits))]
    return tests, evaluator.scores(train=True)[0], np.array(seconds)


def _several(labels: Array) -> bool:
    return len(np.unique(labels)) > 1


def _counts(sizes: npt.ArrayLike, most: int) -> Array:
    requested = np.atleast_1d(np.asarray(sizes))
    if not len(requested) or not np.isfinite(requested).all() or not (requested > 0).all():
        raise ValueError(f"sizes={sizes!r} must be positive numbers")
    shares = requested.dtype.kind == "f"
    counts = np.maximum(1, np.rint(requested * most if shares else requested)).astype(int)
    if counts.max() > most:
        raise ValueError(
            f"sizes: {counts.max()} samples are requested, but training folds have only {most}"
        )
    return np.asarray(counts)


# --- nested --------------------------------------------------------------------------------------
#
# Nested cross-validation: the whole choice, judged on rows that took no part in it.
#
# The best score of a grid is the largest of many uncertain numbers, so it promises too much. Here
# the choice itself is repeated without each outer fold, and its winner is scored on that fold.


@dataclass(frozen=True, eq=False)
class Nested:
    """Result of nested cross-validation.

    Attributes
    ----------
    scores : (folds,) array
        Scores of the selected candidates on the outer held-out samples.
    inner_scores : (folds,) array
        Scores of the selected candidates in the inner cross-validation.
    params : tuple of dict
        Selected candidates.
    mean : float
        Mean of `scores`.
    standard_error : float
        Standard error of the mean; approximate, since folds share samples.
    optimism : float
        Mean difference of inner and outer scores.
    """

    scores: Array
    inner_scores: Array
    params: tuple[dict[str, Any], ...]

    @property
    def mean(self) -> float:
        """Mean of the scores."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return _standard_error(self.scores)

    @property
    def optimism(self) -> float:
        """Mean difference of inner and outer scores."""
        return float(self.inner_scores.mean() - self.scores.mean())

    def __str__(self) -> str:
        return (
            f"{self.mean:.4g} +- {self.standard_error:.2g} over {len(self.scores)} outer folds; "
            f"the inner scores are higher by {self.optimism:+.2g}"
        )


def nested_cross_validate(
    tuned: Any, X: Any, y: Any = None, *, cv: Any = 5, scoring: Any = None, groups: Any = None
) -> Nested:
    """Evaluate an estimator that tunes its hyperparameters.

    Parameters
    ----------
    tuned : Tuned or estimator with `best_params_` and `best_score_`
        Estimator that tunes by cross-validation on its training samples.
    X : array-like
        Rows.
    y : array-like, optional
        Targets.
    cv : int, splitter, iterable or "loo"
        Outer folds, as in scikit-learn.
    scoring : str, callable or None
        Outer score, as in scikit-learn. If None, that of `tuned`.
    groups : array-like, optional
        Groups of samples for the outer folds.

    Returns
    -------
    Nested
        Outer and inner scores, and the selected candidates.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import Tuned, nested_cross_validate
    >>> X = np.random.default_rng(0).normal(size=(150, 2))
    >>> y = (X**2).sum(axis=1) > 1.5
    >>> tuned = Tuned(SVC(Gaussian(1.0)), {"C": [0.1, 1.0, 10.0]})
    >>> found = nested_cross_validate(tuned, X, y, cv=3)
    >>> len(found.params), found.mean > 0.85
    (3, True)
    """
    rows = FitRows.of(tuned, indexable(X))
    y = None if y is None else np.asarray(y)
    scorer = check_scoring(tuned, scoring=scoring)
    scores, inner, params = [], [], []
    for train, test in folds_of(tuned, rows.data, y, cv, groups):
        winner = clone(tuned).fit(rows.train(train), *(() if y is None else (y[train],)))
        if not hasattr(winner, "best_score_"):
            raise TypeError(
                f"nested_cross_validate: {type(tuned).__name__} does not choose its parameters; "
                "wrap it in Tuned, or judge it by cross_validate"
            )
        scores.append(scorer(winner, rows.test(test, train), *(() if y is None else (y[test],))))
        inner.append(winner.best_score_)
        params.append(dict(winner.best_params_))
    return Nested(np.array(scores, dtype=float), np.array(inner, dtype=float), tuple(params))
