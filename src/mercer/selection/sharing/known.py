"""Machines whose answers are known already, so that any scorer of scikit-learn can judge them.

Shared work gives values at the rows that were left out, not a fitted machine for each point. A
scorer asks a machine for `predict` or `decision_function`; these stand-ins answer with what is
known, whatever rows they are handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils.metaestimators import available_if

from mercer.array_types import Array


class KnownClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are known.

    Parameters
    ----------
    classes : (k,) array
        Labels, sorted.
    decision : (n,) or (n, k) array
        Decision values, of the second of two classes or of each.
    labels : (n,) array
        Predicted labels.
    """

    def __init__(self, classes: Array, decision: Array | None, labels: Array) -> None:
        self.classes, self.decision, self.labels = classes, decision, labels
        self.classes_ = classes

    @available_if(lambda self: self.decision is not None)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """Return the known values."""
        return np.asarray(self.decision)

    def predict(self, X: Any) -> Array:
        """Return the known labels."""
        return self.labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels, without the checks that strangers' arrays need."""
        if sample_weight is None and _alike(self.labels, y) and len(y):
            return np.count_nonzero(self.labels == y) / len(y)
        return float(super().score(X, y, sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are known."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def predict(self, X: Any) -> Array:
        """Return the known values."""
        return self.values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2, without the checks that strangers' arrays need."""
        if sample_weight is not None and np.max(sample_weight, initial=0.0) > 0:
            # only shares of weights count, and products with large ones overflow
            sample_weight = np.asarray(sample_weight) / np.max(sample_weight)
        if sample_weight is not None or not _alike(self.values, y) or len(y) < 2:
            return float(super().score(X, y, sample_weight))
        spread = float(np.sum((y - y.mean()) ** 2))
        left = float(np.sum((y - self.values) ** 2))
        if spread == 0.0 or not np.isfinite(left):
            return float(super().score(X, y))
        return 1.0 - left / spread

    def __sklearn_is_fitted__(self) -> bool:
        return True


class KnownDetector(OutlierMixin, BaseEstimator):
    """A detector of outliers whose decision values are known."""

    def __init__(self, decision: Array, offset: float = 0.0) -> None:
        self.decision, self.offset = decision, offset

    def decision_function(self, X: Any) -> Array:
        """Return the known values."""
        return self.decision

    def score_samples(self, X: Any) -> Array:
        """Return the known values before the threshold was taken off."""
        return self.decision + self.offset

    def predict(self, X: Any) -> Array:
        """Return 1 to what is inside, -1 to the rest."""
        return np.where(self.decision >= 0, 1, -1)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _alike(known: Array, y: Any) -> bool:
    """Return whether targets are a plain array beside which the answers can be laid."""
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and known.shape == y.shape
    return plain and y.dtype.kind in "biufUS" and y.dtype.kind == known.dtype.kind


def asks_only_for_answers(scorers: Mapping[str, Any], machine: Any) -> bool:
    """Return whether scorers are scikit-learn's own kind, which ask for answers and nothing else.

    A callable of the user may look at anything a fitted machine has, so it gets one.
    """
    kinds = {type(get_scorer("accuracy")), type(get_scorer("roc_auc"))}
    if hasattr(machine, "score"):
        kinds.add(type(check_scoring(machine)))
    return all(type(scorer) in kinds for scorer in scorers.values())


def scores_of(scorers: Mapping[str, Any], known: Any, y: Any) -> dict[str, float]:
    """Score known answers against the truth."""
    nothing = np.empty((len(y), 0))
    return {name: float(scorer(known, nothing, y)) for name, scorer in scorers.items()}
