"""y = W (x - mean): uncorrelated variables of variance one, as far from Gaussian as they can be.

In white coordinates z (covariance I) the rows of W are orthonormal directions b, and what is
sought is a local maximum of J = s (E G(b'z) - E G(gaussian)), of the sum over all directions at
once (`joint`) or of one direction after another, each orthogonal to those before. The sign s is
that of E[g(y) y] - E[g'(y)], g = G', which is zero for a Gaussian y: with it the local maxima are
the fixed points of FastICA, where sources that are independent lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.problems.independent.contrasts import Contrast


@dataclass(frozen=True, eq=False)
class Unmixing:
    """An answer to `IndependentComponents`.

    Attributes
    ----------
    mean : (d,) array
        The mean of the rows.
    components : (k, d) array
        W: y = W (x - mean).
    """

    mean: Array
    components: Array


@dataclass(frozen=True, eq=False)
class IndependentComponents:
    """Find directions along which rows look least Gaussian.

    Attributes
    ----------
    rows : Points
        Rows.
    weights : (n,) array
        How often each row counts, all positive.
    count : int
        How many directions.
    contrast : Contrast
        What tells a Gaussian from others.
    joint : bool
        Whether the sum over all directions is to be largest, or each after those before it.
    space : int
        The leading principal components that directions are sought among; at least `count`.
    """

    rows: Points
    weights: Array
    count: int
    contrast: Contrast
    joint: bool
    space: int

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.space:
            raise ValueError(
                f"IndependentComponents: count={self.count} must be from 1 to space={self.space}"
            )
        if self.joint and self.count != self.space:
            raise ValueError(
                f"IndependentComponents: count={self.count} directions together span their space, "
                f"so that space={self.space} must be the same; joint=False takes fewer"
            )

    @property
    def share(self) -> Array:
        """The weights as shares of their sum."""
        return np.asarray(self.weights / self.weights.sum())


# --- J and its derivatives: on the rotations, for all directions at once -------------------------


@dataclass(frozen=True, eq=False)
class JointMoments:
    """Moments of Y = Z B' that the sum of contrasts changes by, when B is turned to exp(A) B.

    Attributes
    ----------
    excess : (k,) array
        E G(y_i) - E G(gaussian).
    pull : (k, k) array
        E[g(y_i) y_j], g = G'.
    stiffness : (k,) array
        E[g'(y_i)].
    """

    excess: Array
    pull: Array
    stiffness: Array

    @property
    def signs(self) -> Array:
        """The signs s with which contrasts are added up."""
        return np.where(np.diag(self.pull) < self.stiffness, -1.0, 1.0)

    @property
    def slope(self) -> Array:
        """The derivative of J by A_ij, i before j: s_i E[g(y_i) y_j] - s_j E[g(y_j) y_i]."""
        signed = self.signs[:, None] * self.pull
        return np.asarray(signed - signed.T)


def joint_moments(Y: Array, share: Array, contrast: Contrast) -> JointMoments:
    """Return the moments of variables Y, (n, k)."""
    excess = share @ contrast.value(Y) - contrast.gaussian
    g, stiff = contrast.slopes(Y)
    return JointMoments(excess, (share[:, None] * g).T @ Y, share @ stiff)


def joint_curvature(Y: Array, share: Array, contrast: Contrast, at: JointMoments) -> Array:
    """Return the second derivatives of J by the entries of A above the diagonal, in order.

    exp(A) = I + A + A^2 / 2 + ...: a term from the square of the step, and one from A^2.
    """
    k = Y.shape[1]
    stiff = contrast.slopes(Y)[1]
    M = np.zeros((k, k, k, k))
    for i in range(k):
        M[i, :, i, :] += at.signs[i] * (Y.T * (share * stiff[:, i])) @ Y
    signed = at.signs[:, None] * at.pull
    for j in range(k):
        M[:, j, j, :] += signed / 2
        M[j, :, :, j] += signed.T / 2
    a, b = np.triu_indices(k, 1)
    upper, lower = M[a, b], M[b, a]
    found = upper[:, a, b] - upper[:, b, a] - lower[:, a, b] + lower[:, b, a]
    return np.asarray((found + found.T) / 2)


# --- and on the sphere, for one direction --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SingleMoments:
    """Moments of y = Z b.

    Attributes
    ----------
    excess : float
        E G(y) - E G(gaussian).
    sign : float
        The sign s.
    pull : (p,) array
        E[g(y) z].
    stiffness : float
        E[g'(y)].
    """

    excess: float
    sign: float
    pull: Array
    stiffness: float

    def slope(self, b: Array) -> Array:
        """Return the derivative of J along the sphere at b."""
        return np.asarray(self.sign * (self.pull - (self.pull @ b) * b))


def single_moments(Z: Array, b: Array, share: Array, contrast: Contrast) -> SingleMoments:
    """Return the moments of one direction b of white rows Z, (n, p)."""
    y = Z @ b
    excess = float(share @ contrast.value(y)) - contrast.gaussian
    g, stiff = contrast.slopes(y)
    stiffness = float(share @ stiff)
    sign = -1.0 if float(share @ (g * y)) < stiffness else 1.0
    return SingleMoments(excess, sign, (share * g) @ Z, stiffness)


def single_curvature(
    Z: Array, b: Array, share: Array, contrast: Contrast, at: SingleMoments
) -> Array:
    """Return the second derivatives of J along the sphere at b: (p - 1, p - 1)."""
    tangent = tangent_basis(b)
    across = Z @ tangent
    stiff = contrast.slopes(Z @ b)[1]
    inner = (across.T * (share * stiff)) @ across - (at.pull @ b) * np.eye(len(b) - 1)
    return np.asarray(at.sign * (inner + inner.T) / 2)


def tangent_basis(b: Array) -> Array:
    """Return orthonormal columns orthogonal to unit columns b, (p,) or (p, j)."""
    columns = b.reshape(len(b), -1)
    return np.asarray(np.linalg.qr(columns, mode="complete")[0][:, columns.shape[1] :])
