"""Contrasts: expectations E G(y) that tell how far from Gaussian a variable of variance one is.

|E G(y) - E G(z)|, z a standard Gaussian, is zero for a Gaussian y. Its square is, up to a factor,
an approximation of the negentropy of y (Hyvarinen, Fast and robust fixed-point algorithms for
independent component analysis, IEEE Transactions on Neural Networks 10 (1999)).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer.array_types import Array


class Contrast(ABC):
    """A smooth even function G, its first two derivatives, and its mean under a Gaussian."""

    gaussian: ClassVar[float]

    @abstractmethod
    def value(self, y: Array) -> Array:
        """Return G(y)."""

    @abstractmethod
    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return G'(y) and G''(y)."""


@dataclass(frozen=True)
class LogCosh(Contrast):
    """G(y) = log cosh y, for sources of any kind; G' = tanh."""

    gaussian = 0.3745672074914380

    def value(self, y: Array) -> Array:
        """Return log cosh y, without overflow."""
        size = np.abs(y)
        return np.asarray(size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0))

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return tanh y and its derivative."""
        g = np.tanh(y)
        return g, 1.0 - g**2


@dataclass(frozen=True)
class Cube(Contrast):
    """G(y) = y^4 / 4: a fourth of the kurtosis; a single outlier may decide it."""

    gaussian = 0.75

    def value(self, y: Array) -> Array:
        """Return y^4 / 4."""
        return np.asarray(y**4 / 4.0)

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return y^3 and 3 y^2."""
        return y**3, 3.0 * y**2


@dataclass(frozen=True)
class NegativeBell(Contrast):
    """G(y) = -exp(-y^2 / 2): outliers do not count, for sources with heavy tails."""

    gaussian = -(0.5**0.5)

    def value(self, y: Array) -> Array:
        """Return -exp(-y^2 / 2)."""
        return np.asarray(-np.exp(-0.5 * y**2))

    def slopes(self, y: Array) -> tuple[Array, Array]:
        """Return y exp(-y^2 / 2) and its derivative."""
        bell = np.exp(-0.5 * y**2)
        return y * bell, (1.0 - y**2) * bell


CONTRASTS: dict[str, Contrast] = {"logcosh": LogCosh(), "cube": Cube(), "exp": NegativeBell()}
"""The contrasts by the names that scikit-learn has for them."""


def non_gaussianity(Y: Array, share: Array, contrast: Contrast) -> Array:
    """Return |E G(y) - E G(z)| of each column of variance one, rows counting by their share."""
    return np.asarray(np.abs(share @ contrast.value(Y) - contrast.gaussian))
