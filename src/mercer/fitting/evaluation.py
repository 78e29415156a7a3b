"""Evaluation of a model: metrics, confidence intervals, and permutation importance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.array_types import Array
from mercer.fitting.training import prepared_columns
from mercer.rows.points import is_sparse
from mercer.selection import Choice, Roc, roc
from mercer.theory import Bound, hoeffding, machine_bound

# --- intervals -----------------------------------------------------------------------------------
#
# Confidence intervals of fractions, areas and means on the evaluated rows.

LEVEL = 0.95
_DRAWS = 1000  # bootstrap draws: the error of the ends of a 95 % interval is a tenth of its width
_FEWEST = 200  # draws for many rows, whose intervals are narrow
_INTERVALS_WORK = 2e7  # rows times draws: about half a second
_BLOCK = 50  # draws in memory at once


def wilson(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's interval of a fraction.

    Parameters
    ----------
    successes : float
        Number of successes.
    n : int
        Number of trials.
    level : float
        Confidence level.

    Returns
    -------
    tuple of float
        Low and high end; (0, 1) for no rows.

    Examples
    --------
    >>> low, high = wilson(9, 10)
    >>> round(low, 3), round(high, 3)
    (0.596, 0.982)
    """
    if n == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.5 + level / 2))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def area_interval(
    codes: Array, scores: Array, level: float = LEVEL
) -> tuple[float, float, float, str]:
    """Return the area under the ROC curve and DeLong's interval on the logit scale.

    With more than two classes, the area is the mean over one-against-rest problems. The variance
    is the sum of squared contributions of the rows. For two classes it equals DeLong's.

    Parameters
    ----------
    codes : (n,) int array
        Class indices.
    scores : (n,) or (n, classes) array
        Decision values of class 1 or of each class.
    level : float
        Confidence level.

    Returns
    -------
    tuple
        Area, ends of the interval, method. NaN if there is only one class.

    Examples
    --------
    >>> import numpy as np
    >>> area_interval(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))[0]
    0.75
    """
    present = np.unique(codes)
    if len(present) < 2:
        return math.nan, math.nan, math.nan, "DeLong"
    parts = [1] if scores.ndim == 1 else [int(k) for k in present]
    found = [_area(codes == k, scores if scores.ndim == 1 else scores[:, k]) for k in parts]
    area = float(np.mean([one for one, _ in found]))
    error = float(np.linalg.norm(np.mean([part for _, part in found], axis=0)))
    if not 0.0 < area < 1.0 or error == 0.0:
        # complete separation has zero variance even for few rows: use Wilson's interval
        few = int(np.bincount(codes)[present].min())
        low, high = wilson(round(area * few), few, level)
        return area, min(low, area), max(high, area), "Wilson, for the smallest class"
    half = float(norm.ppf(0.5 + level / 2)) * error / (area * (1 - area))
    low, high = expit(logit(area) - half), expit(logit(area) + half)
    return area, float(low), float(high), "DeLong"


def _area(positive: Array, score: Array) -> tuple[float, Array]:
    """Return the area and the contribution of each row to its error."""
    m, n = int(positive.sum()), int((~positive).sum())
    rank = rankdata(score)
    share = np.empty(len(score))  # fraction of the other class on the correct side of a row
    share[positive] = (rank[positive] - rankdata(score[positive])) / n
    share[~positive] = 1.0 - (rank[~positive] - rankdata(score[~positive])) / m
    area = float(share[positive].mean())
    # sums of squares over (m - 1) m: unbiased variances of the two means
    size = np.where(positive, math.sqrt(m * max(m - 1, 1)), math.sqrt(n * max(n - 1, 1)))
    return area, (share - area) / size


