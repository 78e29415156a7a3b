"""Classes as Gaussians: the means and covariances that make the rows of each most likely."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from mercer.arguments import renamed_field
from mercer.array_types import Array

_ROUNDING = 1e-15  # deviation of a constant column that is only rounding, over its value


@dataclass(frozen=True, eq=False)
class Scatter:
    """What is known of rows in classes: all that a Gaussian needs, and it adds up.

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
        with np.errstate(over="ignore", invalid="ignore"):  # the machine refuses what overflows
            weight = self.weight + other.weight
            share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
            step = other.mean - self.mean
            old = (self.weight > 0)[:, None]
            mean = np.where(old, self.mean + step * share[:, None], other.mean)
            between = _squares(step, self.weight * share, self.scatter.ndim)
            return Scatter(weight, mean, self.scatter + other.scatter + between)

    def total(self) -> Scatter:
        """Take all classes together, as one."""
        with np.errstate(over="ignore", invalid="ignore"):  # the machine refuses what overflows
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
    """An answer to `GaussianClasses`: covariances E = D V diag(values) V' D.

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
    """Gaussian classes as a question.

    Attributes
    ----------
    moments : Scatter
        What is known of the rows.
    round : bool
        Whether covariances are multiples of the identity; then `moments` has diagonals.
    shared : bool
        Whether all classes have one covariance.
    floor : float
        The smallest eigenvalue of a covariance, of columns scaled to variance one over all rows.
    unbiased : bool
        Whether to divide by the weight less one (shared: less the number of classes).
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
        # raised to the floor, such a column gets a variance so large that it says nothing
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
