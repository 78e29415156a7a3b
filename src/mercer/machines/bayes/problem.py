"""Problems of Bayes classifiers: class tables, Gaussian columns, Gaussian classes, smoothing."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from mercer.arguments import renamed_field
from mercer.array_types import Array

# --- class tables --------------------------------------------------------------------------------
#
# Counts in each class, and the probabilities that make them most likely.
#
# Attributes are independent given the class. A discrete one with V values has the probabilities
# (alpha + count) / (alpha V + total); a Gaussian one the mean and variance of its class.

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
        """Add the rows of another sample, without differences of squares of large numbers."""
        with np.errstate(over="ignore", invalid="ignore"):  # the estimator raises for overflow
            weight = self.weight + other.weight
            share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            step = other.mean - self.mean
            mean = np.where(self.weight > 0, self.mean + step * share, other.mean)
            step[(self.weight == 0) | (other.weight == 0)] = 0.0  # nothing lies between
            scatter = self.scatter + other.scatter + step**2 * (self.weight * share)
            return ColumnMoments(weight, mean, scatter)

    def total(self) -> ColumnMoments:
        """Take all classes together."""
        with np.errstate(over="ignore", invalid="ignore"):  # the estimator raises for overflow
            weight = self.weight.sum(axis=0)
            share = np.divide(self.weight, weight, out=np.zeros_like(self.weight), where=weight > 0)
            mean = (share * self.mean).sum(axis=0)
            steps = np.where(self.weight > 0, self.mean - mean, 0.0)
            between = (self.weight * steps**2).sum(axis=0)
            scatter = self.scatter.sum(axis=0) + between
        return ColumnMoments(weight[None], mean[None], scatter[None])

    def variance(self) -> Array:
        """Return the variances; zero without entries."""
        known = self.weight > 0
        return np.divide(self.scatter, self.weight, out=np.zeros_like(self.scatter), where=known)

    def floors(self, share: float) -> Array:
        """Return the smallest variance of each column: a fraction of its variance over all classes.

        A constant column gets a large one, so that it has no effect on any prediction.
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
    """Naive Bayes as a problem: the probabilities that make counts most likely.

    Attributes
    ----------
    tables : (k, S) array
        For categorical attributes, side by side: the weight of each value in each class, and after
        the last value of each a slot for values never seen, with weight zero.
    starts : (c,) int array
        Index at which each categorical attribute begins.
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
    """A solution of `ClassTables`: logarithms of probabilities, means and variances.

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
    """Return log((alpha + count) / (alpha V + total)); one in V without counts."""
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


# --- column gaussians ----------------------------------------------------------------------------
#
# A Gaussian for each column and class, its variance raised by a constant.


@dataclass(frozen=True, eq=False)
class ColumnGaussians:
    """Means and variances of columns in classes, as scikit-learn's `GaussianNB` asks for them.

    Attributes
    ----------
    X : (n, d) array
        Rows.
    codes : (n,) int array
        Their classes, 0, ..., k - 1.
    weights : (n,) array
        How often each counts.
    classes : int
        k.
    added : float
        Term added to each variance.
    """

    X: Array
    codes: Array
    weights: Array
    classes: int
    added: float


@dataclass(frozen=True, eq=False)
class MeansAndVariances:
    """A solution of `ColumnGaussians`: two arrays of shape (k, d)."""

    mean: Array
    variance: Array


# --- gaussian classes ----------------------------------------------------------------------------
#
# Classes as Gaussians: the means and covariances that make the rows of each most likely.


@dataclass(frozen=True, eq=False)
class Scatter:
    """Sufficient statistics of a Gaussian for rows in classes; they can be added.

    Attributes
    ----------
    weight : (k,) array
        Total weight of each class.
    mean : (k, d) array
        Means.
    scatter : (k, d, d) or (k, d) array
        Weighted sums of (x - mean)(x - mean)', or of their diagonals.
    """

    weight: Array
    mean: Array
    scatter: Array

    def merged(self, other: Scatter) -> Scatter:
        """Add the rows of another sample."""
        with np.errstate(over="ignore", invalid="ignore"):  # the estimator raises for overflow
            weight = self.weight + other.weight
            share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            step = other.mean - self.mean
            old = (self.weight > 0)[:, None]
            mean = np.where(old, self.mean + step * share[:, None], other.mean)
            between = _squares(step, self.weight * share, self.scatter.ndim)
            return Scatter(weight, mean, self.scatter + other.scatter + between)

    def total(self) -> Scatter:
        """Take all classes together, as one."""
        with np.errstate(over="ignore", invalid="ignore"):  # the estimator raises for overflow
            share = self.weight / self.weight.sum()
            mean = share @ self.mean
            between = _squares(self.mean - mean, self.weight, self.scatter.ndim)
            scatter = (self.scatter + between).sum(axis=0)
        return Scatter(self.weight.sum(keepdims=True), mean[None], scatter[None])

    def pooled(self) -> Scatter:
        """Add the scatters within the classes, as if all means were one."""
        every = self.scatter.sum(axis=0, keepdims=True)
        return Scatter(self.weight.sum(keepdims=True), self.total().mean, every)