def bootstrap(
    rows: Array, figure: Callable[[Array], Array], seed: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return the percentile interval of a statistic that is a function of sums over rows.

    Parameters
    ----------
    rows : (n, s) array
        Contribution of each row to each sum.
    figure : callable
        Maps sums (draws, s) to statistics (draws,).
    seed : int
        Random seed of the draws.
    level : float
        Confidence level.

    Returns
    -------
    tuple of float
        Low and high end.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.arange(100.0)[:, None]
    >>> low, high = bootstrap(values, lambda sums: sums[:, 0] / 100, seed=0)
    >>> 40 < low < 49.5 < high < 60
    True
    """
    n = len(rows)
    draws = int(np.clip(_INTERVALS_WORK / max(n, 1), _FEWEST, _DRAWS))
    rng = np.random.default_rng(seed)
    found = []
    for first in range(0, draws, _BLOCK):
        chosen = rng.integers(n, size=(min(_BLOCK, draws - first), n))
        counts = np.apply_along_axis(np.bincount, 1, chosen, minlength=n)
        with np.errstate(invalid="ignore", divide="ignore"):
            found.append(figure(counts @ rows))
    values = np.concatenate(found)
    values = values[np.isfinite(values)]
    if not len(values):
        return math.nan, math.nan
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


# --- metrics -------------------------------------------------------------------------------------
#
# Metrics of predictions with intervals, and metrics of the best constant prediction.

_BINS = 10
_LEAST_PROBABILITY = 1e-15  # limits the log loss of a row to 34.5


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions for rows with known labels or targets.

    Attributes
    ----------
    truth, predictions : (n,) arrays
        Labels or targets.
    scores : (n,) or (n, classes) array, or None
        Decision values.
    probabilities : (n, classes) array or None
        In the order of the classes.
    """

    truth: Array
    predictions: Array
    scores: Array | None = None
    probabilities: Array | None = None


def codes_of(labels: Array, classes: Sequence[Any]) -> Array:
    """Return the index of each label among the classes; -1 for unknown labels."""
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place.get(label, -1) for label in np.asarray(labels).tolist()], dtype=np.intp)


def classification_metrics(
    answers: Answers, classes: Sequence[Any], shares: Array, seed: int
) -> tuple[Metric, ...]:
    """Return accuracy, balanced accuracy, area under the ROC curve, log loss and Brier score.

    Parameters
    ----------
    answers : Answers
        Predictions of a classifier.
    classes : sequence
        Labels in the order of scores and probabilities.
    shares : (classes,) array
        Fraction of each class among the training rows, for the best constant prediction.
    seed : int
        Random seed of the bootstrap.

    Returns
    -------
    tuple of Metric
        Available metrics, accuracy first.
    """
    truth, said = codes_of(answers.truth, classes), codes_of(answers.predictions, classes)
    n, right = len(truth), truth == said
    often = float((truth == int(shares.argmax())).mean())
    low, high = wilson(float(right.sum()), n)
    found = [Metric("accuracy", float(right.mean()), low, high, "Wilson", baseline=often)]
    found.append(_balanced(truth, right, len(classes), seed))
    scores = answers.scores
    if answers.probabilities is not None and len(classes) > 2:
        scores = answers.probabilities
    known = truth >= 0  # known labels
    if scores is not None and len(np.unique(truth[known])) > 1:
        area, low, high, method = area_interval(truth[known], scores[known])
        name = "area under the ROC curve"
        found.append(Metric(name, area, low, high, method, baseline=0.5))
    if answers.probabilities is not None:
        found += _of_probabilities(truth, answers.probabilities, shares, seed)
    return tuple(found)


