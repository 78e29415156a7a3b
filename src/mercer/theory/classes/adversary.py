"""The adversary: why a class of infinite VC dimension cannot be learnt.

For any number m of examples there are 2m points with all labellings. The adversary puts a uniform
distribution on them and flips a coin for each label. The learner sees at most m of the points and
must guess about the others, so that its mean error is a quarter or more, while that of a learner
that is right up to 0.1 with probability 0.9 would be 0.19 at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import deadline
from mercer.array_types import Array
from mercer.theory.bound import Bound, check_count, check_probability
from mercer.theory.dichotomies import as_rows

Learner = Callable[[Array, Array, Array], Any]


def no_free_lunch(m: int, points: int | None = None) -> Bound:
    """Bound from below the error that any learner has against the adversary, on average.

    With p points each is missed by m draws with probability (1 - 1/p)^m, and a missed one is
    guessed: the mean error is (1/2) (1 - 1/p)^m, at least (p - m) / (2 p), a quarter for p = 2m.

    Parameters
    ----------
    m : int
        How many examples the learner sees.
    points : int, optional
        How many points the adversary uses; 2m unless given.

    Returns
    -------
    Bound
        The mean error of every learner that keeps to the labels it has seen; no learner has less.

    Examples
    --------
    >>> round(no_free_lunch(10).value, 4)
    0.2994
    """
    m = check_count("m", m)
    p = 2 * m if points is None else check_count("points", points)
    value = 0.5 * math.exp(m * math.log1p(-1 / p)) if p > 1 else 0.0
    statement = (
        f"against labels by coin flips on {p} points, every learner that sees {m} examples has a "
        f"mean error of at least {value:.4g}"
    )
    return Bound(value, not value > 0, (f"the class shatters {p} points",), statement)


@dataclass(frozen=True)
class AdversaryGame:
    """What a learner achieved against the adversary.

    Attributes
    ----------
    errors : (trials,) array
        The error of the learner in each game, over all points.
    bound : Bound
        What no learner is better than on average.
    m : int
        How many examples it saw.
    """

    errors: Array
    bound: Bound
    m: int

    @property
    def mean(self) -> float:
        """The mean error."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; infinite after one game."""
        n = len(self.errors)
        return float(self.errors.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf

    def failures(self, error: float = 0.1) -> float:
        """Return how often the error was above the one allowed."""
        return float((self.errors > check_probability("error", error)).mean())

    def __str__(self) -> str:
        return (
            f"{len(self.errors)} games of {self.m} examples: mean error {self.mean:.4g} (+- "
            f"{self.standard_error:.2g}), above 0.1 in {self.failures():.0%}; no learner has less "
            f"than {self.bound.value:.4g}"
        )


def play_adversary(
    learner: Learner, points: npt.ArrayLike, m: int, *, trials: int = 200, random_state: int = 0
) -> AdversaryGame:
    """Let a learner play against the adversary, and return its errors.

    Parameters
    ----------
    learner : callable
        learner(X, y, Z) sees examples X (m, d) with labels y (m,), True or False, and returns the
        labels of Z; for a machine, `lambda X, y, Z: machine.fit(X, y).predict(Z)`.
    points : (p, d) array-like
        A set that the class of the learner shatters; 2m points in the theorem.
    m : int
        How many examples are drawn, with repetition.
    trials : int
        How many games, each with new coins.
    random_state : int
        Seed of the draws.

    Returns
    -------
    AdversaryGame
        Prints as a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.theory import Sines
    >>> points = Sines().draw(np.random.default_rng(0), 8)
    >>> def majority(X, y, Z):
    ...     seen = {float(x): label for x, label in zip(X[:, 0], y)}
    ...     return [seen.get(float(z), y.mean() >= 0.5) for z in Z[:, 0]]
    >>> play_adversary(majority, points, m=4).mean > 0.25
    True
    """
    if not callable(learner):
        raise TypeError(f"learner={learner!r} must be a function of X, y and Z")
    Z = as_rows(points)
    if len(np.unique(Z, axis=0)) < len(Z) or not len(Z):
        raise ValueError("points must be different ones, and some: one point has one label")
    m, rng = check_count("m", m), np.random.default_rng(random_state)
    errors = np.empty(check_count("trials", trials))
    for game in range(len(errors)):
        deadline.check()
        truth = rng.integers(0, 2, len(Z)).astype(bool)
        seen = rng.integers(0, len(Z), m)
        found = np.asarray(learner(Z[seen], truth[seen], Z)).ravel()
        if found.shape != truth.shape:
            raise ValueError(
                f"learner must return a label for each of the {len(Z)} points, got {found.shape}"
            )
        errors[game] = np.mean(found.astype(bool) != truth)
    return AdversaryGame(errors, no_free_lunch(m, len(Z)), m)
