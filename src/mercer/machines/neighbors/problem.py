"""Problems of nearest and most similar samples and of class means, with the solver of means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose

# --- nearest samples -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """An answer to `Nearest` or `MostSimilar`.

    Attributes
    ----------
    index : (m, count) int array
        For each point asked about, the numbers of its nearest points, itself among them.
    """

    index: Array


@dataclass(frozen=True, eq=False)
class Nearest:
    """The `count` nearest points of some of the points of a Gram, each itself included.

    Attributes
    ----------
    gram : Gram
        K.
    points : (m,) int array
        Which points are asked about.
    count : int
        How many neighbours of each.
    """

    gram: Gram
    points: Array
    count: int


@dataclass(frozen=True, eq=False)
class MostSimilar:
    """The `count` points of a Gram with the largest k(x, z), each point itself a candidate.

    Attributes
    ----------
    gram : Gram
        K; it need not be positive semidefinite.
    points : (m,) int array
        Which points are asked about.
    count : int
        How many neighbours of each.
    """

    gram: Gram
    points: Array
    count: int


# --- class means ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Means:
    """An answer to `ClassMeans`.

    Attributes
    ----------
    coef : (n, classes) array
        The mean of class c is sum_i coef[i, c] phi(x_i).
    squared : (classes,) array
        Squared lengths of the means.
    """

    coef: Array
    squared: Array


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """The mean of each class and its squared length.

    Attributes
    ----------
    gram : Gram
        K.
    codes : (n,) int array
        The number of the class of each row.
    weights : (n,) array
        How often each row counts.
    count : int
        How many classes.
    """

    gram: Gram
    codes: Array
    weights: Array
    count: int

    def shares(self) -> Array:
        """Return the share of each row in the mean of each class: (n, classes)."""
        totals = np.bincount(self.codes, self.weights, self.count)
        shares = np.zeros((len(self.codes), self.count))
        shares[np.arange(len(self.codes)), self.codes] = self.weights / totals[self.codes]
        return shares


# --- solver of class means -----------------------------------------------------------------------

_ROUNDING = 1e-7  # of the longest row: means nearer than that cannot be told apart
_LOST = 1e-15  # of k(x, x) before samples were centered: an estimate of the rounding that remains
_KNOWN = 1e3  # roundings of squared distances: above, three digits of them are known


def rounding_of_distances(gram: Gram) -> float:
    """Estimate the rounding of squared distances between means and samples.

    Of kernel values times coefficients, whose sizes add up to 2 at most. Below the smallest normal
    number products lose their digits, whatever their size.
    """
    longest = float(np.abs(gram.raw.diag()).max(initial=0.0))
    return 4.0 * max(_LOST * longest, float(np.finfo(float).tiny))


def resolution(gram: Gram) -> float:
    """Return the squared distance below which rounding may make two means equal."""
    longest = float(np.abs(gram.diag()).max(initial=0.0))
    return max(_ROUNDING**2 * longest, _KNOWN * rounding_of_distances(gram))


@dataclass(frozen=True)
class Averages(Solver):
    """Average the rows of each class."""

    answers = ClassMeans

    def run(self, problem: ClassMeans, watch: Watch, start: Any = None) -> Solution:
        """Multiply once."""
        coef = problem.shares()
        products = coef.T @ (problem.gram @ coef)
        squared = products.diagonal().copy()
        same = _closest(products) <= resolution(problem.gram)
        status, seen = Status.SOLVED, ""
        if same:
            status, seen = Status.INACCURATE, "two means are the same to rounding"
        return report(self, Means(coef, squared), status, 1, watch, seen)


def _closest(products: Array) -> float:
    """Return the smallest squared distance between two means; infinite if there is only one."""
    squared = products.diagonal()
    apart = squared[:, None] + squared - 2 * products
    return float(apart[np.triu_indices(len(apart), 1)].min(initial=np.inf))


# --- choice --------------------------------------------------------------------------------------

choose.register(ClassMeans)(lambda problem: Averages())