def _balanced(truth: Array, right: Array, k: int, seed: int) -> Metric:
    """Return the mean recall over the classes in the data."""
    member = (truth[:, None] == np.arange(k)).astype(np.float64)
    member = member[:, member.any(axis=0)]

    def figure(sums: Array) -> Array:
        k = sums.shape[1] // 2
        return np.asarray(np.nanmean(np.where(sums[:, :k], sums[:, k:] / sums[:, :k], np.nan), 1))

    rows = np.hstack([member, member * right[:, None]])
    value = float(figure(rows.sum(axis=0)[None])[0]) if len(rows) else math.nan
    (low, high), method = bootstrap(rows, figure, seed), "bootstrap"
    if low == high:  # zero variance even for few rows: use Wilson's intervals
        n, found = member.sum(axis=0), (member * right[:, None]).sum(axis=0)
        ends = [wilson(hits, int(of)) for hits, of in zip(found, n, strict=True)]
        low, high = (float(end) for end in np.mean(ends, axis=0).clip([0, value], [value, 1]))
        method = "Wilson, for each class"
    constant = 1.0 / max(member.shape[1], 1)
    return Metric("balanced accuracy", value, low, high, method, baseline=constant)


def _of_probabilities(truth: Array, p: Array, shares: Array, seed: int) -> list[Metric]:
    known = truth >= 0
    truth, p = truth[known], p[known]
    if not len(truth):
        return []
    member = (truth[:, None] == np.arange(p.shape[1])).astype(np.float64)
    sides = 2 if p.shape[1] == 2 else 1  # one column is enough for two classes

    def log_loss(q: Array) -> Array:
        return -np.log(np.maximum(q[np.arange(len(q)), truth], _LEAST_PROBABILITY))

    def brier(q: Array) -> Array:
        return np.asarray(np.square(q - member).sum(axis=1) / sides)

    found = []
    for name, losses in (("log loss", log_loss), ("Brier score", brier)):
        each, constant = losses(p), losses(np.tile(shares, (len(p), 1)))
        low, high = bootstrap(each[:, None] / len(p), lambda sums: sums[:, 0], seed)
        value, plain = float(each.mean()), float(constant.mean())
        found.append(Metric(name, value, low, high, "bootstrap", "lower", plain))
    return found


def regression_metrics(answers: Answers, mean: float, seed: int) -> tuple[Metric, ...]:
    """Return the root mean squared error, the mean absolute error and R^2.

    Parameters
    ----------
    answers : Answers
        Predictions of a regression.
    mean : float
        Mean target of the training rows: the best constant prediction.
    seed : int
        Random seed of the bootstrap.

    Returns
    -------
    tuple of Metric
        Metrics with bootstrap intervals. R^2 is NaN if all targets are equal.
    """
    y = np.asarray(answers.truth, dtype=np.float64)
    e = y - np.asarray(answers.predictions, dtype=np.float64)
    n, centred = len(y), y - y.mean()  # a shift keeps the sums of squares exact
    rows = np.column_stack([np.square(e), np.abs(e), centred, np.square(centred)])

    def rmse(sums: Array) -> Array:
        return np.asarray(np.sqrt(sums[:, 0] / n))

    def mae(sums: Array) -> Array:
        return np.asarray(sums[:, 1] / n)

    def r2(sums: Array) -> Array:
        total = sums[:, 3] - np.square(sums[:, 2]) / n
        return np.asarray(np.where(total > 0, 1.0 - sums[:, 0] / total, np.nan))

    constant = np.column_stack([np.square(y - mean), np.abs(y - mean), rows[:, 2:]])
    found = []
    for name, figure, better in (
        ("root mean squared error", rmse, "lower"),
        ("mean absolute error", mae, "lower"),
        ("R^2", r2, "higher"),
    ):
        with np.errstate(invalid="ignore", divide="ignore"):
            value, plain = (float(figure(part.sum(axis=0)[None])[0]) for part in (rows, constant))
        low, high = bootstrap(rows, figure, seed)
        found.append(Metric(name, value, low, high, "bootstrap", better, plain))
    return tuple(found)


def confusion_of(answers: Answers, classes: Sequence[Any]) -> Array:
    """Count rows by true (down) and predicted class (across)."""
    k = len(classes)
    truth, said = codes_of(answers.truth, classes), codes_of(answers.predictions, classes)
    known = (truth >= 0) & (said >= 0)
    return np.bincount(truth[known] * k + said[known], minlength=k * k).reshape(k, k)


