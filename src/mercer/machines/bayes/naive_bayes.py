"""Estimator `NaiveBayes`, and its most informative features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.machines.base.machine import Machine, all_or_nothing, offered_if
from mercer.machines.base.parameters import check_real, refuse
from mercer.machines.base.targets import (
    PosteriorDecisions,
    batch_codes,
    check_loss,
    check_prior,
    check_threshold,
    check_weights,
    classes_for,
    classes_of,
    labels_of,
    prior_of,
    rule_of,
)
from mercer.machines.bayes.columns import AttributeTable, check_kinds, kinds_of, read_table
from mercer.machines.bayes.counts import (
    FAR,
    LARGEST,
    ClassCounts,
    Layout,
    SolvedLater,
    best_alpha,
    candidates_of,
    check_range,
    check_smoothing,
    coded,
    count,
    is_smoothing,
    scores,
)
from mercer.machines.bayes.problem import ClassModel

# --- informative values --------------------------------------------------------------------------
#
# Which attributes tell a class from the others, and how much.


class Telling(NamedTuple):
    """An attribute that speaks for a class.

    Attributes
    ----------
    attribute : object
        Name or number of the column.
    value : object
        The value that speaks; for counts 1, for Gaussian columns the mean of the class.
    label : object
        The class it speaks for.
    log_ratio : float
        log P(value | class) - log P(value | other classes); for Gaussian columns, of densities.
    """

    attribute: Any
    value: Any
    label: Any
    log_ratio: float


def most_telling(
    layout: Layout, held: ClassCounts, model: ClassModel, names: Any, labels: dict[Any, int], n: int
) -> list[Telling]:
    """Return the n largest log-ratios for some labels, whose numbers are given, largest first."""
    parts = list(_parts(layout, held, model))
    found: list[Telling] = []
    for label, c in labels.items():
        other = np.array([i for i in range(len(model.prior)) if i != c])
        ratios = np.concatenate([_ratio(logs, model.prior, c, other) for logs, _, _ in parts])
        ratios = np.append(ratios, _bell_ratio(model, c, other))
        ends = np.cumsum([logs.shape[1] for logs, _, _ in parts])
        for i in np.argsort(-ratios, kind="stable")[:n]:
            column, value = _named(i, ends, parts, layout, model, c)
            name = int(column) if names is None else names[column]
            found.append(Telling(name, value, label, float(ratios[i])))
    return sorted(found, key=lambda one: -one.log_ratio)[:n]


def _parts(
    layout: Layout, held: ClassCounts, model: ClassModel
) -> Iterator[tuple[Array, Array, list[Any]]]:
    """Return log-probabilities (k, m), with the column and the value of each."""
    columns, values, places, start = [], [], [], 0
    for j, listed in zip(layout.categorical, held.values, strict=True):
        columns += [j] * len(listed)
        values += list(listed.listed)
        places += list(range(start, start + len(listed)))
        start += len(listed) + 1
    yield model.tables[:, places], np.array(columns, dtype=np.intp), values
    yield model.ones, layout.binary, [1] * len(layout.binary)
    yield model.zeros, layout.binary, [0] * len(layout.binary)
    used = np.flatnonzero(held.counts.any(axis=0))
    yield model.words[:, used], layout.count[used], [1] * len(used)


def _ratio(logs: Array, prior: Array, c: int, other: Array) -> Array:
    share = prior[other] - logsumexp(prior[other])
    return np.asarray(logs[c] - logsumexp(logs[other] + share[:, None], axis=0))


def _bell_ratio(model: ClassModel, c: int, other: Array) -> Array:
    """Compare densities at the mean of the class."""
    with np.errstate(over="ignore"):
        z = (model.mean[c] - model.mean) / np.sqrt(model.variance)
    logs = -0.5 * (np.clip(z, -FAR, FAR) ** 2 + np.log(model.variance))
    return _ratio(logs, model.prior, c, other)


def _named(
    i: int, ends: Array, parts: list[Any], layout: Layout, model: ClassModel, c: int
) -> tuple[int, Any]:
    part = int(np.searchsorted(ends, i, side="right"))
    if part == len(parts):
        place = i - int(ends[-1])
        return int(layout.gaussian[place]), float(model.mean[c, place])
    place = i - (int(ends[part - 1]) if part else 0)
    return int(parts[part][1][place]), parts[part][2][place]


# --- naive bayes ---------------------------------------------------------------------------------
#
# Naive Bayes on mixed tables: counts, categories, zeros and ones, and measurements.


def _streams(machine: Any) -> bool:
    if isinstance(machine.alpha, str):
        raise AttributeError("alpha='cv' needs all rows at once: call fit, or give a number")
    return True


class NaiveBayes(PosteriorDecisions, SolvedLater, ClassifierMixin, Machine, BaseEstimator):
    """Naive Bayes classifier of tables: categories, counts and measurements, with missing values.

    The score of class c is S_c = log P(c) + sum_j log P(x_j | c). A categorical attribute with V_j
    values has P(x_j = v | c) = (alpha + weight of v in c) / (alpha V_j + weight of c); a value
    never seen counts as one of weight zero. 0/1 attributes are categorical with two values; all
    columns of counts together are one multinomial, its V the number of columns that ever were
    above zero (the others have no effect); Gaussian columns have the mean and variance of the
    class. Missing entries (NaN, None) are left out of the counts and of the sum.

    Parameters
    ----------
    alpha : float or "cv", default=1.0
        Count added to each value; "cv" picks the member of `alphas` with the smallest
        cross-validated log-loss. With 0, a probability of zero counts as 1e-300.
    alphas : array-like or None, default=None
        Candidates for "cv"; None takes eleven from 0.001 to 100.
    kinds : str, sequence, mapping or None, default=None
        "categorical", "binary", "count" or "gaussian": one for all columns, one for each, or for
        those named. Others are inferred: text, objects and declared categories are categorical;
        columns of only 0 and 1 binary; integers of at most 20 different values categorical; sparse
        matrices without negative entries counts; other numbers Gaussian.
    threshold : float, default=0.0
        Of two classes the second is predicted if its score is larger by more than this. It may be
        changed after the fit, as may `loss`; only one of the two can be given.
    loss : matrix of shape (n_classes, n_classes) or None, default=None
        Entry (i, j) is the cost of predicting class i when j is true; the prediction has the least
        expected cost.
    prior : "uniform", array of shape (n_classes,) or None, default=None
        Probabilities of the classes; None takes their shares in the data.
    var_smoothing : float, default=1e-9
        The smallest variance in a class, as a fraction of the variance of the column.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    kinds_ : array of shape (n_features,)
        The kind of each column.
    class_count_ : array of shape (n_classes,)
        Total weight of each class.
    prior_ : array of shape (n_classes,)
        Probabilities of the classes.
    alpha_ : float
        The smoothing used.
    alphas_, cv_losses_ : arrays of shape (n_alphas,)
        With alpha="cv": the candidates and their losses.
    categories_ : list
        The values of each categorical column, None for others.
    solution_ : Solution
        Its `value` holds the log-probabilities, means and variances.
    certificate_ : Certificate
        Whether these probabilities are the most likely ones for the counts.

    Examples
    --------
    >>> from mercer import NaiveBayes
    >>> mail = [["yes", 3, 0.9], ["yes", 5, 0.7], ["no", 0, 0.1], ["no", 1, None]]
    >>> machine = NaiveBayes(kinds={1: "gaussian"}).fit(mail, ["spam", "spam", "ham", "ham"])
    >>> machine.kinds_.tolist()
    ['categorical', 'gaussian', 'gaussian']
    >>> machine.predict([["yes", 4, None], ["never seen", 0, 0.1]]).tolist()
    ['spam', 'ham']
    """

    def __init__(
        self,
        alpha: float | str = 1.0,
        *,
        alphas: npt.ArrayLike | None = None,
        kinds: str | Sequence[str] | Mapping[Any, str] | None = None,
        threshold: float = 0.0,
        loss: npt.ArrayLike | None = None,
        prior: npt.ArrayLike | str | None = None,
        var_smoothing: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.alphas: Any = alphas
        self.kinds: Any = kinds
        self.threshold = threshold
        self.loss: Any = loss
        self.prior: Any = prior
        self.var_smoothing = var_smoothing

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Count.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; NaN or None where an entry is missing.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        table = read_table(self, X, True, y)
        y = labels_of(self, y, table.shape[0])
        weights = check_weights(self, sample_weight, len(y))
        self.classes_, codes = classes_of(self, y, weights)
        table, codes, weights = _present(table, codes, weights)
        self._begin(table)
        held = count(self, self._layout, table, codes, weights, len(self.classes_))
        for name in ("alphas_", "cv_losses_"):
            self.__dict__.pop(name, None)
        if isinstance(self.alpha, str):
            self.alphas_ = candidates_of(self).copy()
            found = best_alpha(self, self._layout, table, codes, weights, held)
            self.alpha_, self.cv_losses_ = found
        else:
            self.alpha_ = float(self.alpha)
        self._keep(held)
        return self

    @offered_if(_streams)
    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Count more rows: many batches give what one `fit` to all of them gives.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Rows; new values of categorical columns may appear. Kinds are those of the first call.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), optional
            All labels there will be; needed at the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        self
            The estimator.
        """
        self._check_parameters()
        first = "_held" not in self.__dict__
        table = read_table(self, X, first, y)
        y = labels_of(self, y, table.shape[0])
        weights = check_weights(self, sample_weight, len(y))
        self.classes_ = classes_for(self, classes, first)
        table, codes, weights = _present(table, batch_codes(self, y, weights), weights)
        if first:
            self._begin(table)
        batch = count(self, self._layout, table, codes, weights, len(self.classes_))
        self.alpha_ = float(self.alpha)
        self._keep(batch if first else self._held.merged(batch))
        return self

    def _begin(self, table: AttributeTable) -> None:
        """Determine the kinds of the columns."""
        self.kinds_ = kinds_of(self, table)
        self._layout = Layout(self.kinds_)

    def _keep(self, held: ClassCounts) -> None:
        k = len(self.classes_)
        rule_of(self, k)
        check_range(self, self._layout, held)
        self._held = held
        self.class_count_ = held.weight
        self.prior_ = prior_of(self, held.weight)
        self._ask(held.problem(self.alpha_, self.var_smoothing, self.prior_))

    @property
    def categories_(self) -> list[Any]:
        """The values of each categorical column; None for other columns."""
        check_is_fitted(self, "_held")
        found: list[Any] = [None] * len(self.kinds_)
        for j, values in zip(self._layout.categorical, self._held.values, strict=True):
            found[j] = list(values.listed)
        return found

    def telling(self, n: int = 10, label: Any = None) -> list[Telling]:
        """List the values of attributes that speak most for a class.

        Parameters
        ----------
        n : int, default=10
            Number of values.
        label : object, optional
            The class they speak for; None takes the best of all classes.

        Returns
        -------
        list of Telling
            Attribute, value, label and log P(value | label) - log P(value | not label), largest
            first.
        """
        check_is_fitted(self, "_held")
        model, names = self.solution_.value, getattr(self, "feature_names_in_", None)
        labels = {one: c for c, one in enumerate(self.classes_.tolist())}
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"NaiveBayes: n={n!r} must be a positive integer")
        if label is not None:
            if label not in list(labels):
                raise ValueError(f"NaiveBayes: label={label!r} is none of {list(labels)}")
            labels = {label: labels[label]}
        return most_telling(self._layout, self._held, model, names, labels, n)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self, "_held")
        table = read_table(self, X, False)
        rows = coded(self, self._layout, table, self._held)
        return scores(self, rows, self.solution_.value, self.prior_)

    def _check_parameters(self) -> None:
        if isinstance(self.alpha, str):
            if self.alpha != "cv":
                refuse(self, "alpha", self.alpha, "be a number of at least 0, or 'cv'")
        else:
            check_smoothing(self)
        if self.alphas is not None:
            given = np.asarray(self.alphas, dtype=object)
            if given.ndim != 1 or not len(given) or not all(map(is_smoothing, given)):
                must = f"be a list of numbers from 0 to {LARGEST:g}"
                refuse(self, "alphas", self.alphas, must)
        check_kinds(self)
        check_threshold(self)
        check_loss(self)
        check_prior(self)
        check_real(self, "var_smoothing", least=0.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        counts = isinstance(self.kinds, str) and self.kinds == "count"
        tags.input_tags.positive_only = counts
        tags.classifier_tags.poor_score = counts
        return tags


def _present(
    table: AttributeTable, codes: Array, weights: Array
) -> tuple[AttributeTable, Array, Array]:
    """Leave out rows of weight zero."""
    if weights.all():
        return table, codes, weights
    kept = np.flatnonzero(weights)
    return table.rows(kept), codes[kept], weights[kept]
