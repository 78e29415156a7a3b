"""Recursive feature elimination by margin loss: a selector for pipelines, and the path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer import deadline
from mercer.array_types import Array
from mercer.kernels import Kernel, Linear
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.machines.base.machine import Machine, all_or_nothing, is_precomputed, kernel_of
from mercer.machines.base.parameters import (
    ParameterError,
    check_choice,
    check_count,
    check_optional_count,
    check_optional_positive,
    is_real,
    refuse,
)
from mercer.machines.svm.svc import SVC
from mercer.resources import require_memory
from mercer.selection.folds import folds_of
from mercer.solvers.base import Solution
from mercer.solvers.certificate import Certificate

# --- selector ------------------------------------------------------------------------------------
#
# A selector of features for pipelines, with the number of features chosen by cross-validation.

_SLACK = {"one_standard_error": 1.0, "best": 0.0}  # standard errors below the best score


class FeatureElimination(SelectorMixin, MetaEstimatorMixin, Machine, BaseEstimator):
    """Recursive feature elimination by the margin, for any kernel.

    After each fit, the feature whose removal changes |w|^2 = a'Ka least for fixed coefficients a is
    removed. For the linear kernel, this is the feature with the smallest weight. The number of
    features is chosen by cross-validation with a separate elimination in each fold, so held-out
    samples do not affect the elimination. The search is greedy and need not find the best subset.

    Parameters
    ----------
    machine : SVC, SVR, KernelRidge or None, default=None
        Estimator with a kernel. If None, `SVC()`.
    n_features_to_select : int or None, default=None
        Number of features to keep. If None, chosen by cross-validation.
    step : int or float, default=1
        Number of features to remove per step, or the fraction of the remaining features.
    min_features_to_select : int, default=1
        Smallest number of features for cross-validation.
    cv : int, splitter, iterable or None, default=None
        Folds. If an integer, the folds are shuffled and stratified. If None, 5.
    rule : {"one_standard_error", "best"}, default="one_standard_error"
        Selects the fewest features whose mean score is within one standard error of the best, or
        the best score (the fewest features if tied).
    scoring : str, callable or None, default=None
        Score of the folds. If None, the `score` of the estimator.
    random_state : int, RandomState or None, default=0
        Random seed of the folds.
    time_limit : float or None, default=None
        Time limit in seconds. The fit raises `TimeLimitError` if it expires.

    Attributes
    ----------
    support_ : bool array of shape (n_features,)
        Mask of the selected features.
    ranking_ : int array of shape (n_features,)
        1 for selected features; larger for features removed earlier.
    n_features_ : int
        Number of selected features.
    path_ : EliminationPath
        Elimination on all samples.
    sizes_ : int array
        Numbers of features that were compared by cross-validation.
    scores_ : array of shape (n_sizes, n_folds)
        Scores of the folds for each.
    machine_ : object
        Estimator fitted to the selected features.
    solution_, certificate_
        Solution and certificate of this fit. They do not certify that the features are the best
        subset.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import FeatureElimination
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> y = np.where(X[:, 1] ** 2 + X[:, 3] ** 2 > 1.5, "out", "in")
    >>> selector = FeatureElimination(SVC("gaussian(3)", C=10)).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [1, 3]
    >>> selector.transform(X).shape
    (100, 2)
    """

    def __init__(
        self,
        machine: Any = None,
        *,
        n_features_to_select: int | None = None,
        step: int | float = 1,
        min_features_to_select: int = 1,
        cv: Any = None,
        rule: str = "one_standard_error",
        scoring: Any = None,
        random_state: Any = 0,
        time_limit: float | None = None,
    ) -> None:
        self.machine = machine
        self.n_features_to_select = n_features_to_select
        self.step = step
        self.min_features_to_select = min_features_to_select
        self.cv = cv
        self.rule = rule
        self.scoring = scoring
        self.random_state = random_state
        self.time_limit = time_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose features for rows and labels or targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.

        Returns
        -------
        self
            The fitted selector.
        """
        self._check_parameters()
        rows, y = read_rows(self, X, y, accept_sparse=False)
        refuse_nonfinite(self, rows)
        rows = np.asarray(rows, dtype=np.float64)
        count = self._count(rows, y)
        machine = self._machine()
        path = eliminate_features(machine, rows, y, n_features=count, step=self.step)
        self.path_: EliminationPath = path
        self.ranking_ = path.ranking
        self.support_ = path.ranking == 1
        self.n_features_ = int(self.support_.sum())
        self.machine_ = clone(machine).fit(rows[:, self.support_], y)
        return self

    def predict(self, X: Any) -> Array:
        """Predict by the machine on the features that were kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows, with all features.

        Returns
        -------
        array of shape (n_samples,)
            Labels or targets.
        """
        rows = self.transform(X)  # which refuses a selector that is not fitted
        return np.asarray(self.machine_.predict(rows))

    @property
    def solution_(self) -> Solution:
        """Solution of the last fit."""
        check_is_fitted(self)
        found: Solution = self.machine_.solution_
        return found

    @property
    def certificate_(self) -> Certificate:
        """Certificate of the estimator on the selected features."""
        check_is_fitted(self)
        found: Certificate = self.machine_.certificate_
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._machine())
        tags.target_tags = inner.target_tags
        tags.target_tags.required = True
        tags.input_tags.sparse = False
        return tags

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return np.asarray(self.support_)

    def _machine(self) -> Any:
        return SVC() if self.machine is None else self.machine

    def _count(self, X: Array, y: Array) -> int:
        """Return how many features to keep, and remember how that was chosen."""
        d = X.shape[1]
        for name in ("sizes_", "scores_"):
            self.__dict__.pop(name, None)
        if self.n_features_to_select is not None:
            if self.n_features_to_select > d:
                must = f"be at most the number of features: n_features = {d}"
                refuse(self, "n_features_to_select", self.n_features_to_select, must)
            return int(self.n_features_to_select)
        if self.min_features_to_select > d:
            must = f"be at most the number of features: n_features = {d}"
            refuse(self, "min_features_to_select", self.min_features_to_select, must)
        if self.min_features_to_select == d:
            return int(d)
        machine = self._machine()
        folds = folds_of(machine, X, y, self.cv, None, self.random_state)
        found = [self._fold(machine, X, y, train, test) for train, test in folds]
        self.sizes_ = np.array([size for size, _ in found[0]])
        self.scores_ = np.array([[score for _, score in one] for one in found]).T
        means = self.scores_.mean(axis=1)
        spread = self.scores_[means.argmax()].std(ddof=1) if len(folds) > 1 else 0.0
        least = means.max() - _SLACK[self.rule] * spread / np.sqrt(len(folds))
        return int(self.sizes_[means >= least].min())

    def _fold(
        self, machine: Any, X: Array, y: Array, train: Array, test: Array
    ) -> list[tuple[int, float]]:
        """Eliminate on the rows of a fold; return numbers of features, and scores of the others."""
        score = check_scoring(machine, scoring=self.scoring)
        rows, labels = X[train], y[train]
        fewest = min(int(self.min_features_to_select), X.shape[1])
        found = []
        for at in steps_of(machine, rows, labels, fewest, self.step):
            K = at.kernel(X[test][:, at.features], rows[:, at.features])
            found.append((len(at.features), float(score(at.machine, np.asarray(K), y[test]))))
        return found

    def _check_parameters(self) -> None:
        check_machine(self._machine())
        check_step(self.step)
        check_choice(self, "rule", tuple(_SLACK))
        check_optional_count(self, "n_features_to_select")
        check_count(self, "min_features_to_select")
        check_optional_positive(self, "time_limit")
        if self.n_features_to_select is not None:
            self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Raise for cross-validation parameters if `n_features_to_select` is set."""
        idle = {"min_features_to_select": 1, "cv": None, "rule": "one_standard_error"}
        for name, default in (idle | {"scoring": None}).items():
            given = getattr(self, name)
            if given is not default and not (isinstance(given, int | str) and given == default):
                must = f"be {default!r} if n_features_to_select is set"
                refuse(self, name, given, must)


# --- path ----------------------------------------------------------------------------------------
#
# One feature after another is left out: those first whose loss the margin feels least.

_FITS = "SVC(), SVR() or KernelRidge()"


@dataclass(frozen=True, eq=False)
class EliminationStep:
    """A fit on the way.

    Attributes
    ----------
    features : int array
        The features of this fit.
    losses : array
        What |w|^2 / 2 loses without each of them.
    kernel : Kernel
        The kernel of this fit.
    machine : object
        The fitted machine, which takes kernel matrices.
    """

    features: Array
    losses: Array
    kernel: Kernel
    machine: Any


@dataclass(frozen=True, eq=False)
class EliminationPath:
    """The order in which features were left out.

    Attributes
    ----------
    ranking : (d,) int array
        1 for features that were kept to the end, larger ones the earlier a feature was left out.
    sizes : (m,) int array
        How many features each fit had.
    features : tuple of int arrays
        Which ones.
    losses : tuple of arrays
        What |w|^2 / 2 loses without each of them.
    """

    ranking: Array
    sizes: Array
    features: tuple[Array, ...]
    losses: tuple[Array, ...]


def eliminate_features(
    machine: Any, X: Any, y: Any, *, n_features: int = 1, step: int | float = 1
) -> EliminationPath:
    """Leave features out one after another, by what the margin loses without them.

    Parameters
    ----------
    machine : SVC, SVR or KernelRidge
        Fitted again after every step, from the last answer where it can.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels or targets.
    n_features : int
        How many to keep.
    step : int or float
        How many to leave out at once, or which share of those that are left.

    Returns
    -------
    EliminationPath
        The order, and what was lost.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import eliminate_features
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> y = X[:, 1] ** 2 + X[:, 3] ** 2 > 1.5  # no line tells these apart
    >>> path = eliminate_features(SVC("gaussian(3)", C=10), X, y)
    >>> sorted(path.features[-2].tolist())
    [1, 3]
    """
    rows, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
    check_machine(machine)
    ranking = np.ones(rows.shape[1], dtype=np.int64)
    steps = list(steps_of(machine, rows, targets, n_features, step))
    for later, earlier in zip(steps[1:], steps, strict=False):
        gone = np.setdiff1d(earlier.features, later.features)
        ranking[gone] = len(steps) - steps.index(earlier)
    return EliminationPath(
        ranking,
        np.array([len(one.features) for one in steps]),
        tuple(one.features for one in steps),
        tuple(one.losses for one in steps),
    )


def steps_of(
    machine: Any, X: Array, y: Array, fewest: int, step: int | float
) -> Iterator[EliminationStep]:
    """Return the fits of an elimination, from all features to the fewest."""
    n, d = X.shape
    require_memory(8 * 3 * n * n, f"eliminating features: K of {n} rows", "Use fewer rows.")
    inner = clone(machine).set_params(kernel="precomputed")
    if "warm_start" in inner.get_params():
        inner.set_params(warm_start=True)
    active = np.arange(d)
    while True:
        deadline.check()
        rows = np.ascontiguousarray(X[:, active])
        kernel = kernel_of(machine.kernel, rows)
        inner.fit(np.asarray(kernel(rows), dtype=np.float64), y)
        losses = margin_losses(kernel, rows, coefficients_of(inner, n))
        yield EliminationStep(active, losses, kernel, inner)
        if len(active) <= fewest:
            return
        count = int(step) if step >= 1 else max(1, int(step * len(active)))
        count = min(count, len(active) - fewest)
        # equal losses: the last columns go first
        order = np.lexsort((-np.arange(len(active)), losses))
        active = np.sort(active[order[count:]])


def coefficients_of(machine: Any, n: int) -> Array:
    """Return the coefficients of all functions of a machine that takes kernel matrices: (n, k)."""
    ends = np.vstack([np.eye(n), np.zeros((1, n))])
    if not hasattr(machine, "_expansion"):
        name = type(machine).__name__
        raise ParameterError(f"FeatureElimination: {name} is no sum over its rows; use {_FITS}")
    values = np.asarray(machine._expansion(ends))
    return np.asarray(values[:-1] - values[-1])


def check_machine(machine: Any) -> None:
    """Raise unless a machine has one function of its kernel, or one for each class."""
    if not (isinstance(machine, Machine) and hasattr(machine, "kernel")):
        raise ParameterError(f"FeatureElimination: machine={machine!r} must have a kernel: {_FITS}")
    if is_precomputed(machine.kernel):
        raise ParameterError(
            "FeatureElimination: kernel='precomputed' has no features; pass the kernel and rows"
        )


def check_step(step: Any) -> None:
    """Raise unless a step is a count or a share."""
    whole = is_real(step) and (step >= 1 and float(step).is_integer())
    if not (whole or (is_real(step) and 0 < step < 1)):
        raise ParameterError(
            f"FeatureElimination: step={step!r} must be a positive integer, or a share between 0 "
            "and 1"
        )


# --- margin loss ---------------------------------------------------------------------------------
#
# What |w|^2 loses without a feature, the coefficients being kept.
#
# f = sum_i a_i k(x_i, .) has |w|^2 = a'Ka. Guyon, Weston, Barnhill and Vapnik (Gene selection for
# cancer classification using support vector machines, Machine Learning 46 (2002)) rank a feature by
# |a'Ka - a'K(-p)a| / 2, where K(-p) is the matrix of rows without it. For the linear kernel that is
# half of w_p^2.


def margin_losses(kernel: Kernel, X: Array, coef: Array) -> Array:
    """Return the change of |w|^2 / 2 without each column, summed over functions.

    Parameters
    ----------
    kernel : Kernel
        What similarity is.
    X : (n, d) array
        Rows.
    coef : (n, k) array
        Coefficients of k functions.

    Returns
    -------
    (d,) array
        At least zero. A column is left out by making all its entries zero, which no kernel of
        distances or products can see.
    """
    if isinstance(kernel, Linear):
        return np.asarray(np.square(X.T @ coef).sum(axis=1) / 2)
    rows = np.flatnonzero(coef.any(axis=1))
    X, coef = X[rows], coef[rows]
    whole = _squares(kernel, X, coef)
    losses = np.empty(X.shape[1])
    for p in range(X.shape[1]):
        deadline.check()
        without = X.copy()
        without[:, p] = 0.0
        losses[p] = np.abs(whole - _squares(kernel, without, coef)).sum() / 2
    return losses


def _squares(kernel: Kernel, X: Array, coef: Array) -> Array:
    """Return a'Ka of each column of coefficients."""
    K = np.asarray(kernel(X), dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->j", coef, K @ coef))