def roc_of(answers: Answers, classes: Sequence[Any]) -> Roc | None:
    """Return the ROC curve of the second of two classes, or None if only one occurs."""
    truth = codes_of(answers.truth, classes)
    if len(classes) != 2 or answers.scores is None or len(np.unique(truth[truth >= 0])) < 2:
        return None
    return roc(truth[truth >= 0], answers.scores[truth >= 0])


def calibration_of(answers: Answers, classes: Sequence[Any]) -> CalibrationTable | None:
    """Compare predicted probabilities with observed fractions in ten bins of equal size.

    Uses the second of two classes, or the predicted class if there are more.
    """
    if answers.probabilities is None or not len(answers.truth):
        return None
    truth = codes_of(answers.truth, classes)
    if len(classes) == 2:
        p, happened = answers.probabilities[:, 1], truth == 1
    else:
        p = answers.probabilities.max(axis=1)
        happened = truth == answers.probabilities.argmax(axis=1)
    order = np.argsort(p, kind="stable")
    bins = [part for part in np.array_split(order, min(_BINS, len(order))) if len(part)]
    predicted = np.array([p[part].mean() for part in bins])
    came = np.array([happened[part].mean() for part in bins])
    count = np.array([len(part) for part in bins])
    ends = np.array([wilson(float(happened[part].sum()), len(part)) for part in bins])
    error = float(np.average(np.abs(predicted - came), weights=count))
    return CalibrationTable(predicted, came, ends[:, 0], ends[:, 1], count, error)


# --- evaluation ----------------------------------------------------------------------------------
#
# Evaluation of a model: metrics with confidence intervals.


@dataclass(frozen=True)
class Metric:
    """A metric with its confidence interval.

    Attributes
    ----------
    name : str
        "accuracy", "balanced accuracy", "area under the ROC curve", "log loss", "Brier score";
        "root mean squared error", "mean absolute error", "R^2".
    value : float
        Value on the evaluated rows.
    low, high : float
        Ends of the interval. NaN if there is none.
    method : str
        Method of the interval: "Wilson", "DeLong" or "bootstrap".
    better : str
        "higher" or "lower".
    baseline : float
        Value for the best constant prediction: the most frequent class with the class fractions
        as probabilities, or the mean. NaN if undefined.
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
        """Whether the whole interval is better than the baseline. None if unknown."""
        if not all(map(math.isfinite, (self.low, self.high, self.baseline))):
            return None
        if self.better == "lower":
            return bool(self.high < self.baseline)
        return bool(self.low > self.baseline)

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g} ({self.low:.4g} to {self.high:.4g}, {self.method})"


@dataclass(frozen=True, eq=False)
class CalibrationTable:
    """Predicted probabilities and observed fractions by bin.

    Attributes
    ----------
    predicted : (bins,) array
        Mean predicted probability of the positive class, or of the predicted class if there are
        more than two.
    observed : (bins,) array
        Observed fraction of that class.
    low, high : (bins,) array
        Wilson's interval of the observed fraction.
    count : (bins,) int array
        Number of rows.
    error : float
        Mean absolute difference weighted by the rows (expected calibration error).
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    count: Array
    error: float


