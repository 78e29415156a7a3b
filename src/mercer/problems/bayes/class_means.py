"""Means of classes in feature space: what the simplest of classifiers compares a row with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram


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
