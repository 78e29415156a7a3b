"""Directions of two views whose variates correlate most: canonical correlation analysis.

max c_x'G_x G_y c_y over c_x'M_x c_x = c_y'M_y c_y = 1, each pair orthogonal (in M) to those before.

G are the centred Grams of the two views of the same rows, M = G^2 plus a penalty (`Shrinkage`). The
maxima are the singular values of M_x^-1/2 G_x G_y M_y^-1/2; without penalties they are the cosines
of the principal angles between the spaces of variates that the two views can reach.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram

# --- how a penalty enters a canonical correlation: three forms, a factor for every eigenvalue each
#
# With G = U diag(s) U' the (centred) Gram of a view, a direction is sum_j c_j phi(x_j), its variate
# on the training rows is u = G c, and the penalised variance c'Mc is set to one. In each form M has
# the eigenvectors of G, so u = U diag(shrink(s)) p for a unit vector p: the penalty shrinks what
# lies along small eigenvalues, and without it nothing is shrunk.


class Shrinkage(ABC):
    """A form of the penalised variance c'Mc."""

    @abstractmethod
    def shrink(self, s: Array, penalty: float) -> Array:
        """Return the factors of the variates, between 0 and 1, for positive eigenvalues s."""

    @abstractmethod
    def inverse_root(self, s: Array, penalty: float) -> Array:
        """Return the eigenvalues of M^-1/2, which turns unit vectors into coefficients."""

    @abstractmethod
    def metric(self, c: Array, Gc: Array, penalty: float) -> Array:
        """Return c'Mc for columns c of coefficients, from their variates G c."""

    @abstractmethod
    def times(self, gram: Gram, c: Array, Gc: Array, penalty: float) -> Array:
        """Return M c."""


@dataclass(frozen=True)
class Squared(Shrinkage):
    """M = (G + penalty)^2: variates shrink by s / (s + penalty), as predictions of ridge do."""

    def shrink(self, s: Array, penalty: float) -> Array:
        """Return s / (s + penalty)."""
        return np.asarray(s / (s + penalty))

    def inverse_root(self, s: Array, penalty: float) -> Array:
        """Return 1 / (s + penalty)."""
        return np.asarray(1.0 / (s + penalty))

    def metric(self, c: Array, Gc: Array, penalty: float) -> Array:
        """Return |G c + penalty c|^2."""
        whole = Gc + penalty * c
        return np.asarray(whole.T @ whole)

    def times(self, gram: Gram, c: Array, Gc: Array, penalty: float) -> Array:
        """Multiply by G + penalty twice."""
        whole = Gc + penalty * c
        return np.asarray(gram @ whole + penalty * whole)


@dataclass(frozen=True)
class Norm(Shrinkage):
    """M = G^2 + penalty G: the variance plus penalty times the squared norm; ridge CCA."""

    def shrink(self, s: Array, penalty: float) -> Array:
        """Return the square root of s / (s + penalty)."""
        return np.sqrt(s / (s + penalty))

    def inverse_root(self, s: Array, penalty: float) -> Array:
        """Return 1 / sqrt(s (s + penalty))."""
        return np.asarray(1.0 / (np.sqrt(s) * np.sqrt(s + penalty)))

    def metric(self, c: Array, Gc: Array, penalty: float) -> Array:
        """Return |G c|^2 + penalty c'Gc."""
        norms = c.T @ Gc
        return np.asarray(Gc.T @ Gc + 0.5 * penalty * (norms + norms.T))

    def times(self, gram: Gram, c: Array, Gc: Array, penalty: float) -> Array:
        """Multiply G c + penalty c by G."""
        return np.asarray(gram @ (Gc + penalty * c))


