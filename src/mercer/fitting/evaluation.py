"""How good a model is, on rows that took no part in its fit: figures, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mercer.array_types import Array
from mercer.selection import Roc


@dataclass(frozen=True)
class Metric:
    """One figure with its confidence interval.

    Attributes
    ----------
    name : str
        "accuracy", "balanced accuracy", "area under the ROC curve", "log loss", "Brier score";
        "root mean squared error", "mean absolute error", "R^2".
    value : float
        On the rows that the model is judged by.
    low, high : float
        Ends of the interval; NaN where there is none.
    method : str
        How the interval was made: "Wilson", "DeLong" or "bootstrap".
    better : str
        "higher" or "lower".
    baseline : float
        The same figure for the best constant answer (the most frequent class with the shares of
        the classes as probabilities, or the mean); NaN where it has none.
    """

    name: str
    value: float
    low: float
    high: float
    method: str
    better: str = "higher"
    baseline: float = float("nan")

    @property
    def beats_constant(self) -> bool | None:
        """Whether the whole interval is better than the constant answer; None if not known."""
        if not all(map(math.isfinite, (self.low, self.high, self.baseline))):
            return None
        if self.better == "lower":
            return bool(self.high < self.baseline)
        return bool(self.low > self.baseline)

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} ({self.low:.4g} to {self.high:.4g}, {self.method})"


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """Predicted probabilities beside what came: for each bin of rows.

    Attributes
    ----------
    predicted : (bins,) array
        Mean predicted probability of the positive class (of the predicted class, where there are
        more than two).
    observed : (bins,) array
        Share of the rows where that came true.
    low, high : (bins,) array
        Wilson's interval of that share.
    count : (bins,) int array
        How many rows.
    error : float
        Mean distance of both, weighted by the rows (expected calibration error).
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    count: Array
    error: float


@dataclass(frozen=True)
class Importance:
    """What a column is worth: how much worse the score gets when its entries are shuffled.

    Attributes
    ----------
    column : str
        Of the table, not of what it was turned into.
    drop : float
        Mean loss of the score (accuracy, or R^2) over the shuffles.
    error : float
        Standard error over the shuffles.
    """

    column: str
    drop: float
    error: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A model, judged.

    Attributes
    ----------
    kind : str
        "held-out" (rows that neither preparation nor choice nor fit has seen), "test table"
        (another table) or "cross-validated" (every row predicted by fits without it, at the chosen
        parameters: a little too kind, since these were chosen by the same rows).
    rows : (n,) int array
        Which rows of the table (of the test table) these are.
    truth, predictions : (n,) arrays
        Labels or targets.
    scores : (n,) or (n, classes) array, or None
        Decision values, for classifiers.
    probabilities : (n, classes) array or None
        Where the model gives any.
    metrics : tuple of Metric
        Figures with intervals; the first is the main one.
    level : float
        Of the intervals: 0.95.
    confusion : (classes, classes) int array or None
        Rows by true (down) and predicted class (across), in the order of `classes`.
    roc : Roc or None
        For two classes.
    calibration : CalibrationTable or None
        Where there are probabilities.
    residuals : (n,) array or None
        Truth less prediction, for regression.
    importance : tuple of Importance
        By column of the table, most important first; empty where time did not allow it.
    importance_note : str
        How many rows and shuffles, and which score, or why there is none.
    cross_validated : tuple of float
        Mean score of the chosen parameters in the comparison, and its standard error (NaN without
        a comparison).
    scoring : str
        Which score that is.
    """

    kind: str
    rows: Array
    truth: Array
    predictions: Array
    scores: Array | None
    probabilities: Array | None
    metrics: tuple[Metric, ...]
    level: float
    confusion: Array | None
    roc: Roc | None
    calibration: CalibrationTable | None
    residuals: Array | None
    importance: tuple[Importance, ...]
    importance_note: str
    cross_validated: tuple[float, float]
    scoring: str

    def __getitem__(self, name: str) -> Metric:
        """Return the metric of that name."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(f"{name!r} is none of {[metric.name for metric in self.metrics]}")

    def __str__(self) -> str:
        head = f"{self.kind}, {len(self.truth)} rows, intervals of {100 * self.level:g} %:"
        return "\n".join([head, *(f"  {metric}" for metric in self.metrics)])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain numbers and words, for JSON."""
        names = ("value", "low", "high", "method", "better", "baseline")
        return {
            "kind": self.kind,
            "rows": len(self.truth),
            "level": self.level,
            "metrics": {m.name: {name: getattr(m, name) for name in names} for m in self.metrics},
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "cross_validated": list(self.cross_validated),
            "scoring": self.scoring,
            "importance": [[one.column, one.drop, one.error] for one in self.importance],
        }
