"""From places of rows in a space of few directions to classes: the rules of discriminants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from mercer.array_types import Array

# Of the pooled variance, which is 1 along discriminant directions, or of the largest: a class this
# narrow has no covariance. Places z = w'x are rounded to eps |z|, which leaves variances about
# eps |z| of a class that is flat, for entries of its covariance are products of one spread with
# another: eps at the origin, 2e-13 at 1000 standard deviations from there.
_FLAT = 1e-12
_FARTHEST = float(np.finfo(np.float64).max) / 4  # differences of such squares are numbers


class Rule(ABC):
    """Scores of classes, largest for the best; probabilities are their softmax."""

    @abstractmethod
    def scores(self, Z: Array) -> Array:
        """Score places Z (n, k): (n, classes)."""

    def log_probabilities(self, Z: Array) -> Array:
        """Return the logarithms of the probabilities of the classes."""
        return np.asarray(log_softmax(self.scores(Z), axis=1))


@dataclass(frozen=True, eq=False)
class SharedGaussian(Rule):
    """Gaussians of one spherical covariance: score log prior - |z - m_c|^2 / 2 variance.

    The part |z|^2 that all classes share is left out, so scores are linear in z.

    Attributes
    ----------
    means : (classes, k) array
        Places of the class means.
    priors : (classes,) array
        Probabilities of the classes before z is seen.
    variance : float
        Of every class in every direction.
    """

    means: Array
    priors: Array
    variance: float = 1.0

    def scores(self, Z: Array) -> Array:
        """Score places."""
        own = 0.5 * np.square(self.means).sum(axis=1)
        with np.errstate(divide="ignore"):  # a prior of zero excludes the class
            return np.asarray((Z @ self.means.T - own) / self.variance + np.log(self.priors))


@dataclass(frozen=True, eq=False)
class Mahalanobis(Rule):
    """The nearest class mean, in units of the covariance of each class: -d_c(z)^2 / 2.

    Attributes
    ----------
    means : (classes, k) array
        Places of the class means.
    factors : (classes, k, k) array
        Inverse Cholesky factors of the covariances.
    """

    means: Array
    factors: Array

    @classmethod
    def of(cls, means: Array, covariances: Array) -> Mahalanobis | None:
        """Factor the covariances; return None if one of them is flat to rounding."""
        if not np.isfinite(covariances).all():
            return None
        variances = np.linalg.eigvalsh(covariances)
        if (variances[:, 0] <= _FLAT * np.maximum(variances[:, -1], 1.0)).any():
            return None
        factors = np.linalg.inv(np.linalg.cholesky(covariances))
        return cls(means, factors) if np.isfinite(factors).all() else None

    def scores(self, Z: Array) -> Array:
        """Score places."""
        away = Z[:, None, :] - self.means
        with np.errstate(over="ignore"):  # so far from all classes that none is the nearest
            squared = np.square(np.einsum("cij,ncj->nci", self.factors, away)).sum(-1)
        return np.asarray(-0.5 * np.minimum(squared, _FARTHEST))
