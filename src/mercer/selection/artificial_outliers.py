"""Scorer of novelty detectors without labels: held-out rows against artificial outliers.

Where no novel row is known, novel rows are made (Tax and Duin, Uniform object generation for
optimizing one-class classifiers, JMLR 2 (2001)): a detector that ranks rows it has not seen above
made ones describes where rows are common. Rows drawn evenly from a box are told apart by any
detector as soon as there are ten columns, since the corners of the box are far from everything; so
differences of rows are added to rows, which keeps to the directions in which the data vary.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import get_tags

from mercer.array_types import Array
from mercer.data import Table
from mercer.rows.points import is_sparse
from mercer.selection.folds import count_rows
from mercer.selection.thresholds import roc

_COUNT = 1000  # artificial rows: the area's standard error is then below 0.01 on their side
_STEP = 1 / sqrt(2)  # of a difference of two rows: its covariance is then that of the rows
_FEWEST = 3  # rows that a fold must have: one to start from, two for a difference

NOTE = (
    "The score compares held-out samples with artificial outliers. It measures the ranking, not "
    "the threshold of predict. At small scales, that threshold rejects many normal samples; "
    "choose a threshold on held-out samples (docs/guide/novelty.md)."
)


@dataclass(frozen=True)
class ArtificialOutliers:
    """Scorer of novelty detectors: area under the ROC curve against artificial outliers.

    Artificial rows are x + (y - z) / sqrt(2), with x, y and z drawn from the rows that are judged:
    their mean is that of the rows, their covariance twice as large. The score is the chance that
    a row has a larger `score_samples` than an artificial one, ties counting half.

    Parameters
    ----------
    random_state : int, default=0
        Seed; with the same seed and rows, all settings meet the same artificial rows.

    Notes
    -----
    It is a stand-in for novel rows that nobody has seen, and prefers detectors that find *such*
    rows. It says nothing about the border, so neither about `nu`; where columns have few values
    (counts, codes), artificial rows lie between these, and scales come out small.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import OneClassSVM
    >>> from mercer.kernels import Gaussian
    >>> from mercer.selection import ArtificialOutliers
    >>> angle = np.random.default_rng(0).uniform(0, 6.3, 200)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> wide, narrow = (OneClassSVM(Gaussian(s)).fit(ring[:100]) for s in (3.0, 0.2))
    >>> score = ArtificialOutliers()
    >>> bool(score(wide, ring[100:]) < 0.8 < 0.9 < score(narrow, ring[100:]))
    True
    """

    random_state: int = 0

    def __call__(
        self, machine: Any, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """Score a fitted detector.

        Parameters
        ----------
        machine : estimator
            With `score_samples`, larger for common rows.
        X : array-like, sparse matrix or table
            Common rows that it was not fitted to.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        float
            The area, from 0 to 1; one half for a detector that cannot tell.
        """
        if get_tags(machine).input_tags.pairwise:
            raise ValueError(
                "ArtificialOutliers does not support precomputed kernels; pass a kernel and "
                "samples, or scoring="
            )
        weights = np.ones(count_rows(X)) if sample_weight is None else np.asarray(sample_weight)
        common = np.asarray(machine.score_samples(X), dtype=np.float64)
        made = np.asarray(machine.score_samples(self._rows(X, weights)), dtype=np.float64)
        which = np.repeat([1, 0], [len(common), len(made)])
        counts = np.concatenate([weights, np.ones(len(made))])
        return roc(which, np.concatenate([common, made]), counts).area

    def _rows(self, X: Any, weights: Array) -> Any:
        """Draw artificial rows, of the same form as X."""
        n = count_rows(X)
        if np.count_nonzero(weights) < _FEWEST:
            raise ValueError(
                f"ArtificialOutliers requires at least {_FEWEST} samples, got "
                f"{np.count_nonzero(weights)}; use fewer, larger folds (cv=5), or pass scoring="
            )
        rng = np.random.default_rng(self.random_state)
        start, plus, minus = rng.choice(n, size=(3, _COUNT), p=weights / weights.sum())
        differ = plus != minus  # else the row would be a common one
        rows = _numbers(X)
        made = rows[start[differ]] + _STEP * (rows[plus[differ]] - rows[minus[differ]])
        if isinstance(X, Table):
            return Table.of(made, names=X.columns)
        return type(X)(made, columns=X.columns) if hasattr(X, "iloc") else made


def _numbers(X: Any) -> Any:
    if is_sparse(X):
        return X.tocsr()
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "ArtificialOutliers requires numeric samples; pass scoring= for other samples"
        ) from error
