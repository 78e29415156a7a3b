"""Active learning: class `ActiveLearner`, query rules, and the posterior variance of a function."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.special import entr
from sklearn.base import clone, is_classifier

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.parameters import ParameterError, is_real
from mercer.rows.points import as_points, is_sequence_data, row_count
from mercer.selection.folds import indexable, take_rows

# --- learner -------------------------------------------------------------------------------------
#
# The loop of active learning: ask, be told, fit again, until a rule says that it is enough.

_CALM = 3  # fits in a row that change little: one alone may be chance


class ActiveEnding(Enum):
    """Status of a run. The value is the displayed message."""

    BUDGET = "the label budget is exhausted"
    POOL_IS_EMPTY = "all samples are labeled"
    NOTHING_IN_MARGIN = "no unlabeled sample lies within the margin"
    CALM = "the last labels changed the predictions by less than tol"
    STOPPED = "stopped by the callback"


@dataclass(frozen=True)
class ActiveRound:
    """One fit of a run.

    Attributes
    ----------
    labels : int
        Number of labeled samples.
    asked : tuple of int
        Indices of newly labeled samples.
    change : float
        Fraction of predicted labels that changed. For regression, the root mean square change of
        the predictions relative to their standard deviation. NaN for the first fit.
    """

    labels: int
    asked: tuple[int, ...]
    change: float


class ActiveLearner:
    """Active learner that queries labels of selected samples from a pool.

    Parameters
    ----------
    machine : estimator
        Estimator to fit to the labeled samples. It is cloned.
    X : array-like, sparse matrix, table or list
        All samples, labeled and unlabeled.
    rule : {"margin", "entropy", "variance", "expected_change", "random"} or QueryRule
        Rule that selects the next queries.
    random_state : int, default=0
        Random seed of the rule "random" and of queries before two classes are known.

    Attributes
    ----------
    machine_ : estimator or None
        Estimator fitted to the labeled samples. None before the first fit.
    labelled_ : int array
        Indices of labeled samples in the order of labeling.
    labels_ : array
        Labels of these samples.
    rounds_ : tuple of ActiveRound
        Fits so far.
    ending_ : ActiveEnding or None
        Status of the last `run`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import ActiveLearner
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> y = (X[:, 0] > 0.37).astype(int)
    >>> learner = ActiveLearner(SVC("linear", C=1e6), X)
    >>> learner.teach([0, 100], y[[0, 100]])
    >>> learner.run(y, budget=9).name  # halves the interval with every label
    'BUDGET'
    >>> float((learner.machine_.predict(X) == y).mean())
    1.0
    """

    def __init__(
        self, machine: Any, X: Any, rule: str | QueryRule = "margin", *, random_state: int = 0
    ) -> None:
        self.machine, self.rule = machine, query_rule(rule)
        self.X = as_points(X) if is_sequence_data(X) else indexable(X)
        self.n_rows = row_count(self.X)
        self.machine_: Any = None
        self.labelled_: Array = np.empty(0, dtype=np.intp)
        self.labels_: Array = np.empty(0)
        self.rounds_: tuple[ActiveRound, ...] = ()
        self.ending_: ActiveEnding | None = None
        self._rng = np.random.RandomState(random_state)
        self._predicted: Array | None = None

    @property
    def pool(self) -> Array:
        """Indices of unlabeled samples."""
        free = np.ones(self.n_rows, dtype=bool)
        free[self.labelled_] = False
        return np.flatnonzero(free)

    def query(self, count: int = 1) -> Array:
        """Return the samples to label next, best first. Only the random state changes.

        Parameters
        ----------
        count : int, default=1
            Number of samples. Fewer are returned if the pool is smaller.

        Returns
        -------
        int array
            Indices of samples in `X`.
        """
        pool = self.pool
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(f"ActiveLearner.query: count={count!r} must be a positive integer")
        count = min(int(count), len(pool))
        if self.machine_ is None or count == 0:
            return self._rng.permutation(pool)[:count]
        rows, labelled = take_rows(self.X, pool), take_rows(self.X, self.labelled_)
        return pool[self.rule.choose(self.machine_, rows, labelled, self._rng, count)]

    def teach(self, index: Any, labels: Any) -> None:
        """Add labels of samples and refit. On errors and interrupts, nothing changes.

        Parameters
        ----------
        index : array-like of int
            Indices of samples.
        labels : array-like
            Labels of these samples.
        """
        index, labels = np.atleast_1d(np.asarray(index)), np.atleast_1d(np.asarray(labels))
        self._check(index, labels)
        known = np.concatenate([self.labelled_, index.astype(np.intp)])
        told = labels if not len(self.labels_) else np.concatenate([self.labels_, labels])
        if is_classifier(self.machine) and len(np.unique(told)) < 2:
            self.labelled_, self.labels_ = known, told  # no machine yet: nothing to tell apart
            return
        machine = clone(self.machine).fit(take_rows(self.X, known), told)
        predicted = np.asarray(machine.predict(self.X))
        done = ActiveRound(len(known), tuple(map(int, index)), self._change(predicted))
        self.machine_, self.labelled_, self.labels_ = machine, known, told
        self.rounds_, self._predicted = (*self.rounds_, done), predicted

    def run(
        self,
        oracle: Callable[[Array], Any] | Sequence[Any] | Array,
        *,
        budget: int | None = None,
        batch: int = 1,
        stop_outside_margin: bool = False,
        tol: float | None = None,
        callback: Callable[[ActiveLearner], bool | None] | None = None,
    ) -> ActiveEnding:
        """Query labels and refit until a stopping rule holds.

        Parameters
        ----------
        oracle : callable, or array of all labels
            All labels, or a function that returns the labels for an array of indices.
        budget : int or None, default=None
            Maximum number of labeled samples, including earlier ones.
        batch : int, default=1
            Number of queries per fit.
        stop_outside_margin : bool, default=False
            Stop if no unlabeled sample has |f(x)| < 1 (binary classifiers). A sample outside the
            margin of a support vector machine does not change it if its prediction is correct.
        tol : float or None, default=None
            Stop after three consecutive fits with `change` of at most `tol`.
        callback : callable or None, default=None
            Called with the learner after every fit. Return True to stop.

        Returns
        -------
        ActiveEnding
            Status of the run.
        """
        self._check_run(budget, batch, tol)
        if not callable(oracle) and np.shape(oracle) != (self.n_rows,):
            raise ValueError(
                f"ActiveLearner.run: oracle must be a function, or labels of the "
                f"{self.n_rows} samples; got an array of shape {np.shape(oracle)}"
            )
        ask = oracle if callable(oracle) else np.asarray(oracle).__getitem__
        while True:
            ending = self._ended(budget, stop_outside_margin, tol)
            if ending is not None:
                self.ending_ = ending
                return ending
            left = batch if budget is None else min(batch, budget - len(self.labelled_))
            index = self.query(left)
            self.teach(index, ask(index))
            if callback is not None and callback(self):
                self.ending_ = ActiveEnding.STOPPED
                return self.ending_

    def _ended(self, budget: int | None, outside: bool, tol: float | None) -> ActiveEnding | None:
        pool = self.pool
        if not len(pool):
            return ActiveEnding.POOL_IS_EMPTY
        if budget is not None and len(self.labelled_) >= budget:
            return ActiveEnding.BUDGET
        if self.machine_ is None:
            return None
        if outside and self._nothing_inside(pool):
            return ActiveEnding.NOTHING_IN_MARGIN
        last = [done.change for done in self.rounds_[-_CALM:]]
        if tol is not None and len(last) == _CALM and max(last) <= tol:
            return ActiveEnding.CALM
        return None

    def _nothing_inside(self, pool: Array) -> bool:
        classes = getattr(self.machine_, "classes_", ())
        if len(classes) != 2:
            raise ParameterError(
                "ActiveLearner.run: stop_outside_margin=True requires a binary classifier; "
                "pass tol or budget"
            )
        return bool((MarginQuery().distances(self.machine_, take_rows(self.X, pool)) >= 1.0).all())

    def _change(self, predicted: Array) -> float:
        before = self._predicted
        if before is None:
            return float("nan")
        if is_classifier(self.machine):
            return float(np.mean(predicted != before))
        moved = float(np.sqrt(np.mean((predicted - before) ** 2)))
        spread = float(np.std(predicted))
        return moved / spread if spread > 0 else (0.0 if moved == 0 else float("inf"))

    def _check(self, index: Array, labels: Array) -> None:
        if index.ndim != 1 or index.dtype.kind not in "iu" or len(index) != len(labels):
            raise ValueError(
                f"ActiveLearner.teach: index must be integers of the same length as labels; got "
                f"{len(index)} of type {index.dtype} and {len(labels)}"
            )
        if len(index) and (index.min() < 0 or index.max() >= self.n_rows):
            raise ValueError(f"ActiveLearner.teach: index must be from 0 to {self.n_rows - 1}")
        twice = np.isin(index, self.labelled_).any() or len(np.unique(index)) < len(index)
        if twice:
            raise ValueError("ActiveLearner.teach: a sample in index is already labeled")

    def _check_run(self, budget: Any, batch: Any, tol: Any) -> None:
        for name, value in (("budget", budget), ("batch", batch)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (whole and value >= 1) and not (name == "budget" and value is None):
                raise ParameterError(
                    f"ActiveLearner.run: {name}={value!r} must be a positive integer"
                )
        if tol is not None and not (is_real(tol) and tol >= 0):
            raise ParameterError(f"ActiveLearner.run: tol={tol!r} must be None or at least zero")


# --- query rules ---------------------------------------------------------------------------------
#
# Rules that say which row of a pool to ask about next; larger scores are asked first.


class QueryRule(ABC):
    """A rule that scores unlabeled samples, given an estimator fitted to the labeled samples."""

    @abstractmethod
    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return a score of each unlabeled sample. Larger scores are queried first.

        Parameters
        ----------
        machine : estimator
            Estimator fitted to the labeled samples.
        pool : rows
            Unlabeled samples.
        labelled : rows
            Labeled samples.
        rng : numpy.random.RandomState
            Source of random numbers.
        """

    def choose(
        self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState, count: int
    ) -> Array:
        """Return the indices of the samples to query, best first. Ties go to the first sample.

        Parameters
        ----------
        machine : estimator
            Estimator fitted to the labeled samples.
        pool : rows
            Unlabeled samples.
        labelled : rows
            Labeled samples.
        rng : numpy.random.RandomState
            Source of random numbers.
        count : int
            How many.
        """
        found = self.scores(machine, pool, labelled, rng)
        return np.argsort(-found, kind="stable")[:count]


