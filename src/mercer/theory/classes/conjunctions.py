"""Conjunctions of literals over n Boolean variables: 3^n hypotheses, learnt by elimination.

Each variable is in the conjunction as it is, or negated, or not at all. The learner begins with all
2n literals and strikes out those that a positive example contradicts. It never strikes out a
literal of the target, so it errs on positive examples alone: at most n + 1 times, since the first
such mistake leaves n literals and each other one strikes out at least one. No learner can do better
than n mistakes in the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from mercer.array_types import Array
from mercer.theory.bound import Bound, check_count
from mercer.theory.dichotomies import Hypotheses
from mercer.theory.finite import realisable_sample_size


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
    """What elimination has learnt from a stream.

    Attributes
    ----------
    conjunction : Conjunction
        What is left.
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
        How many Boolean variables.

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
        """See whether what is left after the positive points refuses the negative ones."""
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
