"""What was counted in each class, and the probabilities that make it most likely.

Attributes are independent given the class. A discrete one with V values has the probabilities
(alpha + count) / (alpha V + total); a Gaussian one the mean and variance of its class.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from mercer.array_types import Array

LOG_ZERO = log(1e-300)  # stands for the logarithm of a probability of zero: scores stay finite
_ROUNDING = 1e-15  # deviation of a constant column that is only rounding, over its value
_VARIANCES = (1e-300, 1e300)  # beyond, squares and their inverses leave the range of float64


@dataclass(frozen=True, eq=False)
class ColumnMoments:
    """Weight, mean and scatter of columns in each class.

    Attributes
    ----------
    weight : (k, g) array
        Total weight of the entries that are there.
    mean : (k, g) array
        Their mean.
    scatter : (k, g) array
        Their weighted sum of squared distances to the mean.
    """

    weight: Array
    mean: Array
    scatter: Array

    def merged(self, other: ColumnMoments) -> ColumnMoments:
        """Add the rows of another sample; no squares of large numbers are taken apart."""
        with np.errstate(over="ignore", invalid="ignore"):  # the machine refuses what overflows
            weight = self.weight + other.weight
            share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            step = other.mean - self.mean
            mean = np.where(self.weight > 0, self.mean + step * share, other.mean)
            step[(self.weight == 0) | (other.weight == 0)] = 0.0  # nothing lies between
            scatter = self.scatter + other.scatter + step**2 * (self.weight * share)
            return ColumnMoments(weight, mean, scatter)

    def total(self) -> ColumnMoments:
        """Take all classes together."""
        with np.errstate(over="ignore", invalid="ignore"):  # the machine refuses what overflows
            weight = self.weight.sum(axis=0)
            share = np.divide(self.weight, weight, out=np.zeros_like(self.weight), where=weight > 0)
            mean = (share * self.mean).sum(axis=0)
            steps = np.where(self.weight > 0, self.mean - mean, 0.0)
            between = (self.weight * steps**2).sum(axis=0)
            scatter = self.scatter.sum(axis=0) + between
        return ColumnMoments(weight[None], mean[None], scatter[None])

    def variance(self) -> Array:
        """Return the variances; zero where there is no entry."""
        known = self.weight > 0
        return np.divide(self.scatter, self.weight, out=np.zeros_like(self.scatter), where=known)

    def floors(self, share: float) -> Array:
        """Return the smallest variance of each column: a share of its variance over all classes.

        A column that is constant gets a wide one: it says nothing, whatever comes later.
        """
        every = self.total()
        variance = every.variance()[0]
        size = np.abs(every.mean[0])
        constant = np.sqrt(variance) <= _ROUNDING * size
        with np.errstate(over="ignore"):
            least = np.where(constant, np.maximum(size, 1.0) ** 2, share * variance)
        return np.asarray(np.clip(least, *_VARIANCES))


@dataclass(frozen=True, eq=False)
class ClassTables:
    """Naive Bayes as a question: the probabilities that make counts most likely.

    Attributes
    ----------
    tables : (k, S) array
        For categorical attributes, side by side: the weight of each value in each class, and after
        the last value of each a slot for values never seen, with weight zero.
    starts : (c,) int array
        Where each categorical attribute begins.
    hits, seen : (k, b) arrays
        For 0/1 attributes, the weight of ones, and of entries that are there.
    counts : (k, m) array
        Totals of columns that are counts: together one multinomial for each class.
    moments : ColumnMoments
        Of Gaussian columns.
    alpha : float
        Counts added to each value of a discrete attribute.
    floors : (g,) array
        The smallest variance of each Gaussian column.
    prior : (k,) array
        Probabilities of the classes.
    """

    tables: Array
    starts: Array
    hits: Array
    seen: Array
    counts: Array
    moments: ColumnMoments
    alpha: float
    floors: Array
    prior: Array

    def sizes(self) -> Array:
        """Count the values of each categorical attribute."""
        return np.diff(np.append(self.starts, self.tables.shape[1])) - 1


@dataclass(frozen=True, eq=False)
class ClassModel:
    """An answer to `ClassTables`: logarithms of probabilities, means and variances.

    Attributes
    ----------
    prior : (k,) array
        Log-probabilities of classes.
    tables : (k, S) array
        For categorical attributes, side by side: those of the values, and last of one never seen.
    ones, zeros : (k, b) arrays
        Those of one and of zero.
    words : (k, m) array
        Those of the columns that are counts; zero for columns that no class ever had.
    mean, variance : (k, g) arrays
        Of Gaussian columns.
    """

    prior: Array
    tables: Array
    ones: Array
    zeros: Array
    words: Array
    mean: Array
    variance: Array


def smoothed_log(count: Array, total: Array, alpha: float, values: Array | int) -> Array:
    """Return log((alpha + count) / (alpha V + total)); one in V where nothing is known."""
    below = total + alpha * np.asarray(values)
    if (below > 0).all():
        shares = count + alpha
        shares /= below
    else:
        below = np.broadcast_to(below, count.shape)
        shares = np.broadcast_to(1.0 / np.maximum(values, 1), count.shape).copy()
        np.divide(count + alpha, below, out=shares, where=below > 0)
    # exp(LOG_ZERO), not zero: one impossible word must not silence all others
    return np.asarray(np.log(np.maximum(shares, 1e-300, out=shares), out=shares))