@dataclass(frozen=True)
class RandomQuery(QueryRule):
    """Random queries, as a baseline.

    Examples
    --------
    >>> import numpy as np
    >>> RandomQuery().scores(None, np.zeros((3, 1)), None, np.random.RandomState(0)).shape
    (3,)
    """

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return random numbers."""
        return np.asarray(rng.random_sample(row_count(pool)))


@dataclass(frozen=True)
class MarginQuery(QueryRule):
    """Query the sample closest to the decision boundary: smallest |f(x)|.

    For several classes: the smallest difference between the two largest decision values.
    """

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return minus the distance in units of the margin."""
        return -self.distances(machine, pool)

    def distances(self, machine: Any, pool: Any) -> Array:
        """Return |f(x)| or the difference of the two largest decision values of each sample.

        Parameters
        ----------
        machine : estimator
            With `decision_function`.
        pool : rows
            Rows.
        """
        values = np.asarray(
            _asked(machine, "decision_function", "MarginQuery", "EntropyQuery()")(pool)
        )
        if values.ndim == 1:
            return np.asarray(np.abs(values))
        largest = np.partition(values, -2, axis=1)[:, -2:]
        return np.asarray(largest[:, 1] - largest[:, 0])


@dataclass(frozen=True)
class EntropyQuery(QueryRule):
    """Query the sample with the least certain label: largest -sum_c p_c log p_c."""

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return the entropy of the predicted probabilities."""
        chances = _asked(machine, "predict_proba", "EntropyQuery", "MarginQuery()")(pool)
        return np.asarray(entr(np.asarray(chances)).sum(axis=1))


@dataclass(frozen=True)
class VarianceQuery(QueryRule):
    """Query the sample with the largest posterior variance.

    v(x) = k(x, x) - k(x, L) (K_LL + noise I)^-1 k(L, x) does not depend on labels, so several
    samples are selected sequentially. Without `kernel`, the variance is computed by
    `predict(..., return_std=True)` or from `kernel_` and `penalty_` of the estimator.

    Parameters
    ----------
    kernel : Kernel or None, default=None
        Kernel function. If None, the kernel of the estimator.
    noise : float or None, default=None
        Noise variance of the labels relative to the kernel. If None, `penalty` of the estimator.
    """

    kernel: Kernel | None = None
    noise: float | None = None

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return variances."""
        if self.kernel is None and _has_std(machine):
            _, std = machine.predict(pool, return_std=True)
            spread = np.asarray(std, dtype=np.float64) ** 2
            return spread if spread.ndim == 1 else np.asarray(spread.sum(axis=1))
        kernel, noise = prior_of(machine, self.kernel, self.noise, "VarianceQuery")
        return posterior_variance(kernel, labelled, pool, noise)

    def choose(
        self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState, count: int
    ) -> Array:
        """Return the places of the rows to ask about, each after those before it."""
        if count == 1 or (self.kernel is None and not hasattr(machine, "kernel_")):
            return super().choose(machine, pool, labelled, rng, count)
        kernel, noise = prior_of(machine, self.kernel, self.noise, "VarianceQuery")
        return most_open(kernel, labelled, pool, noise, count)


