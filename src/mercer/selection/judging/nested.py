"""Nested cross-validation: the whole choice, judged on rows that took no part in it.

The best score of a grid is the largest of many uncertain numbers, so it promises too much. Here the
choice itself is repeated without each outer fold, and its winner is scored on that fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from mercer.array_types import Array
from mercer.selection.running.folds import folds_of
from mercer.selection.running.rows import Rows, indexable


@dataclass(frozen=True, eq=False)
class Nested:
    """What a choice is worth.

    Attributes
    ----------
    scores : (folds,) array
        Of each winner, on rows that took no part in its choice.
    inner_scores : (folds,) array
        What the choice itself promised for it.
    params : tuple of dict
        The winners.
    mean : float
        Mean of `scores`.
    standard_error : float
        How uncertain that is; a rough guide, since folds share rows.
    optimism : float
        By how much the promise was above what came, on average.
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
        """How uncertain the mean is."""
        folds = len(self.scores)
        return float(self.scores.std(ddof=1) / np.sqrt(folds)) if folds > 1 else float("nan")

    @property
    def optimism(self) -> float:
        """By how much the inner scores promised too much."""
        return float(self.inner_scores.mean() - self.scores.mean())

    def __str__(self) -> str:
        return (
            f"{self.mean:.4g} +- {self.standard_error:.2g} over {len(self.scores)} outer folds; "
            f"the choices promised {self.optimism:+.2g} beside that"
        )


def nested_cross_validate(
    tuned: Any, X: Any, y: Any = None, *, cv: Any = 5, scoring: Any = None, groups: Any = None
) -> Nested:
    """Judge a machine that chooses its own parameters.

    Parameters
    ----------
    tuned : Tuned or estimator with `best_params_` and `best_score_`
        Chooses by cross-validation within the rows that it is given.
    X : array-like
        Rows.
    y : array-like, optional
        Targets.
    cv : int, splitter, iterable or "loo"
        The outer folds, as in scikit-learn.
    scoring : str, callable or None
        The outer score, as in scikit-learn; None takes that of `tuned`.
    groups : array-like, optional
        Groups of rows for the outer folds.

    Returns
    -------
    Nested
        Outer scores, what was promised, and the winners.

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
    rows = Rows.of(tuned, indexable(X))
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
