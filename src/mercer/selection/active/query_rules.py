"""Rules that say which row of a pool to ask about next; larger scores are asked first."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.base import is_classifier

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.points import row_count
from mercer.selection.active.posterior import expected_change, most_open, posterior_variance


class QueryRule(ABC):
    """A rule that scores rows of a pool, given a machine fitted to the labelled rows."""

    @abstractmethod
    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return a number for each row of the pool: larger ones are asked first.

        Parameters
        ----------
        machine : estimator
            Fitted to the labelled rows.
        pool : rows
            Rows without labels.
        labelled : rows
            Rows with labels.
        rng : numpy.random.RandomState
            Source of random numbers.
        """

    def choose(
        self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState, count: int
    ) -> Array:
        """Return the places of the rows to ask about, best first; ties go to the first row.

        Parameters
        ----------
        machine : estimator
            Fitted to the labelled rows.
        pool : rows
            Rows without labels.
        labelled : rows
            Rows with labels.
        rng : numpy.random.RandomState
            Source of random numbers.
        count : int
            How many.
        """
        found = self.scores(machine, pool, labelled, rng)
        return np.argsort(-found, kind="stable")[:count]


@dataclass(frozen=True)
class RandomQuery(QueryRule):
    """Ask about rows at random: what every other rule has to beat.

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
    """Ask about the row nearest to the hyperplane: smallest |f(x)|.

    Of several classes: the smallest difference between the two largest decision values.
    """

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return minus the distance in units of the margin."""
        return -self.distances(machine, pool)

    def distances(self, machine: Any, pool: Any) -> Array:
        """Return |f(x)|, or the difference of the two largest decision values, of each row.

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
    """Ask about the row whose label is least certain: largest -sum_c p_c log p_c."""

    def scores(self, machine: Any, pool: Any, labelled: Any, rng: np.random.RandomState) -> Array:
        """Return the entropy of the predicted chances."""
        chances = _asked(machine, "predict_proba", "EntropyQuery", "MarginQuery()")(pool)
        return np.asarray(entr(np.asarray(chances)).sum(axis=1))


@dataclass(frozen=True)
class VarianceQuery(QueryRule):
    """Ask where the function is least known: largest posterior variance.

    v(x) = k(x, x) - k(x, L) (K_LL + noise I)^-1 k(L, x) needs no labels, so several rows at once
    are chosen each after the ones before it. Without a kernel, it is asked of the machine: of
    `predict(..., return_std=True)`, or of its `kernel_` and `penalty_`.

    Parameters
    ----------
    kernel : Kernel or None, default=None
        The kernel; None for the machine's.
    noise : float or None, default=None
        Variance of the noise of labels in units of the kernel; None for the machine's penalty.
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
    """Ask where a label is expected to change the model most.

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
