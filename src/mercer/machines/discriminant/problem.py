"""Directions in which classes lie apart: S_B w = lambda (S_W + penalty I) w in feature space.

S_W = sum_i q_i (phi(x_i) - m_c)(phi(x_i) - m_c)', c the class of row i and m_c its mean, is the
scatter within classes; S_B = sum_c p_c (m_c - m)(m_c - m)', m = sum_c p_c m_c, is the scatter
between them. S_B has rank classes - 1 at most, so there are no more directions than that, and it
has no inverse: the penalty belongs to the other side.

A direction is w = sum_i a_i phi(x_i). Everything is then said by values f = K a at the rows: S_W w
has the coefficients q_i (f_i - mean of f over the class), S_B w those of B B'f.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram, Gram


@dataclass(frozen=True, eq=False)
class Directions:
    """An answer to a `Discriminant`.

    Attributes
    ----------
    values : (k,) array
        The ratios lambda, largest first.
    coef : (n, k) array or None
        The coefficients a of each direction; None where the weights say it better.
    weights : (D, k) array or None
        For K = F F': the directions w themselves. Either way w'(S_W + penalty I) w = 1.
    """

    values: Array
    coef: Array | None = None
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class Discriminant:
    """The `count` directions of largest lambda.

    Attributes
    ----------
    gram : Gram
        K.
    codes : (n,) int array
        Number of the class of each row, from 0.
    row_weights : (n,) array
        The weights q within classes, positive.
    shares : (classes,) array
        The weights p of the classes, positive, with sum 1.
    penalty : float
        Added to the scatter within classes, in its units; not negative.
    count : int
        How many directions.
    """

    gram: Gram
    codes: Array
    row_weights: Array
    shares: Array
    penalty: float
    count: int

    @property
    def averages(self) -> Array:
        """The (n, classes) matrix that turns values at the rows into means of the classes."""
        mass = np.bincount(self.codes, self.row_weights, len(self.shares))
        out = np.zeros((len(self.codes), len(self.shares)))
        out[np.arange(len(self.codes)), self.codes] = self.row_weights / mass[self.codes]
        return out

    @property
    def contrasts(self) -> Array:
        """The matrix B, (n, classes): S_B = Phi'B B'Phi for features Phi of the rows."""
        averages = self.averages
        return self.between(averages, averages @ self.shares)

    def between(self, means: Array, middle: Array) -> Array:
        """Return sqrt(p_c) (m_c - m) from columns m_c and m."""
        return np.asarray((means - middle[:, None]) * np.sqrt(self.shares))

    def within(self, f: Array) -> Array:
        """Return the coefficients of S_W w from values f (n, k) at the rows."""
        means = self.averages.T @ f
        return np.asarray(self.row_weights[:, None] * (f - means[self.codes]))

    def metric(self, f: Array, lengths: Array) -> Array:
        """Return W'(S_W + penalty I) W from values at the rows and W'W."""
        M = f.T @ self.within(f) + self.penalty * lengths
        return np.asarray((M + M.T) / 2)


def as_directions(problem: Discriminant, weights: Array) -> Directions:
    """Take weights of features from anywhere, scaled to our convention, each with its own ratio.

    Parameters
    ----------
    problem : Discriminant
        With a factored Gram.
    weights : (D, k) array
        Directions in the space of the features, of any lengths.

    Returns
    -------
    Directions
        To be judged by `mercer.certificates.certify`.
    """
    assert isinstance(problem.gram, FactoredGram)
    f = np.asarray(problem.gram.factor @ weights)
    scale = np.sqrt(np.diagonal(problem.metric(f, weights.T @ weights)))
    ratios = np.square(problem.contrasts.T @ f).sum(axis=0) / scale**2
    return Directions(ratios, weights=weights / scale)
