"""Labels, classes, sample and class weights, priors, loss matrices and thresholds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, column_or_1d

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import is_real, refuse
from mercer.rows.chunks import chunked, slices
from mercer.rows.device_rows import CardRows
from mercer.rows.points import is_objects, is_sparse, take

# --- targets -------------------------------------------------------------------------------------
#
# What stands beside the rows of a fit: labels, classes and sample weights.


def refuse_mixed_labels(machine: Any, y: Any) -> None:
    """Raise where NumPy would turn the label 1 into the label "1" because others are strings."""
    if isinstance(y, list | tuple) and len({isinstance(label, str) for label in y}) == 2:
        raise ValueError(
            f"{type(machine).__name__}: y mixes strings with other labels, such as {y[0]!r}; "
            "give all labels as strings, or none"
        )


def refuse_targets(y: Array) -> None:
    """Raise, in scikit-learn's words, where y holds measurements rather than labels."""
    if y.dtype.kind not in "biuUS":  # these are labels always, and the look costs more than a fit
        check_classification_targets(y)


def check_class_weight(machine: Any) -> None:
    """Require None, "balanced", or a dictionary of positive numbers."""
    given = machine.class_weight
    if given is None or (isinstance(given, str) and given == "balanced"):
        return
    if isinstance(given, Mapping):
        if all(is_real(w) and 0 < w < np.inf for w in given.values()):
            return
        refuse(machine, "class_weight", given, "be positive and finite for every label")
    refuse(machine, "class_weight", given, "be None, 'balanced', or a dictionary by label")


def class_weights(machine: Any, given: Any, classes: Array, totals: Array) -> Array | None:
    """Return the weight of each class from the total sample weight of each; None for all alike."""
    if given is None:
        return None
    if isinstance(given, str):  # "balanced": every class has the same total
        return np.asarray(totals.sum() / (len(classes) * totals))
    weights = np.array([float(given.get(label, 1.0)) for label in classes.tolist()])
    known = {label for label in classes.tolist() if label in given}
    unknown = [label for label in given if label not in known]
    if unknown and len(known) < len(classes):  # a misspelt label, not one absent from this sample
        raise ValueError(
            f"{type(machine).__name__}: class_weight has the label {unknown[0]!r}, but the classes "
            f"of y are {', '.join(map(repr, classes.tolist()))}"
        )
    return weights


