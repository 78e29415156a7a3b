"""Posterior covariances and variances of Gaussian processes at new samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.approximation import ApproximateKernel, Nystrom
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.gram import Gram, Source
from mercer.gram.factored import FeatureFunction, over_features, squared_lengths
from mercer.gram.precomputed import rectangle
from mercer.kernels import Kernel
from mercer.machines.gaussian_process.problem import (
    LaplacePosterior,
    ProcessPosterior,
    ProcessRegression,
)
from mercer.resources import rows_at_once
from mercer.rows.points import is_objects, row_count, take, to_dense

# --- regression ----------------------------------------------------------------------------------
#
# The posterior covariance of a regression at new samples, from the factor of the fit.

_ROWS_AT_ONCE = 512  # new rows: one triangular solve between two chances to hear Ctrl-C


class PosteriorSpread(ABC):
    """Covariance of the latent function at new rows."""

    @abstractmethod
    def prior(self, Z: Points) -> Array:
        """Return k(z, z') for all pairs of rows."""

    @abstractmethod
    def prior_variance(self, Z: Points) -> Array:
        """Return k(z, z)."""

    @abstractmethod
    def explained(self, Z: Points) -> tuple[Array, Array]:
        """Return V (r, m) and e (m,): the posterior covariance is the prior's - V'V + e e'."""

    def covariance(self, Z: Points, prior: Array | None = None) -> Array:
        """Return the posterior covariance of all pairs of rows."""
        V, e = self.explained(Z)
        found = (self.prior(Z) if prior is None else prior) - V.T @ V + np.outer(e, e)
        diagonal = found.diagonal().copy()
        np.fill_diagonal(found, np.maximum(diagonal, 0.0))  # below by rounding only
        half = 0.5 * found
        return np.asarray(half + half.T)

    def variance(self, Z: Points, prior: Array | None = None) -> Array:
        """Return the posterior variance at every row."""
        found = self.prior_variance(Z) if prior is None else prior.copy()
        step = rows_at_once(self.width, _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            rows = slice(first, first + step)
            V, e = self.explained(take(Z, rows))
            found[rows] += e**2 - np.einsum("ij,ij->j", V, V)
        return np.maximum(found, 0.0)  # below by rounding only

    @property
    @abstractmethod
    def width(self) -> int:
        """How long the columns of V are."""

    @abstractmethod
    def inverse_diagonal(self, noises: Array) -> Array:
        """Return the diagonal of (K + noises)^-1, bordered by the bias, at the training rows."""


@dataclass(frozen=True, eq=False)
class PointSpread(PosteriorSpread):
    """From a kernel and training rows.

    Attributes
    ----------
    source : Source
        The kernel on the training rows.
    factor : (n, n) array
        Lower Cholesky factor of K + noise S^-1.
    ones : (n,) array or None
        factor^-1 1 where there is a bias.
    """

    source: Source
    factor: Array
    ones: Array | None

    @property
    def width(self) -> int:
        """Count the training rows."""
        return len(self.factor)

    def prior(self, Z: Points) -> Array:
        """Evaluate the kernel."""
        return np.array(choose_backend().pairs(self.source.expression, Z, None, np.float64).dense())

    def prior_variance(self, Z: Points) -> Array:
        """Evaluate the diagonal."""
        return np.array(choose_backend().diagonal(self.source.expression, Z, np.float64))

    def explained(self, Z: Points) -> tuple[Array, Array]:
        """Solve with the factor."""
        return solved(self.factor, self.ones, self.source.cross(Z).dense())

    def inverse_diagonal(self, noises: Array) -> Array:
        """Square the inverse of the factor."""
        return squared_inverse(self.factor, self.ones)


@dataclass(frozen=True, eq=False)
class MatrixSpread(PosteriorSpread):
    """From a given matrix, which does not hold k(z, z) of new rows.

    Attributes
    ----------
    given : int
        How many training rows the matrix has.
    rows : (n,) int array
        Those of positive weight.
    factor, ones : array
        As in `PointSpread`.
    """

    given: int
    rows: Array
    factor: Array
    ones: Array | None

    @property
    def width(self) -> int:
        """Count the training rows."""
        return len(self.factor)

    def prior(self, Z: Points) -> Array:
        """Refuse: it must be given."""
        raise ValueError(
            "GaussianProcess: with a precomputed kernel the spread at new rows needs their own "
            "k(z, z), which is not in X; pass prior_cov (their matrix, or its diagonal)"
        )

    prior_variance = prior

    def explained(self, Z: Points) -> tuple[Array, Array]:
        """Solve with the factor."""
        return solved(self.factor, self.ones, across_of(None, self.given, self.rows, Z))

    def inverse_diagonal(self, noises: Array) -> Array:
        """Square the inverse of the factor."""
        return squared_inverse(self.factor, self.ones)


@dataclass(frozen=True, eq=False)
class FeatureSpread(PosteriorSpread):
    """From features: the covariance is noise (phi - mean)'(F'SF + noise I)^-1 (phi - mean).

    Attributes
    ----------
    features : callable
        The feature map phi.
    factor : (D, D) array
        Lower Cholesky factor of F'SF + noise I, columns centred if there is a bias.
    mean : (D,) array
        What features are centred by; zero without a bias.
    noise, level : float
        Variance of the noise, and of the constant.
    own : (n,) array
        Posterior variances at the training rows.
    """

    features: FeatureFunction
    factor: Array
    mean: Array
    noise: float
    level: float
    own: Array

    @classmethod
    def of(cls, problem: ProcessRegression, factor: Array) -> FeatureSpread:
        """Take features and weights of a problem."""
        F: Any = problem.gram.factor
        s, noise, bias = problem.row_weights, problem.noise, problem.bias
        total = float(s.sum())
        mean = np.asarray(F.T @ s) / total if bias else np.zeros(len(factor))
        level = noise / total if bias else 0.0
        bare = cls(problem.gram.features, factor, mean, noise, level, np.zeros(0))
        return replace(bare, own=bare.variance_of(F))

    @property
    def width(self) -> int:
        """Count the features."""
        return len(self.factor)

    def prior(self, Z: Points) -> Array:
        """Multiply features."""
        phi = features_of(self.features, Z)
        return np.asarray(phi @ phi.T)

    def prior_variance(self, Z: Points) -> Array:
        """Return squared lengths."""
        return over_features(squared_lengths, self.features, Z, self.width)

    def covariance(self, Z: Points, prior: Array | None = None) -> Array:
        """Return the posterior covariance, of which nothing cancels."""
        half = self._half(features_of(self.features, Z))
        return np.asarray(self.noise * (half.T @ half) + self.level)

    def variance(self, Z: Points, prior: Array | None = None) -> Array:
        """Return the posterior variance, of which nothing cancels."""
        return over_features(self.variance_of, self.features, Z, self.width)

    def variance_of(self, phi: Any) -> Array:
        """Return the posterior variance at rows of features."""
        found = np.empty(phi.shape[0])
        step = rows_at_once(self.width, 8 * _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            rows = slice(first, first + step)
            half = self._half(to_dense(phi[rows]))
            found[rows] = self.noise * np.einsum("ij,ij->j", half, half) + self.level
        return found

    def inverse_diagonal(self, noises: Array) -> Array:
        """Read it off what the rows explain of themselves."""
        return np.asarray((1.0 - self.own / noises) / noises)

    def explained(self, Z: Points) -> tuple[Array, Array]:
        """Refuse: nothing is taken off the prior."""
        raise TypeError("FeatureSpread does not take anything off the prior")

    def _half(self, phi: Array) -> Array:
        return np.asarray(linalg.solve_triangular(self.factor, (phi - self.mean).T, lower=True))


def features_of(features: FeatureFunction, Z: Points) -> Array:
    """Return the features of new rows, dense and in float64."""
    return to_dense(features(Z if is_objects(Z) else Z.astype(np.float64, copy=False)))


def across_of(source: Source | None, given: int, rows: Array, Z: Points) -> Array:
    """Return k(Z, X) for the training rows that were used, from rows or a given matrix."""
    if source is not None:
        return np.asarray(source.cross(Z).dense())
    return np.asarray(rectangle(Z, given)[:, rows], dtype=np.float64)


def solved(factor: Array, ones: Array | None, across: Array) -> tuple[Array, Array]:
    """Return factor^-1 k(X, Z), and what a constant of flat prior adds."""
    V = np.asarray(linalg.solve_triangular(factor, across.T, lower=True, check_finite=False))
    if ones is None:
        return V, np.zeros(len(across))
    return V, (1.0 - ones @ V) / np.linalg.norm(ones)


def squared_inverse(factor: Array, ones: Array | None) -> Array:
    """Return the diagonal of the inverse of factor factor', bordered by the bias."""
    n = len(factor)
    found, step = np.empty(n), rows_at_once(n, _ROWS_AT_ONCE, arrays=2)
    for first in range(0, n, step):
        deadline.check()
        last = min(n, first + step)
        below = np.zeros((n - first, last - first))  # of the identity: zero above
        below[: last - first] = np.eye(last - first)
        V = linalg.solve_triangular(factor[first:, first:], below, lower=True)
        found[first:last] = np.einsum("ij,ij->j", V, V)
        if ones is not None:
            found[first:last] -= (ones[first:] @ V) ** 2 / float(ones @ ones)
    return found


def spread_of(problem: ProcessRegression, value: ProcessPosterior, given: int, rows: Array) -> Any:
    """Return the covariance at new rows.

    Parameters
    ----------
    problem : ProcessRegression
        What was asked.
    value : ProcessPosterior
        The answer.
    given : int
        How many rows the fit was given.
    rows : (n,) int array
        Those of positive weight.
    """
    gram: Gram = problem.gram
    factor = value.factor
    if gram.factor is not None:
        return FeatureSpread.of(problem, factor)
    ones = None
    if problem.bias:
        ones = linalg.solve_triangular(factor, np.ones(len(factor)), lower=True)
    if gram.source is None:
        return MatrixSpread(given, rows, factor, ones)
    return PointSpread(gram.source, factor, ones)


# --- classification ------------------------------------------------------------------------------
#
# Variances of the latent functions of a classifier at new samples.


class LatentSpread(ABC):
    """Variances of the latent functions at new rows."""

    @abstractmethod
    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Return the variances at new rows: (m, c), a column for each function.

        Parameters
        ----------
        Z : Points
            New rows.
        prior : (m,) array or None
            Their k(z, z), where they do not follow from the rows.
        """


@dataclass(frozen=True, eq=False)
class LaplaceSpread(LatentSpread):
    """k(z, z) - |L^-1 W^1/2 k(X, z)|^2 for each question, L the factor of I + W^1/2 K W^1/2.

    Attributes
    ----------
    source : Source or None
        The kernel on the training rows; None for a given matrix.
    given : int
        How many training rows there were.
    rows : (n,) int array
        Those of positive weight.
    roots : (n, c) array
        Roots of the curvatures W.
    factors : (c, n, n) array
        The factors L.
    """

    source: Source | None
    given: int
    rows: Array
    roots: Array
    factors: Array

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Take what the rows explain off the prior, which a given matrix does not hold."""
        if prior is None:
            if self.source is None:
                raise ValueError(
                    "GaussianProcessClassifier: with a precomputed kernel the variance at new rows "
                    "needs their own k(z, z), which is not in X; pass prior_var"
                )
            prior = choose_backend().diagonal(self.source.expression, Z, np.float64)
        n, c = self.roots.shape
        found = np.empty((row_count(Z), c))
        step = rows_at_once(n, _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            some = slice(first, first + step)
            across = across_of(self.source, self.given, self.rows, take(Z, some)).T
            for t in range(c):
                half = linalg.solve_triangular(
                    self.factors[t], self.roots[:, [t]] * across, lower=True, check_finite=False
                )
                found[some, t] = prior[some] - np.einsum("ij,ij->j", half, half)
        return np.maximum(found, 0.0)  # below by rounding only


@dataclass(frozen=True, eq=False)
class LaplaceFeatureSpread(LatentSpread):
    """|L^-1 phi(z)|^2 for each question, L the factor of I + F'W F: nothing cancels.

    Attributes
    ----------
    features : callable
        The feature map phi.
    factors : (c, D, D) array
        The factors L.
    """

    features: FeatureFunction
    factors: Array

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Solve with the factors."""
        c, D = self.factors.shape[:2]
        found = np.empty((row_count(Z), c))
        step = rows_at_once(D, 8 * _ROWS_AT_ONCE, arrays=3)
        for first in range(0, len(found), step):
            deadline.check()
            some = slice(first, first + step)
            phi = features_of(self.features, take(Z, some)).T
            for t in range(c):
                half = linalg.solve_triangular(self.factors[t], phi, lower=True, check_finite=False)
                found[some, t] = np.einsum("ij,ij->j", half, half)
        return found


def latent_spread_of(gram: Gram, value: LaplacePosterior, given: int, rows: Array) -> LatentSpread:
    """Return the variances at new rows.

    Parameters
    ----------
    gram : Gram
        K of the fit.
    value : LaplacePosterior
        The answer.
    given : int
        How many rows the fit was given.
    rows : (n,) int array
        Those of positive weight.
    """
    if value.weights is not None:
        features: Any = gram
        return LaplaceFeatureSpread(features.features, value.factors)
    return LaplaceSpread(gram.source, given, rows, value.roots, value.factors)


# --- residual of landmarks -----------------------------------------------------------------------
#
# What landmarks leave out of a prior, which data tell nothing about: it is added to variances.
#
# The posterior of features alone is sure of itself where no landmark is near, since f is taken
# for zero there. With k(z, z') less the kernel of the landmarks added, the prior at new rows is
# the kernel's own (the deterministic training conditional of Quinonero-Candela and Rasmussen,
# 2005).


def variance_left_out(kernel: Kernel, Z: Points) -> Array:
    """Return k(z, z) less what landmarks explain of it; zero for other kernels: (n,)."""
    if not _has_landmarks(kernel):
        return np.zeros(Z.shape[0])
    explained = over_features(squared_lengths, kernel.phi, Z, kernel.phi.dimension)
    return np.asarray(np.maximum(kernel.kernel.diag(Z) - explained, 0.0))


def covariance_left_out(kernel: Kernel, Z: Points) -> Array:
    """Return k(z, z') less what landmarks explain of it; zero for other kernels: (n, n)."""
    if not _has_landmarks(kernel):
        return np.zeros((Z.shape[0], Z.shape[0]))
    phi = kernel.phi(Z)
    left: Array = np.asarray(kernel.kernel(Z), dtype=np.float64) - phi @ phi.T
    np.fill_diagonal(left, np.maximum(left.diagonal(), 0.0))  # below by rounding only
    return left


def _has_landmarks(kernel: Kernel) -> TypeGuard[ApproximateKernel]:
    """Return whether the rest is a kernel itself; that of random features is but noise."""
    return isinstance(kernel, ApproximateKernel) and isinstance(kernel.approximation, Nystrom)