@dataclass(frozen=True)
class Importance:
    """Permutation importance of a column.

    Attributes
    ----------
    column : str
        Column of the table before preprocessing.
    drop : float
        Mean decrease of the score (accuracy or R^2) over the permutations.
    error : float
        Standard error over the permutations.
    """

    column: str
    drop: float
    error: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation of a model.

    Attributes
    ----------
    kind : str
        "held-out" (rows that were not used for preprocessing, kernel selection or fitting), "test
        table" (another table) or "cross-validated" (each row predicted by a fit without it, with
        the selected hyperparameters; slightly optimistic, since the same rows selected them).
    rows : (n,) int array
        Indices of the rows in the table or test table.
    truth, predictions : (n,) arrays
        Labels or targets.
    scores : (n,) or (n, classes) array, or None
        Decision values, for classifiers.
    probabilities : (n, classes) array or None
        Probabilities, if the model has any.
    metrics : tuple of Metric
        Metrics with intervals; the first is the main one.
    level : float
        Confidence level of the intervals: 0.95.
    confusion : (classes, classes) int array or None
        Rows by true (down) and predicted class (across), in the order of `classes`.
    roc : Roc or None
        ROC curve, for two classes.
    calibration : CalibrationTable or None
        Calibration, if there are probabilities.
    residuals : (n,) array or None
        True minus predicted values, for regression.
    importance : tuple of Importance
        Importance by column of the table, largest first. Empty if the time limit expired.
    importance_note : str
        Score and numbers of rows and permutations, or the reason why there is none.
    cross_validated : tuple of float
        Mean cross-validation score of the selected hyperparameters and its standard error. NaN
        without a comparison.
    scoring : str
        Name of that score.
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
        """Return a metric by name."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(f"no metric {name!r}; choose from {[one.name for one in self.metrics]}")

    def __str__(self) -> str:
        head = f"{self.kind}, {len(self.truth)} rows, {100 * self.level:g} % intervals:"
        return "\n".join([head, *(f"  {metric}" for metric in self.metrics)])

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as a dictionary for JSON."""
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


# --- importance ----------------------------------------------------------------------------------
#
# Permutation importance: the decrease of the score if the entries of a column are permuted.
#
# The preprocessing treats columns separately, so permuting the entries of a column is equal to
# permuting the rows of its features.

_ROWS = 1000
_SHUFFLES = 5
_LEAST_ROWS, _LEAST_SHUFFLES = 100, 2
_MOST_COLUMNS = 100  # in wide tables: those most correlated with the target
_AGAIN = 20  # columns that are measured again on more rows, if there are many
# Rows times stored rows times columns over all predictions: about 10 s. A count instead of
# a time makes the result independent of the computer.
_IMPORTANCE_WORK = 4e10
_PREDICTIONS = 300  # each costs at least a few milliseconds


def permutation_importance(
    machine: Any,
    rows: Any,
    blocks: dict[str, list[int]],
    score: Callable[[Any, Any], float],
    truth: Array,
    seed: int,
    tell: Callable[[str, float], Any] | None = None,
) -> tuple[tuple[Importance, ...], str]:
    """Compute the permutation importance of each column of the table.

    Parameters
    ----------
    machine : estimator
        Fitted estimator without preprocessing.
    rows : (n, d) array or CSR matrix
        Preprocessed rows to evaluate.
    blocks : dict of str to list of int
        Feature indices of each column of the table.
    score : callable
        Score of true and predicted values; larger is better.
    truth : (n,) array
        Labels or targets.
    seed : int
        Random seed of subsample and permutations.
    tell : callable, optional
        Called with the current column and the fraction that is done.

    Returns
    -------
    importance : tuple of Importance
        Importance by column, largest first.
    note : str
        Numbers of rows and permutations, or the reason why there is none.
    """
    if not blocks or len(truth) < 2:
        return (), "No column can be permuted."
    rng = np.random.default_rng(seed)
    names = list(blocks)
    few = names[:_MOST_COLUMNS] if len(names) > _MOST_COLUMNS else names
    if len(names) > _MOST_COLUMNS:
        few = _related(rows, blocks, truth)
    shuffling = Shuffling(machine, rows, blocks, score, truth, rng, tell)
    kept, shuffles = _budget(machine, rows, len(few))
    found = shuffling.measure(few, kept, shuffles)
    note = f"{shuffles} permutations of each column on {kept} rows"
    if len(few) < len(names):
        note += f", for the {len(few)} of {len(names)} columns most correlated with the target"
    if kept < min(_ROWS, len(truth)) and len(few) > _AGAIN:
        best = sorted(few, key=lambda name: -found[name].drop)[:_AGAIN]
        kept, shuffles = _budget(machine, rows, _AGAIN)
        found |= shuffling.measure(best, kept, shuffles)  # on other rows, to remove selection bias
        note += f"; for the {_AGAIN} most important, {shuffles} more on {kept} rows"
    return tuple(sorted(found.values(), key=lambda one: -one.drop)), note