def _squares(steps: Array, weights: Array, ndim: int) -> Array:
    """Return weighted outer products of steps with themselves, or their diagonals."""
    steps = np.where(weights[:, None] > 0, steps, 0.0)  # what weighs nothing is not infinite
    if ndim == 2:
        return np.asarray(weights[:, None] * steps**2)
    return np.asarray(weights[:, None, None] * steps[:, :, None] * steps[:, None, :])


@dataclass(frozen=True, eq=False)
class Spread:
    """A solution of `GaussianClasses`: covariances E = D V diag(values) V' D.

    Attributes
    ----------
    mean : (k, d) array
        Means of the classes.
    scale : (d,) array
        The diagonal D.
    values : (m, d) array
        Eigenvalues in units of D; one row for each class, or one for all.
    vectors : (m, d, d) array or None
        V, one matrix for each; None stands for the identity.
    """

    mean: Array
    scale: Array
    values: Array
    vectors: Array | None

    def covariance(self, c: int) -> Array:
        """Return the c-th covariance; its diagonal if V is the identity."""
        if self.vectors is None:
            return np.asarray(self.values[c] * self.scale**2)
        half = self.scale[:, None] * self.vectors[c]
        return np.asarray((half * self.values[c]) @ half.T)


@renamed_field("moments", "held")
@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """Gaussian classes as a problem.

    Attributes
    ----------
    moments : Scatter
        Sufficient statistics of the rows.
    round : bool
        Whether covariances are multiples of the identity; then `moments` has diagonals.
    shared : bool
        Whether all classes have one covariance.
    floor : float
        The smallest eigenvalue of a covariance, of columns scaled to variance one over all rows.
    unbiased : bool
        Whether to divide by the weight minus one (shared: minus the number of classes).
    """

    moments: Scatter
    round: bool
    shared: bool
    floor: float
    unbiased: bool

    def filled(self) -> Scatter:
        """Return each class without rows the mean and scatter of all rows."""
        moments, every = self.moments, self.moments.total()
        empty = moments.weight == 0
        if not empty.any():
            return moments
        weight = np.where(empty, every.weight, moments.weight)
        mean = np.where(empty[:, None], every.mean, moments.mean)
        wide = empty.reshape(-1, *[1] * (moments.scatter.ndim - 1))
        return Scatter(weight, mean, np.where(wide, every.scatter, moments.scatter))

    def scale(self) -> Array:
        """Return the standard deviation of each column over all rows; wide for constant columns."""
        every = self.moments.total()
        squares = every.scatter[0] if every.scatter.ndim == 2 else np.diagonal(every.scatter[0])
        variance = squares / every.weight[0]
        mean = every.mean[0]
        constant = np.sqrt(variance) <= _ROUNDING * np.abs(mean)
        if self.round:
            width = sqrt(float(variance.mean())) if not constant.all() else 1.0
            return np.full(len(mean), width)
        # raised to the floor, such a column gets a variance so large that it has no effect
        with np.errstate(over="ignore"):
            wide = np.maximum(np.abs(mean), 1.0) / np.sqrt(self.floor)
        return np.asarray(np.where(constant, wide, np.sqrt(variance)))

    def sample(self) -> tuple[Array, Array]:
        """Return the sample covariances, in units of `scale`, and the weight each rests on."""
        moments = self.moments.pooled() if self.shared else self.filled()
        lost = len(self.moments.weight) if self.shared else 1
        weight = np.maximum(moments.weight - (lost if self.unbiased else 0), 0.0)
        scale = self.scale()
        each = np.where(weight > 0, weight, np.inf).reshape(-1, *[1] * (moments.scatter.ndim - 1))
        # by one scale after the other: their product may be beyond float64
        other = scale if moments.scatter.ndim == 2 else scale[:, None]
        found = moments.scatter / each / scale / other
        if self.round:
            found = np.repeat(found.mean(axis=1, keepdims=True), found.shape[1], axis=1)
        return found, weight


# --- smoothed shares -----------------------------------------------------------------------------
#
# Smoothed fractions of counts: the probabilities of naive Bayes as scikit-learn stores them.


@dataclass(frozen=True, eq=False)
class SmoothedShares:
    """Distributions over values, each the most likely one for its counts.

    Attributes
    ----------
    counts : tuple of (k, V) arrays
        Of each table: the weight of each value (column) in each class (row).
    alpha : float or array that fits every table
        Term added to each count.
    """

    counts: tuple[Array, ...]
    alpha: Any


@dataclass(frozen=True, eq=False)
class LogShares:
    """A solution of `SmoothedShares`.

    Attributes
    ----------
    logs : tuple of (k, V) arrays
        Logarithms of the probabilities.
    """

    logs: tuple[Array, ...]