@dataclass(frozen=True)
class Lengths(Shrinkage):
    """M = G^2 + penalty^2: the variance plus a penalty on the squared length of coefficients."""

    def shrink(self, s: Array, penalty: float) -> Array:
        """Return s / sqrt(s^2 + penalty^2)."""
        return np.asarray(s / np.hypot(s, penalty))

    def inverse_root(self, s: Array, penalty: float) -> Array:
        """Return 1 / sqrt(s^2 + penalty^2)."""
        return np.asarray(1.0 / np.hypot(s, penalty))

    def metric(self, c: Array, Gc: Array, penalty: float) -> Array:
        """Return |G c|^2 + |penalty c|^2."""
        size = penalty * c
        return np.asarray(Gc.T @ Gc + size.T @ size)

    def times(self, gram: Gram, c: Array, Gc: Array, penalty: float) -> Array:
        """Multiply by G twice."""
        return np.asarray(gram @ Gc + penalty * (penalty * c))


# --- the problem and its answer ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CanonicalPairs:
    """An answer to a `Correlation`.

    Attributes
    ----------
    values : (k,) array
        The (penalised) correlations, largest first, within [0, 1]. Zero beyond the smaller rank.
    coef_x, coef_y : (n, k) array
        The coefficients c of both views; columns of zeros beyond the smaller rank.
    rank_x, rank_y : int or None
        How many directions each view has; None where the answer did not need to know.
    weights_x, weights_y : (D, k) array or None
        For a view with dense features, G = F F': the directions w = F'c themselves. Where columns
        differ in scale, c holds them less exactly.
    bound : float
        How far the correlations may be from those of the problem because the Grams were
        approximated: 0 for exact answers. Pessimistic.
    """

    values: Array
    coef_x: Array
    coef_y: Array
    rank_x: int | None = None
    rank_y: int | None = None
    bound: float = 0.0
    weights_x: Array | None = None
    weights_y: Array | None = None

    def leading(self, count: int) -> CanonicalPairs:
        """Return the first pairs."""
        names = ("coef_x", "coef_y", "weights_x", "weights_y")
        held = {name: getattr(self, name) for name in names}
        cut = {name: array[:, :count] for name, array in held.items() if array is not None}
        return replace(self, values=self.values[:count], **cut)


@dataclass(frozen=True, eq=False)
class Correlation:
    """The `count` largest canonical correlations of two views.

    Attributes
    ----------
    gram_x, gram_y : Gram
        The Grams of both views, centred (`mercer.gram.centered`); for weighted rows also scaled by
        the square roots of the weights (`mercer.gram.scaled`).
    count : int
        How many pairs.
    penalties : tuple of two floats
        The penalty of each view, in units of the eigenvalues of its Gram.
    form : Shrinkage
        How a penalty enters.
    """

    gram_x: Gram
    gram_y: Gram
    count: int
    penalties: tuple[float, float] = (0.0, 0.0)
    form: Shrinkage = field(default_factory=Squared)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Correlation: count={self.count} must be at least 1")
        if self.gram_x.shape != self.gram_y.shape:
            raise ValueError(
                f"Correlation: the views must have the same rows, but there are "
                f"{self.gram_x.shape[0]} and {self.gram_y.shape[0]}"
            )
        if not all(np.isfinite(p) and p >= 0 for p in self.penalties):
            raise ValueError(
                f"Correlation: penalties={self.penalties} must be finite and not negative"
            )

    @property
    def views(self) -> tuple[tuple[Gram, float], tuple[Gram, float]]:
        """Both Grams with their penalties."""
        return (self.gram_x, self.penalties[0]), (self.gram_y, self.penalties[1])


def column_sizes(gram: Gram) -> Array:
    """Return the length of each column of centred dense features; 0 where all of it is rounding.

    Taking off the mean leaves of a constant column what rounding makes of it.
    """
    sizes = np.linalg.norm(gram.factor, axis=0)
    mean = np.abs(getattr(gram.features, "mean", np.zeros(1)))
    rounding = 4.0 * float(np.finfo(float).eps) * np.sqrt(gram.shape[0]) * mean
    return np.where(sizes > rounding, sizes, 0.0)