@dataclass(frozen=True)
class ExpectedChangeQuery(QueryRule):
    """Query the sample whose label has the largest expected change of the model.

    Of a classifier with `predict_proba`: the expected length of the gradient of the logarithmic
    loss that a label at x would add, sum_c p_c |p - e_c| sqrt(k(x, x)), the gradient being
    (p - e_y) k(x, .) in the kernel's space. Of a regressor with `kernel_` and `penalty_`: the
    expected norm of the change of f itself when the ridge is solved again with y ~ N(f(x), v(x) +
    noise) at x. The constant of f is not counted.

    Parameters
    ----------
    kernel : Kernel or None, default=None
        The kernel; None for the machine's. A classifier without one is taken as linear with a
        constant: k(x, x) = 1 + |x|^2.
    noise : float or None, default=None
        For regressors: variance of the noise; None for the machine's penalty.
    """

    kernel: Kernel | None = None
    noise: float | None = None

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return expected lengths."""
        if not hasattr(machine, "predict_proba"):
            prior, noise = prior_of(machine, self.kernel, self.noise, "ExpectedChangeQuery")
            return expected_change(prior, labelled, pool, noise)
        chances = np.asarray(machine.predict_proba(pool))
        kernel = self.kernel if self.kernel is not None else getattr(machine, "kernel_", None)
        lengths = np.sqrt(_squares(pool) if kernel is None else kernel.diag(pool))
        # |p - e_c|^2 = |p|^2 - 2 p_c + 1
        away = np.sum(chances**2, axis=1)[:, None] - 2.0 * chances + 1.0
        return np.asarray(np.sum(chances * np.sqrt(np.maximum(away, 0.0)), axis=1) * lengths)


RULES: dict[str, type[QueryRule]] = {
    "margin": MarginQuery,
    "entropy": EntropyQuery,
    "variance": VarianceQuery,
    "expected_change": ExpectedChangeQuery,
    "random": RandomQuery,
}


def query_rule(rule: Any) -> QueryRule:
    """Return a rule, or the one that a name means."""
    if isinstance(rule, QueryRule):
        return rule
    if isinstance(rule, str) and rule in RULES:
        return RULES[rule]()
    names = ", ".join(map(repr, RULES))
    raise ValueError(f"ActiveLearner: rule={rule!r} must be one of {names}, or a QueryRule")


def prior_of(machine: Any, kernel: Any, noise: Any, rule: str) -> tuple[Kernel, float]:
    """Return kernel and noise: those given, or those of the fitted machine."""
    kernel = kernel if kernel is not None else getattr(machine, "kernel_", None)
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"{rule}: {type(machine).__name__} has no kernel; pass one, such as "
            f"{rule}(Gaussian(1.0), noise=0.1)"
        )
    if noise is None:
        noise = getattr(machine, "noise_", getattr(machine, "penalty_", None))
    if noise is None or np.ndim(noise) > 0 or not float(noise) > 0:
        raise TypeError(
            f"{rule}: {type(machine).__name__} has no single penalty above zero to take for the "
            f"variance of the noise; pass it, such as {rule}(noise=0.1)"
        )
    return kernel, float(noise)


def _asked(machine: Any, name: str, rule: str, other: str) -> Any:
    if not hasattr(machine, name):
        other = other if is_classifier(machine) else "VarianceQuery()"
        raise TypeError(f"{rule}: {type(machine).__name__} has no {name}; use the rule {other}")
    return getattr(machine, name)


def _has_std(machine: Any) -> bool:
    predict = getattr(machine, "predict", None)
    return predict is not None and "return_std" in inspect.signature(predict).parameters


def _squares(rows: Any) -> Array:
    squares = rows.multiply(rows) if hasattr(rows, "multiply") else np.asarray(rows) ** 2
    return np.asarray(1.0 + np.asarray(squares.sum(axis=1)).ravel())


# --- posterior -----------------------------------------------------------------------------------
#
# What a few labels leave open: the posterior variance of a function, which needs no labels.


def posterior_variance(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return v(x) = k(x, x) - k(x, L) (K_LL + noise I)^-1 k(L, x) for rows x and labelled rows L.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to judge.
    noise : float
        Variance of the noise of labels, in units of the kernel; not negative.

    Returns
    -------
    (n,) array
        Variances, none negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> posterior_variance(Gaussian(1.0), np.array([[0.0]]), np.array([[0.0], [9.0]]), 1.0)
    array([0.5, 1. ])
    """
    prior = np.asarray(kernel.diag(rows), dtype=np.float64)
    if row_count(labelled) == 0:
        return prior
    half = _half(kernel, labelled, rows, noise)
    return np.asarray(np.maximum(prior - np.sum(half**2, axis=0), 0.0))


