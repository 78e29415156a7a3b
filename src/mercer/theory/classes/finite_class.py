"""A finite class, written out: what it can learn, how rich it is, which samples suffice for it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bound import Bound, check_count, check_probability
from mercer.theory.dichotomies import Hypotheses, check_class
from mercer.theory.finite import (
    agnostic_sample_size,
    finite_class_dimension,
    finite_class_error,
    realisable_sample_size,
)

_MOST_SETS = 200_000  # of points that are looked at one by one
_ROUNDING = 1e-12  # of sums of weights


@dataclass(frozen=True)
class LearntHypothesis:
    """What empirical risk minimisation picks.

    Attributes
    ----------
    index : int
        The first hypothesis with the fewest errors on the sample.
    observed : float
        The share of the sample that it gets wrong.
    consistent : int
        How many hypotheses get nothing wrong: the size of the version space.
    hypotheses : int
        How many there are.
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
        What was asked.
    """

    is_net: bool
    weight: float
    index: int
    epsilon: float

    def __str__(self) -> str:
        verdict = "is an epsilon-net" if self.is_net else "is NO epsilon-net"
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
        What each hypothesis says about each point.

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
        """Write out what a class, finite or not, can say about finitely many points.

        Parameters
        ----------
        hypotheses : Hypotheses
            For example `Rectangles(2)`.
        points : (m, d) array-like
            The points.

        Returns
        -------
        FiniteClass
            A row for each labelling.

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
            What is said about them.

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
            What is said about them.

        Returns
        -------
        LearntHypothesis
        """
        places, said = self.sample(points, labels)
        if not len(places):
            raise ValueError("FiniteClass.learn: the sample must have an example")
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
        """Return the most labellings that any m points are given, by looking at all of them.

        Parameters
        ----------
        m : int
            How many different points.

        Returns
        -------
        int
        """
        m = check_count("m", m, 0)
        sets = comb(self.table.shape[1], m)
        if not 1 <= sets <= _MOST_SETS:
            raise ValueError(
                f"m={m}: {self.table.shape[1]} points have {sets} sets of {m}, and 1 to "
                f"{_MOST_SETS} can be looked at; mercer.theory.growth looks at some of many"
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
                    f"have to be looked at, more than {_MOST_SETS}; mercer.theory.vc_dimension "
                    "looks at some of many"
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
            The error allowed, or, where no hypothesis is right, the excess over the best.
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

        The error region of a hypothesis is where it differs from the target.

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
                f"FiniteClass: points are places, whole numbers from 0 to {self.table.shape[1] - 1}"
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
