"""Hypothesis classes: finite classes, conjunctions, and the no-free-lunch adversary."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer import deadline
from mercer.array_types import Array
from mercer.theory.bounds import Bound, check_count, check_probability
from mercer.theory.dichotomies import Hypotheses, as_rows, check_class
from mercer.theory.sample_size import (
    agnostic_sample_size,
    finite_class_dimension,
    finite_class_error,
    realisable_sample_size,
)

# --- finite class --------------------------------------------------------------------------------
#
# A finite class as a table: empirical risk minimization, richness, sample sizes.

_MOST_SETS = 200_000  # of points that are looked at one by one
_ROUNDING = 1e-12  # of sums of weights


@dataclass(frozen=True)
class LearntHypothesis:
    """The result of empirical risk minimization.

    Attributes
    ----------
    index : int
        The first hypothesis with the fewest errors on the sample.
    observed : float
        The fraction of errors on the sample.
    consistent : int
        Number of hypotheses without an error: the size of the version space.
    hypotheses : int
        Number of hypotheses.
    n : int
        The size of the sample.
    """

    index: int
    observed: float
    consistent: int
    hypotheses: int
    n: int

    def bound(self, delta: float) -> Bound:
        """Bound its true error, as `finite_class_error` does."""
        return finite_class_error(self.hypotheses, self.n, delta, self.observed)


@dataclass(frozen=True)
class EpsilonNet:
    """Whether a sample hits every error region that is heavier than epsilon.

    Attributes
    ----------
    is_net : bool
        Whether it does. Then every hypothesis that agrees with the sample has an error of at most
        epsilon.
    weight : float
        The weight of the heaviest region that is missed: the largest error of any consistent
        hypothesis.
    index : int
        The hypothesis that this region belongs to.
    epsilon : float
        The requested epsilon.
    """

    is_net: bool
    weight: float
    index: int
    epsilon: float

    def __str__(self) -> str:
        verdict = "is an epsilon-net" if self.is_net else "is NOT an epsilon-net"
        return (
            f"the sample {verdict} for epsilon = {self.epsilon:g}: hypothesis {self.index} agrees "
            f"with it and has an error of {self.weight:.4g}, the largest that any such has"
        )


class FiniteClass(Hypotheses):
    """Hypotheses on finitely many points, one row of labels each.

    Points are named by their place, 0, 1, ..., so that a sample is a list of places (with
    repetitions) and its labels. Equal rows are one hypothesis.

    Parameters
    ----------
    table : (hypotheses, points) array-like of bool
        The label of each point by each hypothesis.

    Attributes
    ----------
    table : bool array
        The distinct rows, in the order of their first appearance.

    Examples
    --------
    >>> thresholds = FiniteClass([[x >= t for x in range(4)] for t in range(5)])
    >>> len(thresholds), thresholds.vc_dimension(), thresholds.growth(3)
    (5, 1, 4)
    >>> thresholds.learn([0, 3], [False, True])
    LearntHypothesis(index=1, observed=0.0, consistent=3, hypotheses=5, n=2)
    >>> thresholds.epsilon_net([0, 3], epsilon=0.3, target=2)
    EpsilonNet(is_net=True, weight=0.25, index=1, epsilon=0.3)
    """

    def __init__(self, table: npt.ArrayLike) -> None:
        rows = np.asarray(table)
        if rows.ndim != 2 or not rows.size or not np.isin(rows, (0, 1)).all():
            raise ValueError(
                "FiniteClass: table must have a row of True and False for each hypothesis and a "
                f"column for each point; got shape {rows.shape} of {rows.dtype}"
            )
        _, first = np.unique(rows.astype(bool), axis=0, return_index=True)
        self.table: Array = rows.astype(bool)[np.sort(first)]

    @classmethod
    def from_hypotheses(cls, hypotheses: Any, points: npt.ArrayLike) -> Self:
        """Make a table of the labelings of finitely many points by a class, finite or not.

        Parameters
        ----------
        hypotheses : Hypotheses
            For example `Rectangles(2)`.
        points : (m, d) array-like
            The points.

        Returns
        -------
        FiniteClass
            A row for each labeling.

        Examples
        --------
        >>> from mercer.theory import Intervals
        >>> len(FiniteClass.from_hypotheses(Intervals(), range(10)))  # 1 + 10 + 45
        56
        """
        check_class(hypotheses)
        return cls(hypotheses.dichotomies(points))

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"FiniteClass({len(self.table)} hypotheses on {self.table.shape[1]} points)"

    def realises(self, points: Array, labels: Array) -> bool:
        """See whether some row has these labels at these places."""
        return bool(self.consistent(np.ravel(points), labels).any())

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw places, without repetition while there are enough."""
        count = self.table.shape[1]
        return rng.choice(count, size=m, replace=m > count)[:, None].astype(np.float64)

    def consistent(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> Array:
        """Return which hypotheses agree with a sample: the version space.

        Parameters
        ----------
        points : (m,) array-like of int
            Places.
        labels : (m,) array-like of bool
            Their labels.

        Returns
        -------
        (hypotheses,) bool array
        """
        places, said = self.sample(points, labels)
        return np.asarray((self.table[:, places] == said).all(axis=1))

    def learn(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> LearntHypothesis:
        """Pick the hypothesis with the fewest errors on a sample, the first of several.

        Parameters
        ----------
        points : (m,) array-like of int
            Places.
        labels : (m,) array-like of bool
            Their labels.

        Returns
        -------
        LearntHypothesis
        """
        places, said = self.sample(points, labels)
        if not len(places):
            raise ValueError("FiniteClass.learn: the sample must have at least one example")
        wrong = (self.table[:, places] != said).sum(axis=1)
        index, agree = int(wrong.argmin()), int((wrong == 0).sum())
        return LearntHypothesis(index, float(wrong[index] / len(said)), agree, len(self), len(said))

    def errors(self, target: Any, weights: npt.ArrayLike | None = None) -> Array:
        """Return the true error of each hypothesis.

        Parameters
        ----------
        target : int or (points,) array-like of bool
            The true labels: those of a hypothesis of the class, or any.
        weights : (points,) array-like, optional
            The distribution of points; uniform unless given.

        Returns
        -------
        (hypotheses,) array
        """
        return np.asarray((self.table != self.labels_of(target)) @ self.distribution(weights))

    def growth(self, m: int) -> int:
        """Return the most labelings that any m points are given, by looking at all of them.

        Parameters
        ----------
        m : int
            Number of different points.

        Returns
        -------
        int
        """
        m = check_count("m", m, 0)
        sets = comb(self.table.shape[1], m)
        if not 1 <= sets <= _MOST_SETS:
            raise ValueError(
                f"m={m}: {self.table.shape[1]} points have {sets} sets of {m}, and 1 to "
                f"{_MOST_SETS} are allowed; mercer.theory.growth samples among more"
            )
        most = min(2**m, len(self))
        best = 0
        for chosen in combinations(range(self.table.shape[1]), m):
            best = max(best, len(np.unique(self.codes(chosen))))
            if best == most:
                break
        return best

    def vc_dimension(self) -> int:
        """Return the VC dimension itself: sets are shattered only if all their subsets are.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If more than 200000 sets of one size would have to be looked at.
        """
        shattered: list[tuple[int, ...]] = [()]
        dimension = 0
        while True:
            known = set(shattered)
            longer = [
                (*old, new)
                for old in shattered
                for new in range(old[-1] + 1 if old else 0, self.table.shape[1])
                if all((*old[:i], *old[i + 1 :], new) in known for i in range(len(old)))
            ]
            if len(longer) > _MOST_SETS:
                raise ValueError(
                    f"at least {dimension}, but {len(longer)} sets of {dimension + 1} points would "
                    f"have to be tested, more than {_MOST_SETS}; mercer.theory.vc_dimension "
                    "tests a random sample"
                )
            size = 2 ** (dimension + 1)
            shattered = [s for s in longer if len(np.unique(self.codes(s))) == size]
            if not shattered:
                return dimension
            dimension += 1

    def dimension_bound(self) -> Bound:
        """Bound the VC dimension by log2 of the number of hypotheses."""
        return finite_class_dimension(len(self))

    def sample_size(self, error: float, delta: float, *, realisable: bool = True) -> Bound:
        """Count the examples that suffice to learn this class.

        Parameters
        ----------
        error : float
            The error allowed, or, if every hypothesis errs, the excess over the best.
        delta : float
            The probability of failure allowed.
        realisable : bool
            Whether some hypothesis of the class makes no error.

        Returns
        -------
        Bound
            Of `realisable_sample_size` or `agnostic_sample_size`.
        """
        size = realisable_sample_size if realisable else agnostic_sample_size
        return size(len(self), error, delta)

    def epsilon_net(
        self,
        points: npt.ArrayLike,
        epsilon: float,
        target: Any = None,
        weights: npt.ArrayLike | None = None,
    ) -> EpsilonNet:
        """Test whether a sample hits every error region heavier than epsilon.

        The error region of a hypothesis is the set where it differs from the target.

        Parameters
        ----------
        points : (m,) array-like of int
            Places: the sample.
        epsilon : float
            Weight of regions.
        target : int or (points,) array-like of bool, optional
            The true labels; none is true unless given, and regions are then the hypotheses
            themselves.
        weights : (points,) array-like, optional
            The distribution of points; uniform unless given.

        Returns
        -------
        EpsilonNet
        """
        epsilon = check_probability("epsilon", epsilon)
        nothing = np.zeros(self.table.shape[1], dtype=bool)
        truth = self.labels_of(nothing if target is None else target)
        places = self.places(points)
        missed = (self.table[:, places] == truth[places]).all(axis=1)
        weight = np.where(missed, self.errors(truth, weights), 0.0)
        index = int(weight.argmax())
        heaviest = float(weight[index])
        return EpsilonNet(heaviest <= epsilon * (1 + _ROUNDING), heaviest, index, epsilon)

    def codes(self, chosen: tuple[int, ...]) -> Array:
        """Return the labels of some points as one number for each hypothesis."""
        return np.asarray(self.table[:, list(chosen)] @ (1 << np.arange(len(chosen))))

    def places(self, points: npt.ArrayLike) -> Array:
        """Require places of points."""
        found = np.asarray(points, dtype=np.float64).ravel()
        whole = np.isfinite(found).all() and (found == np.floor(found)).all()
        if not whole or (found < 0).any() or (found >= self.table.shape[1]).any():
            raise ValueError(
                f"FiniteClass: points must be indices, integers from 0 to {self.table.shape[1] - 1}"
            )
        return found.astype(np.intp)

    def sample(self, points: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Array, Array]:
        """Require as many labels as places."""
        places, said = self.places(points), np.asarray(labels).ravel()
        if said.shape != places.shape or not np.isin(said, (0, 1)).all():
            raise ValueError(
                f"FiniteClass: {len(places)} points need as many labels, True or False; got "
                f"{said.tolist()[:5]}"
            )
        return places, said.astype(bool)

    def labels_of(self, target: Any) -> Array:
        """Return the labels of a hypothesis, or those given."""
        if np.ndim(target) == 0:
            index = check_count("target", target, 0)
            if index >= len(self):
                raise ValueError(f"target={index}: there are {len(self)} hypotheses")
            return np.asarray(self.table[index])
        return self.sample(np.arange(self.table.shape[1]), target)[1]

    def distribution(self, weights: npt.ArrayLike | None) -> Array:
        """Return weights of points with sum one."""
        count = self.table.shape[1]
        w = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != (count,) or not np.isfinite(w).all() or (w < 0).any() or not w.max() > 0:
            raise ValueError(
                f"weights must be {count} finite numbers, none negative, some positive"
            )
        w = w / w.max()
        return np.asarray(w / w.sum())


# --- conjunctions --------------------------------------------------------------------------------
#
# Conjunctions of literals over n Boolean variables: 3^n hypotheses, learned by elimination.
#
# Each variable is in the conjunction, in it negated, or not in it. The learner begins with
# all 2n literals and strikes out those that a positive example contradicts. It never strikes out
# a literal of the target, so it errs on positive examples alone: at most n + 1 times, since the
# first such mistake leaves n literals and each other one strikes out at least one. No learner can
# do better than n mistakes in the worst case.


@dataclass(frozen=True)
class Conjunction:
    """A conjunction of literals.

    Attributes
    ----------
    positive : frozenset of int
        Variables that must be true.
    negative : frozenset of int
        Variables that must be false.
    """

    positive: frozenset[int]
    negative: frozenset[int]

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return where all literals hold: rows (m, n) of 0 and 1 to (m,) of True and False."""
        rows = np.asarray(X).astype(bool)
        true = rows[:, sorted(self.positive)].all(axis=1)
        return np.asarray(true & ~rows[:, sorted(self.negative)].any(axis=1))

    def __str__(self) -> str:
        if self.positive & self.negative:
            return "never"
        literals = sorted([(i, f"x{i}") for i in self.positive])
        literals += [(i, f"not x{i}") for i in self.negative]
        return " and ".join(text for _, text in sorted(literals)) or "always"


@dataclass(frozen=True)
class OnlineConjunction:
    """The state of elimination on a stream.

    Attributes
    ----------
    conjunction : Conjunction
        The conjunction learned so far.
    mistakes : tuple of int
        The places of the examples that were predicted wrongly.
    """

    conjunction: Conjunction
    mistakes: tuple[int, ...]


@dataclass(frozen=True)
class Conjunctions(Hypotheses):
    """x is positive if all literals of a conjunction hold; one that never holds is there too.

    The VC dimension is n for n >= 2.

    Parameters
    ----------
    n : int
        Number of Boolean variables.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
    >>> found = Conjunctions(4).learn(X, [True, True, False, False])
    >>> print(found)
    x0 and not x1 and x3
    >>> Conjunctions(4).sample_size(error=0.1, delta=0.05).value
    75
    """

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n)

    def realises(self, points: Array, labels: Array) -> bool:
        """Check whether the conjunction of the positive points rejects the negative ones."""
        said = np.asarray(labels, dtype=bool)
        return bool(np.array_equal(self.eliminate(points, said).predict(points), said))

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw points with few zeros: a literal that one point alone contradicts shatters it."""
        points = np.ones((m, self.n))
        points[np.arange(m), np.resize(rng.permutation(self.n), m)] = 0.0
        return points

    def points(self) -> Array:
        """List all 2^n points, at most 2^20 of them."""
        if self.n > 20:
            raise ValueError(f"n={self.n} variables have 2^{self.n} points; list at most 2^20")
        return np.array(list(product([0, 1], repeat=self.n)))

    def learn(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Conjunction:
        """Learn by elimination: all literals that no positive example contradicts.

        Parameters
        ----------
        X : (m, n) array-like of 0 and 1
            Examples.
        y : (m,) array-like of bool
            Labels.

        Returns
        -------
        Conjunction
            The longest that agrees with the positive examples.

        Raises
        ------
        ValueError
            If a negative example fits: then no conjunction agrees with all examples.
        """
        rows, said = self.examples(X, y)
        found = self.eliminate(rows, said)
        wrong = np.flatnonzero(found.predict(rows) != said)
        if len(wrong):
            raise ValueError(
                f"Conjunctions: no conjunction agrees with all examples; {found} is the longest "
                f"that fits the positive ones, and it fits row {wrong[0]}, which is negative"
            )
        return found

    def learn_online(self, X: npt.ArrayLike, y: npt.ArrayLike) -> OnlineConjunction:
        """Predict each example before its label is told, and eliminate after mistakes.

        Parameters
        ----------
        X : (m, n) array-like of 0 and 1
            Examples, in the order in which they come.
        y : (m,) array-like of bool
            Labels.

        Returns
        -------
        OnlineConjunction
            At most n + 1 mistakes, if some conjunction agrees with all examples.
        """
        rows, said = self.examples(X, y)
        every = frozenset(range(self.n))
        left, mistakes = Conjunction(every, every), []
        for place, (row, label) in enumerate(zip(rows, said, strict=True)):
            if bool(left.predict(row[None])[0]) == label:
                continue
            mistakes.append(place)
            if label:
                true = frozenset(np.flatnonzero(row).tolist())
                left = Conjunction(left.positive & true, left.negative - true)
        return OnlineConjunction(left, tuple(mistakes))

    def sample_size(self, error: float, delta: float) -> Bound:
        """Count the examples that suffice: (n ln 3 + ln(1/delta)) / error, plus the empty concept.

        Parameters
        ----------
        error : float
            The error allowed.
        delta : float
            The probability of failure allowed.

        Returns
        -------
        Bound
            Of `realisable_sample_size` for 3^n + 1 hypotheses.
        """
        return realisable_sample_size(3**self.n + 1, error, delta)

    def mistake_bound(self) -> Bound:
        """Bound the mistakes of `learn_online` on any stream: n + 1."""
        exists = "one conjunction agrees with all examples, in whatever order they come"
        most = self.n + 1
        statement = f"elimination makes at most {most} mistakes, and any learner may make {self.n}"
        return Bound(most, False, (exists,), statement)

    def eliminate(self, rows: Array, labels: Array) -> Conjunction:
        """Return the literals that hold at every positive row."""
        positive = np.asarray(rows)[labels].astype(bool)
        true = np.flatnonzero(positive.all(axis=0)).tolist()
        false = np.flatnonzero(~positive.any(axis=0)).tolist()
        return Conjunction(frozenset(true), frozenset(false))

    def examples(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Array, Array]:
        """Require rows of n entries 0 and 1, and a label for each."""
        rows, said = np.asarray(X), np.asarray(y).ravel()
        if rows.ndim != 2 or rows.shape[1] != self.n or not np.isin(rows, (0, 1)).all():
            raise ValueError(f"X must be rows of {self.n} entries, 0 or 1; got shape {rows.shape}")
        if len(said) != len(rows) or not np.isin(said, (0, 1)).all():
            raise ValueError(f"y must hold {len(rows)} labels, True or False")
        return rows.astype(bool), said.astype(bool)


# --- adversary -----------------------------------------------------------------------------------
#
# The adversary: why a class of infinite VC dimension cannot be learned.
#
# For any number m of examples there are 2m points with all labelings. The adversary puts a
# uniform distribution on them and flips a coin for each label. The learner sees at most m of the
# points and must guess about the others, so that its mean error is a quarter or more, while that
# of a learner that is right up to 0.1 with probability 0.9 would be 0.19 at most.

Learner = Callable[[Array, Array, Array], Any]


def no_free_lunch(m: int, points: int | None = None) -> Bound:
    """Bound from below the error that any learner has against the adversary, on average.

    With p points each is missed by m draws with probability (1 - 1/p)^m, and a missed one is
    guessed: the mean error is (1/2) (1 - 1/p)^m, at least (p - m) / (2 p), a quarter for p = 2m.

    Parameters
    ----------
    m : int
        Number of examples for the learner.
    points : int, optional
        Number of points that the adversary uses; 2m unless given.

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
    """The result of a learner against the adversary.

    Attributes
    ----------
    errors : (trials,) array
        The error of the learner in each game, over all points.
    bound : Bound
        Lower bound on the average error of every learner.
    m : int
        Number of examples for the learner.
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
        labels of Z; for an estimator, `lambda X, y, Z: estimator.fit(X, y).predict(Z)`.
    points : (p, d) array-like
        A set that the class of the learner shatters; 2m points in the theorem.
    m : int
        Number of examples, drawn with replacement.
    trials : int
        Number of games, each with new coins.
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
        raise ValueError("points must be distinct, and at least one")
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
