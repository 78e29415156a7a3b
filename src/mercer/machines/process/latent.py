"""Mean and variance of the latent function of a classifier at new rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.gram import Gram, Source
from mercer.gram.storage.factored import FeatureFunction
from mercer.gram.storage.precomputed import rectangle
from mercer.points import is_objects, row_count, take, to_dense
from mercer.problems.process.classification import LaplacePosterior
from mercer.resources import rows_at_once

_ROWS_AT_ONCE = 512  # new rows: one triangular solve between two chances to hear Ctrl-C


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
            across = self._across(take(Z, some)).T
            for t in range(c):
                half = linalg.solve_triangular(
                    self.factors[t], self.roots[:, [t]] * across, lower=True, check_finite=False
                )
                found[some, t] = prior[some] - np.einsum("ij,ij->j", half, half)
        return np.maximum(found, 0.0)  # below by rounding only

    def _across(self, Z: Points) -> Array:
        if self.source is not None:
            return np.asarray(self.source.cross(Z).dense())
        return np.asarray(rectangle(Z, self.given)[:, self.rows], dtype=np.float64)


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
            phi = self._phi(take(Z, some)).T
            for t in range(c):
                half = linalg.solve_triangular(self.factors[t], phi, lower=True, check_finite=False)
                found[some, t] = np.einsum("ij,ij->j", half, half)
        return found

    def _phi(self, Z: Points) -> Array:
        return to_dense(self.features(Z if is_objects(Z) else Z.astype(np.float64, copy=False)))


def spread_of(gram: Gram, value: LaplacePosterior, given: int, rows: Array) -> LatentSpread:
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
