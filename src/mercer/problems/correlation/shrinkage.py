"""How a penalty enters a canonical correlation: three forms, a factor for every eigenvalue each.

With G = U diag(s) U' the (centred) Gram of a view, a direction is sum_j c_j phi(x_j), its variate
on the training rows is u = G c, and the penalised variance c'Mc is set to one. In each form M has
the eigenvectors of G, so u = U diag(shrink(s)) p for a unit vector p: the penalty shrinks what lies
along small eigenvalues, and without it nothing is shrunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram


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
        return np.asarray(Gc.T @ Gc + penalty**2 * (c.T @ c))

    def times(self, gram: Gram, c: Array, Gc: Array, penalty: float) -> Array:
        """Multiply by G twice."""
        return np.asarray(gram @ Gc + penalty**2 * c)