def classes_of(machine: Any, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return the labels of rows that count, and the number of the class of each row.

    Rows of weight zero may carry a label that no other row has; their number means nothing.
    """
    some = weights.all()
    classes, codes = np.unique(y if some else y[weights > 0], return_inverse=True)
    if len(classes) < 2:
        reason = " once rows of weight zero are left out" if len(np.unique(y)) > 1 else ""
        only = classes.tolist()[0]
        raise ValueError(
            f"{type(machine).__name__} needs two classes, but y has only one class, {only!r}"
            f"{reason}"
        )
    if some:
        return classes, codes
    every = np.zeros(len(y), dtype=codes.dtype)
    every[weights > 0] = codes
    return classes, every


def codes_of(machine: Any, y: Array, n: int) -> Array:
    """Return the class numbers of labels that come after the fit."""
    if y.shape != (n,):
        raise ValueError(
            f"{type(machine).__name__}: y must hold one label for each of the {n} rows of X, "
            f"not shape {y.shape}"
        )
    classes = machine.classes_
    codes = np.searchsorted(classes, y)
    wrong = np.flatnonzero(classes[np.minimum(codes, len(classes) - 1)] != y)
    if len(wrong):
        raise ValueError(
            f"{type(machine).__name__}: {y.tolist()[wrong[0]]!r} in row {wrong[0]} of y is none "
            "of the classes of the fit"
        )
    return codes


# --- labels of a batch: the classes are known from the first call on -----------------------------


def labels_of(machine: Any, y: Any, n: int) -> Array:
    """Return labels for n rows as an array; refuse measurements."""
    refuse_mixed_labels(machine, y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y", estimator_name=type(machine).__name__)
    refuse_targets(y)
    check_consistent_length(y, np.broadcast_to(0, (n,)))
    return np.asarray(y)


def classes_for(machine: Any, classes: Any, first: bool) -> Array:
    """Return the classes of a stream: named at the first call, the same ones later."""
    name = type(machine).__name__
    if classes is None:
        if first:
            raise ValueError(
                f"{name}: classes must be passed on the first call to partial_fit: a batch need "
                "not hold all of them"
            )
        return np.asarray(machine.classes_)
    refuse_mixed_labels(machine, classes)
    named = np.unique(column_or_1d(classes))
    if not first and not np.array_equal(named, machine.classes_):
        raise ValueError(
            f"{name}: classes={named.tolist()} are not those of the first call, "
            f"{machine.classes_.tolist()}"
        )
    if len(named) < 2:
        raise ValueError(f"{name} needs two classes, but classes has only one class")
    return named


def batch_codes(machine: Any, y: Array, weights: Array) -> Array:
    """Return the number of each label among the classes; rows of weight zero may have any."""
    codes = np.zeros(len(y), dtype=np.intp)
    kept = np.flatnonzero(weights)
    codes[kept] = codes_of(machine, y[kept], len(kept))
    return codes


# --- sample weights mean repetition: a row of weight 2 is that row twice, of weight 0 not there --


def check_weights(machine: Any, sample_weight: Any, n: int) -> Array:
    """Return float64 weights for n rows; ones when none are given."""
    if sample_weight is None:
        return np.ones(n)
    name = type(machine).__name__
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: sample_weight must hold numbers only: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"{name}: sample_weight must be 1D array or scalar, got {weights.ndim}D")
    if len(weights) != n:
        raise ValueError(f"{name}: sample_weight has {len(weights)} entries, but X has {n} rows")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"{name}: sample_weight must be finite and nonnegative; entry {bad[0]} is "
            f"{weights[bad[0]]}"
        )
    if not weights.any():
        raise ValueError(f"{name}: all entries of sample_weight are zero: no rows to learn from")
    return weights


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows of equal points and labels taken together, those of one label side by side.

    Attributes
    ----------
    first : (m,) int array
        One row number for each distinct row, in an order that does not depend on row order.
    weight : (m,) array
        Total weight of each distinct row.
    group : (n,) int array
        For each row, which distinct row it is; -1 for rows of weight zero.
    merged : bool
        Whether equal rows were looked for, so that there are none.
    """

    first: Array
    weight: Array
    group: Array
    merged: bool = True

    def total(self, values: Array) -> Array:
        """Add up values of rows over their copies; the order of rows changes no bit of it."""
        kept = np.flatnonzero(self.group >= 0)
        if len(kept) == len(self.first):
            return np.asarray(values[self.first])
        order = kept[np.lexsort((values[kept], self.group[kept]))]
        return np.bincount(self.group[order], values[order], minlength=len(self.first))

    def spread(self, coef: Array, weights: Array) -> Array:
        """Divide coefficients of distinct rows, (m,) or (m, k), among their copies, by weight."""
        kept = np.flatnonzero(self.group >= 0)
        if len(kept) == len(self.first) == len(weights):  # no copies, and none of weight zero
            return np.take(coef, self.group, axis=0).astype(np.float64, copy=False)
        group = self.group[kept]
        full = np.zeros((len(weights), *coef.shape[1:]))
        if len(kept) == len(self.first):
            full[kept] = coef[group]
            return full
        shares = weights[kept] / self.total(weights)[group]
        full[kept] = coef[group] * (shares if coef.ndim == 1 else shares[:, None])
        return full

    def reordered(self, order: Array) -> DistinctRows:
        """Return the same rows in another order."""
        place = np.empty(len(order) + 1, dtype=np.intp)
        place[order] = np.arange(len(order))
        place[-1] = -1  # so that rows of weight zero stay what they are
        return DistinctRows(self.first[order], self.weight[order], place[self.group], self.merged)


def distinct_rows(X: Points, labels: Array, weights: Array) -> DistinctRows:
    """Merge equal rows with equal labels, adding up their weights.

    A fit to merged rows cannot tell repetition from weight, nor one row order from another: the
    promise holds to the last bit, not only to the solver's tolerance.
    """
    kept = np.flatnonzero(weights > 0)
    if isinstance(X, CardRows) and len(kept) == len(weights) and labels.dtype.kind in "iubf":
        # sorted there: the host takes 0.1 s for 1e6
        found = X.order_along(_direction(X.shape[1]), labels)
        if found is not None:
            group = np.empty(len(weights), dtype=np.intp)
            group[found] = np.arange(len(found))
            return DistinctRows(found, weights[found], group)
    key, number = _projection(X), np.zeros(len(weights), dtype=np.intp)
    order = kept[_sorted_by(key[kept], labels[kept])]
    alike = _repeats(key[order]) & _repeats(labels[order])
    if alike.any():  # equal, or projected to one point by chance: only these are looked at closely
        close = order[np.append(alike, False) | np.append(False, alike)]
        number[close] = _targets_numbers(take(X, close))
        order = kept[np.lexsort((number[kept], key[kept], labels[kept]))]
        alike &= _repeats(number[order])
    starts = np.append(True, ~alike)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = np.cumsum(starts) - 1
    merged = DistinctRows(order[starts], np.empty(0), group)
    return DistinctRows(merged.first, merged.total(weights), group)


def _sorted_by(key: Array, labels: Array) -> Array:
    """Sort by label, then by key; equal ones in any order."""
    order = np.argsort(key)  # of one key: several times as fast as of two
    if _is_one(labels):
        return order
    if labels.dtype.kind in "iu" and 0 <= labels.min(initial=0) and labels.max(initial=0) < _FEW:
        labels = labels.astype(np.uint16)  # sorted in two passes over them
    return np.asarray(order[np.argsort(labels[order], kind="stable")])


def _is_one(labels: Array) -> bool:
    return len(labels) > 0 and bool((labels == labels[0]).all())


def rows_as_they_are(labels: Array, weights: Array) -> DistinctRows:
    """Sort rows by label and drop those of weight zero, without comparing them: given matrices."""
    kept = np.flatnonzero(weights > 0)
    first = kept[np.argsort(labels[kept], kind="stable")]
    group = np.full(len(weights), -1, dtype=np.intp)
    group[first] = np.arange(len(first))
    return DistinctRows(first, weights[first], group, merged=False)


def _repeats(values: Array) -> Array:
    """Return which values equal the one before: (n - 1,)."""
    return np.asarray(values[1:] == values[:-1])


def _targets_numbers(X: Points) -> Array:
    """Return every row a number, equal rows the same, whatever their order."""
    rows = _hashable(X)
    known = sorted(set(rows), key=repr if is_objects(X) else None)
    number = {row: i for i, row in enumerate(known)}
    return np.array([number[row] for row in rows], dtype=np.intp)


def _hashable(X: Points) -> list[Any]:
    if is_objects(X):
        return list(X)
    if is_sparse(X):  # canonical: sorted, nothing twice, no zeros
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends]
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 + 0.0 is 0.0
    as_bytes: list[Any] = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).tolist()
    return [row for (row,) in as_bytes]