def expected_change(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return how far a label at each row is expected to move the ridge solution f, in its norm.

    With g = k(x, .) - k(x, L) (K_LL + noise I)^-1 k(L, .) a label y at x changes f by
    g (y - f(x)) / (noise + v(x)), and y - f(x) ~ N(0, noise + v(x)) has the mean magnitude
    sqrt(2 / pi) of its standard deviation.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to judge.
    noise : float
        Penalty of the ridge, above zero.

    Returns
    -------
    (n,) array
        Expected norms.
    """
    prior = np.asarray(kernel.diag(rows), dtype=np.float64)
    variance, squared = prior, prior
    if row_count(labelled):
        cross = np.asarray(kernel(labelled, rows), dtype=np.float64)
        K = np.asarray(kernel(labelled), dtype=np.float64)
        weights = cho_solve(_factor(K, noise), cross)
        variance = np.maximum(prior - np.sum(cross * weights, axis=0), 0.0)
        # |g|^2 = k(x, x) - 2 a'k + a'K a with a = (K + noise I)^-1 k, and a'K a = a'k - noise a'a
        squared = np.maximum(variance - noise * np.sum(weights**2, axis=0), 0.0)
    return np.asarray(np.sqrt(2.0 / np.pi * squared / np.maximum(variance + noise, 1e-300)))


def most_open(kernel: Kernel, labelled: Any, rows: Any, noise: float, count: int) -> Array:
    """Return the places of rows of largest variance, each after those before it are labelled too.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to choose from.
    noise : float
        Variance of the noise of labels.
    count : int
        How many to choose.
    """
    variance = posterior_variance(kernel, labelled, rows, noise)
    half = np.empty((0, len(variance)))
    if row_count(labelled):
        half = _half(kernel, labelled, rows, noise)
    chosen: list[int] = []
    for _ in range(count):
        open_ = variance.copy()
        open_[chosen] = -np.inf
        best = int(np.argmax(open_))
        chosen.append(best)
        one = np.asarray(kernel(rows[best : best + 1], rows), dtype=np.float64)[0]
        row = (one - half[:, best] @ half) / np.sqrt(max(variance[best] + noise, 1e-300))
        half = np.vstack([half, row])
        variance = np.maximum(variance - row**2, 0.0)
    return np.array(chosen, dtype=np.intp)


def _factor(K: Array, noise: float) -> Any:
    shifted = K + noise * np.eye(len(K))
    try:
        return cho_factor(shifted, lower=True)
    except LinAlgError:  # rows that are equal, and no noise: as little as rounding sees
        tiny = 1e-10 * float(np.trace(K)) / len(K)
        return cho_factor(shifted + max(tiny, 1e-300) * np.eye(len(K)), lower=True)


def _half(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return L^-1 k(labelled, rows) with L L' = K_LL + noise I."""
    lower = _factor(np.asarray(kernel(labelled), dtype=np.float64), noise)[0]
    cross = np.asarray(kernel(labelled, rows), dtype=np.float64)
    return np.asarray(solve_triangular(lower, cross, lower=True))