@dataclass(frozen=True, eq=False)
class Shuffling:
    """Arguments of `permutation_importance`."""

    machine: Any
    rows: Any
    blocks: dict[str, list[int]]
    score: Callable[[Any, Any], float]
    truth: Array
    rng: np.random.Generator
    tell: Callable[[str, float], Any] | None

    def measure(self, names: list[str], rows: int, shuffles: int) -> dict[str, Importance]:
        """Permute columns on a subsample of rows."""
        some = np.sort(self.rng.permutation(len(self.truth))[:rows])
        Z, y = self.rows[some], self.truth[some]
        full = self.score(y, self.machine.predict(Z))
        found = {}
        for place, name in enumerate(names):
            if self.tell is not None:
                self.tell(f"column {place + 1} of {len(names)}", place / len(names))
            drops = []
            for _ in range(shuffles):
                changed = _shuffled(Z, self.blocks[name], self.rng.permutation(len(y)))
                drops.append(full - self.score(y, self.machine.predict(changed)))
            error = float(np.std(drops, ddof=1) / np.sqrt(shuffles))
            found[name] = Importance(name, float(np.mean(drops)), error)
        return found


def _shuffled(Z: Any, columns: list[int], order: Array) -> Any:
    """Return rows with the entries of some columns permuted."""
    if not is_sparse(Z):
        changed = np.array(Z)
        changed[:, columns] = Z[order][:, columns]
        return changed
    by_column = Z.tocsc(copy=True)
    place = np.argsort(order)  # new position of the entry of each row
    for j in columns:
        stored = slice(by_column.indptr[j], by_column.indptr[j + 1])
        by_column.indices[stored] = place[by_column.indices[stored]]
    by_column.has_sorted_indices = False
    changed = by_column.tocsr()
    changed.sort_indices()
    return changed


def _budget(machine: Any, rows: Any, columns: int) -> tuple[int, int]:
    """Return the numbers of rows and permutations within the budget."""
    stored = getattr(machine, "support_", None)
    count = len(stored) if stored is not None else getattr(machine, "n_samples_", rows.shape[0])
    per_row = float(max(count, 1)) * rows.shape[1]
    most = min(_ROWS, rows.shape[0])
    shuffles = min(_IMPORTANCE_WORK / (per_row * most * columns), _PREDICTIONS / columns)
    shuffles = int(np.clip(shuffles, _LEAST_SHUFFLES, _SHUFFLES))
    kept = int(
        np.clip(_IMPORTANCE_WORK / (per_row * shuffles * columns), min(_LEAST_ROWS, most), most)
    )
    return kept, shuffles


def _related(rows: Any, blocks: dict[str, list[int]], truth: Array) -> list[str]:
    """Return the columns with a feature most correlated with the target."""
    if truth.dtype.kind in "OUSb":
        codes = np.unique(truth, return_inverse=True)[1]
        targets = (codes[:, None] == np.unique(codes)).astype(np.float64)
    else:
        targets = np.asarray(truth, dtype=np.float64)[:, None]
    targets = targets - targets.mean(axis=0)
    cross = np.abs(np.asarray(rows.T @ targets))
    squares = rows.multiply(rows) if is_sparse(rows) else np.square(rows)
    mean = np.asarray(rows.mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(np.asarray(squares.mean(axis=0)).ravel() - mean**2, 1e-300))
    strength = cross.max(axis=1) / spread
    by_name = {name: float(strength[place].max()) for name, place in blocks.items() if len(place)}
    return sorted(by_name, key=lambda name: -by_name[name])[:_MOST_COLUMNS]