def _projection(X: Points) -> Array:
    """Return a sorting key that dense and CSR rows share, so that both are solved in one order."""
    if is_objects(X):
        return np.zeros(len(X))
    direction = _direction(X.shape[1])
    if is_sparse(X):
        return np.asarray(np.nan_to_num(X @ direction))
    if isinstance(X, CardRows):
        return np.asarray(np.nan_to_num(X.projected(direction)))
    key, height = np.empty(len(X)), max(1, _CACHED // max(1, X.shape[1]))

    def chunk(rows: slice) -> None:
        for part in slices(rows.start, rows.stop, height):
            # row by row: a product may round equal rows apart
            key[part] = (X[part] * direction).sum(axis=1)

    with np.errstate(over="ignore", invalid="ignore"):
        chunked(chunk, len(X))
    return np.nan_to_num(key)


_FEW = 1 << 16  # numbers of classes that 16 bits hold
_CACHED = 1 << 16  # entries of a block: half a megabyte, which stays near the processor


@lru_cache(maxsize=8)
def _direction(d: int) -> Array:
    return np.random.default_rng(0).standard_normal(d)


# --- decision ------------------------------------------------------------------------------------
#
# From posterior probabilities to decisions: priors, loss matrices, thresholds.

_SUM = 1e-6  # how far given probabilities may be from adding up to one: they were typed by hand


def check_prior(machine: Any) -> None:
    """Require None, "uniform", or nonnegative numbers that add up to one."""
    given = machine.prior
    if given is None or (isinstance(given, str) and given == "uniform"):
        return
    must = "be None, 'uniform', or nonnegative numbers that add up to one, one per class"
    values = _decision_numbers(given)
    if values is None or values.ndim != 1 or not np.isfinite(values).all():
        refuse(machine, "prior", given, must)
    elif (values < 0).any() or abs(values.sum() - 1.0) > _SUM:
        refuse(machine, "prior", given, must)


def prior_of(machine: Any, totals: Array) -> Array:
    """Return the probability of each class: as asked for, else its share of the weight."""
    k = len(totals)
    if machine.prior is None:
        return np.asarray(totals / totals.sum())
    if isinstance(machine.prior, str):
        return np.full(k, 1.0 / k)
    given = np.asarray(machine.prior, dtype=np.float64)
    if len(given) != k:
        refuse(machine, "prior", machine.prior, f"hold {k} numbers, one per class")
    return np.asarray(given / given.sum())


def check_loss(machine: Any) -> None:
    """Require None or a matrix of finite numbers."""
    given = machine.loss
    if given is None:
        return
    values = _decision_numbers(given)
    if values is None or values.ndim != 2 or not np.isfinite(values).all():
        refuse(machine, "loss", given, "be None or a matrix of finite numbers")


def loss_of(machine: Any, k: int) -> Array | None:
    """Return the loss matrix for k classes, entry (i, j) the cost of deciding i when j is true."""
    if machine.loss is None:
        return None
    loss = np.asarray(machine.loss, dtype=np.float64)
    if loss.shape != (k, k):
        must = f"have shape ({k}, {k}): the cost of deciding i (row) when j (column) is true"
        refuse(machine, "loss", loss, must)
    return loss


def check_threshold(machine: Any) -> None:
    """Require a number, possibly infinite, and none beside a loss."""
    value = machine.threshold
    if not is_real(value) or math.isnan(value):
        refuse(machine, "threshold", value, "be a number (infinity is one)")
    if value and machine.loss is not None:
        must = "be 0 beside a loss matrix, which means a threshold of its own"
        refuse(machine, "threshold", value, must)


def rule_of(machine: Any, k: int) -> tuple[Array | None, float]:
    """Return the loss matrix and the threshold for k classes, as the parameters say now."""
    check_loss(machine)
    loss = loss_of(machine, k)
    if not hasattr(machine, "threshold"):
        return loss, 0.0
    check_threshold(machine)
    if k > 2 and machine.threshold:
        must = f"be 0 for {k} classes; a loss matrix serves"
        refuse(machine, "threshold", machine.threshold, must)
    return loss, float(machine.threshold)


def normalised(scores: Array) -> Array:
    """Return log-probabilities from log-scores (n, k), all of them finite."""
    highest = scores.max(axis=1, keepdims=True)
    total = np.exp(scores - highest).sum(axis=1, keepdims=True)
    return np.asarray(scores - (highest + np.log(total)))


def probabilities(scores: Array) -> Array:
    """Return probabilities from log-scores; rows add up to one to rounding."""
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def margins(scores: Array, loss: Array | None, threshold: float = 0.0) -> Array:
    """Return what decisions compare: (n,) for two classes, positive for the second; else (n, k).

    Without a loss these are log-odds less the threshold, or log-probabilities. With one they are
    how much less the second decision risks, or the risks with their sign turned.
    """
    k = scores.shape[1]
    if k == 2 and loss is None:
        odds = scores[:, 1] - scores[:, 0]
        return np.asarray(odds - threshold if math.isfinite(threshold) else 0 * odds - threshold)
    if loss is None:
        return normalised(scores)
    if k == 2:
        return _two_class_margins(scores[:, 1] - scores[:, 0], loss)
    return np.asarray(-expected_risks(probabilities(scores), loss))


def _two_class_margins(odds: Array, loss: Array) -> Array:
    """Return log-odds less the threshold that a loss means, where it means one."""
    cost_of_second, cost_of_first = loss[1, 0] - loss[0, 0], loss[0, 1] - loss[1, 1]
    if cost_of_second > 0 and cost_of_first > 0:
        return np.asarray(odds - math.log(cost_of_second) + math.log(cost_of_first))
    share = np.exp(-np.logaddexp(0.0, -odds))  # a right decision that costs more than a wrong one
    return np.asarray(share * cost_of_first - (1.0 - share) * cost_of_second)


def expected_risks(posterior: Array, loss: Array) -> Array:
    """Return R(i | x) = sum_j loss(i, j) P(j | x): (n, decisions)."""
    return np.asarray(posterior @ loss.T)


def decisions(scores: Array, loss: Array | None, threshold: float = 0.0) -> Array:
    """Return the number of the class decided for; the first one where there is a tie."""
    if loss is None and scores.shape[1] > 2:  # what margins take off is common to all classes
        return np.asarray(np.argmax(scores, axis=1))
    margin = margins(scores, loss, threshold)
    chosen = (margin > 0).astype(np.intp) if margin.ndim == 1 else np.argmax(margin, axis=1)
    return np.asarray(chosen)


class PosteriorDecisions:
    """Predictions of a classifier from the logarithms of p(x, class) that `_scores` returns."""

    classes_: Array

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Return the logarithm of p(x, class), up to a constant of each row."""

    def predict(self, X: Any) -> Array:
        """Label new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples,)
            Labels; the first of the classes where there is a tie.
        """
        found = self._scores(X)
        chosen = decisions(found, *rule_of(self, len(self.classes_)))
        return np.asarray(self.classes_[chosen])

    def decision_function(self, X: Any) -> Array:
        """Return what the decision compares.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes log-odds of the second, less the threshold if there is one; for more,
            log-probabilities. With a loss matrix, less the threshold it means, or expected costs
            with their sign turned.
        """
        found = self._scores(X)
        return margins(found, *rule_of(self, len(self.classes_)))

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Rows add up to one.
        """
        return probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the posterior probabilities, all finite.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, of any kind that `fit` takes.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Log-probabilities.
        """
        return normalised(self._scores(X))


def _decision_numbers(given: Any) -> Array | None:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
