"""Rows k(x, z) of points x at landmarks z, with weights and targets, where a card works with them.

The features of a point are F = L^-1 k(z, x) for k(z, z) = L L'. Sums over all points are made on
the card, and only what has the size of the landmarks travels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from mercer.array_types import Array
from mercer.backends.stored import Factor
from mercer.card_rows import CardRows


class LandmarkRows(ABC):
    """F of all points, with the weights s and the targets y of a least squares problem."""

    @abstractmethod
    def pull(self) -> tuple[Array, Array]:
        """Return F'S y (m, t) and F's (m,), to the digits of float32."""

    @abstractmethod
    def product(self, W: Array, level: Array) -> tuple[Array, Array]:
        """Return F'S (F W - level) and the sums of S (F W - level), to the digits of float32."""

    @abstractmethod
    def residual(self, W: Array, level: Array) -> tuple[Array, Array, Array]:
        """Return F'S (y + level - F W), the sums of S (y + level - F W), and F's, in float64.

        Of rows that are stored to 40 bits, or in full.
        """

    @abstractmethod
    def factor(self, index: Array, share: Array, lone: float, penalty: float) -> Factor:
        """Return the Cholesky factor of G'TG + penalty I for some points and their weights T.

        G are features less their mean by T. The landmarks count beside, each with a weight `lone`:
        one may be alone in its direction, which other points would not show. What is not positive
        definite for rounding gets more on its diagonal.
        """


class BoundRows(ABC):
    """F of all points, before weights and targets are known."""

    @abstractmethod
    def __call__(self, weights: Array, targets: Array, bias: bool) -> LandmarkRows:
        """Send weights (n,) and targets (n, t); say whether there is a bias."""

    @abstractmethod
    def squared_lengths(self) -> Array:
        """Return the squared lengths of F in float64, (n,)."""

    @abstractmethod
    def features(self) -> CardRows | None:
        """Return F in float64, where it was made; None where that has no room for it."""