# --- evaluating ----------------------------------------------------------------------------------
#
# Evaluates a fitted pipeline on held-out rows or by cross-validation.

_DELTA = 0.05  # probability that a bound fails
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Decider:
    """Converts outputs of a pipeline to scores, probabilities and predictions.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    classes : tuple
        Labels. The second of two is the positive class.
    threshold : float or None
        Smallest decision value of the positive class.
    """

    task: str
    classes: tuple[Any, ...]
    threshold: float | None

    def scores(self, pipeline: Any, rows: Any) -> Array | None:
        """Return decision values; for two classes, those of the positive class."""
        if self.task == "regression" or not hasattr(pipeline, "decision_function"):
            return None
        values = np.asarray(pipeline.decision_function(rows))
        order = self._order(pipeline)
        if values.ndim == 2:
            return values[:, order]
        return values if order[-1] == 1 else -values

    def probabilities(self, pipeline: Any, rows: Any) -> Array | None:
        """Return probabilities in the order of the classes."""
        if self.task == "regression" or not hasattr(pipeline, "predict_proba"):
            return None
        return np.asarray(pipeline.predict_proba(rows))[:, self._order(pipeline)]

    def predictions(self, pipeline: Any, rows: Any, scores: Array | None) -> Array:
        """Return labels or numbers."""
        if self.threshold is None or scores is None:
            return np.asarray(pipeline.predict(rows))
        labels = np.asarray(self.classes)
        return np.asarray(labels[(scores >= self.threshold).astype(int)])

    def answers(self, pipeline: Any, rows: Any, truth: Array) -> Answers:
        """Return predictions, scores and probabilities of rows."""
        scores = self.scores(pipeline, rows)
        said = self.predictions(pipeline, rows, scores)
        probabilities = self.probabilities(pipeline, rows)
        if scores is None and probabilities is not None:  # estimators without decision values
            scores = probabilities[:, 1] if len(self.classes) == 2 else probabilities
        return Answers(truth, said, scores, probabilities)

    def _order(self, pipeline: Any) -> list[int]:
        own = list(np.asarray(pipeline.classes_).tolist())
        return [own.index(label) for label in self.classes if label in own]


def cross_answers(pipeline: Any, table: Any, y: Array, decider: Decider, seed: int) -> Answers:
    """Predict each row by a fit without its fold, including preprocessing."""
    labels = decider.task == "classification"
    most = int(np.unique(y, return_counts=True)[1].min()) if labels else len(y) // 2
    kind = StratifiedKFold if labels else KFold
    folds = kind(max(2, min(_FOLDS, most)), shuffle=True, random_state=seed)
    tests, parts = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small folds can warn
        for train, test in folds.split(np.zeros(len(y)), y):
            fitted = clone(pipeline).fit(table.rows(train), y[train])
            parts.append(decider.answers(fitted, table.rows(test), y[test]))
            tests.append(test)
    order = np.argsort(np.concatenate(tests))
    said = np.concatenate([part.predictions for part in parts])[order]
    scores = _joined([part.scores for part in parts], order)
    return Answers(y, said, scores, _joined([part.probabilities for part in parts], order))


def _joined(parts: list[Any], order: Array) -> Array | None:
    """Combine the values of all folds, or return None if some folds lack classes or values."""
    if any(part is None for part in parts) or len({part.shape[1:] for part in parts}) > 1:
        return None
    return np.asarray(np.concatenate(parts)[order])


def evaluate(
    answers: Answers,
    *,
    kind: str,
    rows: Array,
    decider: Decider,
    train_target: Array,
    choice: Choice | None,
    scoring: Any,
    seed: int,
    importance: tuple[Any, str] = ((), ""),
    constant: tuple[float, ...] | None = None,
) -> Evaluation:
    """Compute all metrics of predictions.

    Parameters
    ----------
    answers : Answers
        True and predicted values.
    kind : str
        Kind of rows; see `Evaluation`.
    rows : int array
        Indices of the rows in the table.
    decider : Decider
        Task and classes.
    train_target : array
        Targets of the training rows, for the best constant prediction.
    choice : Choice or None
        Result of model selection, for the cross-validation score.
    scoring : object
        Score of model selection.
    seed : int
        Random seed of the bootstrap.
    importance : tuple
        Permutation importance and its note.
    constant : tuple of float, optional
        The best constant prediction. Replaces `train_target`.

    Returns
    -------
    Evaluation
        All metrics, curves and intervals.
    """
    classes = decider.classes
    residuals = confusion = curve = calibration = None
    constant = constant_of(train_target, classes) if constant is None else constant
    if decider.task == "classification":
        metrics = classification_metrics(answers, classes, np.array(constant), seed)
        confusion, curve = confusion_of(answers, classes), roc_of(answers, classes)
        calibration = calibration_of(answers, classes)
    else:
        metrics = regression_metrics(answers, constant[0], seed)
        residuals = np.asarray(answers.truth - answers.predictions)
    crossed = (float("nan"), float("nan"))
    if choice is not None:
        tuning = choice.contenders[choice.chosen].tuning
        crossed = (float(tuning.mean[tuning.best]), float(tuning.standard_error[tuning.best]))
    plain = "accuracy" if decider.task == "classification" else "r2"
    return Evaluation(
        kind, rows, answers.truth, answers.predictions, answers.scores, answers.probabilities,
        metrics, LEVEL, confusion, curve, calibration, residuals, *importance,
        crossed, plain if scoring is None else str(scoring),
    )  # fmt: skip


def constant_of(target: Array, classes: tuple[Any, ...]) -> tuple[float, ...]:
    """Return the best constant prediction: class fractions or the mean."""
    if not classes:
        return (float(np.mean(target)),)
    counts = np.bincount(codes_of(target, classes) + 1, minlength=len(classes) + 1)[1:]
    return tuple((counts / max(counts.sum(), 1)).tolist())


def importance_of(
    pipeline: Any, table: Any, truth: Array, decider: Decider, seed: int, tell: Any = None
) -> tuple[Any, str]:
    """Return the permutation importance of the columns of a table."""
    preparation, machine = pipeline[0], pipeline[-1]
    classification = decider.task == "classification"
    score = accuracy_score if classification else r2_score
    rows = preparation.transform(table)
    found, note = permutation_importance(
        machine, rows, prepared_columns(preparation), score, truth, seed, tell
    )
    return found, f"Decrease of {'accuracy' if classification else 'R^2'}: {note}."


def bounds_of(
    machine: Any, rows: Any, y: Array, evaluation: Evaluation, points: int
) -> tuple[Bound, ...]:
    """Return bounds on the error of a classifier.

    Hoeffding's bound on held-out rows and, for two classes, the margin bound on training rows,
    which holds simultaneously for all candidates that were compared.
    """
    if evaluation.confusion is None:
        return ()
    found = []
    if evaluation.kind != "cross-validated":
        wrong, n = float(np.mean(evaluation.truth != evaluation.predictions)), len(evaluation.truth)
        bound = hoeffding(n, _DELTA, wrong)
        statement = (
            f"with probability {1 - _DELTA:g} the true error is at most {bound.value:.4g}; "
            f"the observed error on {n} held-out rows is {wrong:.4g}"
        )
        found.append(replace(bound, statement=statement))
    try:
        bound = machine_bound(machine, rows, y, delta=_DELTA / points)
    except (TypeError, ValueError, AttributeError):  # other estimators, more classes
        return tuple(found)
    fixed = f"the {points} candidates were fixed before the data were observed"
    assumptions = tuple(fixed if "kernel was fixed" in one else one for one in bound.assumptions)
    return (*found, replace(bound, assumptions=assumptions))
