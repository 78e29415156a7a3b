"""Eigenfunctions of the Gaussian kernel under a normal density, in closed form.

For k(x, y) = exp(-b (x - y)^2), variance 1 / (4 a), c = sqrt(a^2 + 2 a b) and A = a + b + c:

    lambda_j = sqrt(2 a / A) (b / A)^j,
    psi_j(x) = (c / a)^(1/4) (2^j j!)^(-1/2) exp(-(c - a) x^2) H_j(sqrt(2 c) x).

In several columns, rows are divided by the scales and turned to the axes of their covariance, where
kernel and density are products over columns, and so are the eigenfunctions.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array, FrozenArray
from mercer.kernels.expansion.densities import NormalDensity
from mercer.kernels.expansion.nystrom import Eigenfunctions
from mercer.kernels.families.radial import Gaussian
from mercer.points import as_points, to_dense


@dataclass(frozen=True, eq=False)
class HermiteEigenfunctions(Eigenfunctions):
    """Products of Hermite functions.

    Attributes
    ----------
    degrees : int array of shape (m, d)
        The degree of each function along each axis.
    axes : array of shape (d, d)
        Maps rows less their mean to the axes, in units of the scale.
    a : array of shape (d,)
        1 / (4 variance) along each axis, in units of the scale.
    """

    degrees: Array
    axes: Array
    a: Array

    def __call__(self, X: Any) -> Array:
        """Evaluate the eigenfunctions at rows: (n, m)."""
        rows = to_dense(as_points(X))
        mean = np.asarray(self.density.mean)  # type: ignore[attr-defined]
        if rows.shape[1] != len(mean):
            raise ValueError(f"X has {rows.shape[1]} columns; the density has {len(mean)}")
        Z = (rows - mean) @ self.axes
        out = np.ones((len(Z), len(self.degrees)))
        for i, a in enumerate(self.a):
            out *= _functions(Z[:, i], float(a), int(self.degrees[:, i].max()))[
                self.degrees[:, i]
            ].T
        return out


def hermite_eigenfunctions(
    k: Gaussian, density: NormalDensity, count: int
) -> HermiteEigenfunctions:
    """Return the first eigenfunctions, by the size of their eigenvalues.

    Parameters
    ----------
    k : Gaussian
        One scale, or one for each column.
    density : NormalDensity
        Any mean and covariance.
    count : int
        How many.
    """
    covariance = np.asarray(density.covariance)
    d = len(covariance)
    scale = k.scale.array if isinstance(k.scale, FrozenArray) else np.full(d, float(k.scale))  # type: ignore[arg-type]
    if len(scale) != d:
        raise ValueError(
            f"eigenfunctions: the kernel has {len(scale)} scales, the density {d} columns"
        )
    variances, turn = np.linalg.eigh(covariance / scale / scale[:, None])
    a = 1.0 / (4.0 * variances)
    first, ratio = _eigenvalues(a)
    degrees = _largest_products(np.log(ratio), count)
    values = np.exp(np.log(first).sum() + degrees @ np.log(ratio))
    return HermiteEigenfunctions(k, density, values, 1.0, degrees, turn / scale[:, None], a)


def _eigenvalues(a: Array, b: float = 0.5) -> tuple[Array, Array]:
    """Return the largest eigenvalue along each axis, and the ratio of each to the one before."""
    A = a + b + np.sqrt(a * a + 2 * a * b)
    return np.sqrt(2 * a / A), b / A


def _functions(x: Array, a: float, degree: int, b: float = 0.5) -> Array:
    """Return psi_0, ..., psi_degree along one axis, by the recurrence of Hermite's polynomials."""
    c = np.sqrt(a * a + 2 * a * b)
    u = np.sqrt(2 * c) * x
    out = np.empty((degree + 1, len(x)))
    out[0] = (c / a) ** 0.25 * np.exp(-2 * a * b / (c + a) * x * x)  # c - a without cancellation
    if degree:
        out[1] = np.sqrt(2.0) * u * out[0]
    for j in range(1, degree):
        out[j + 1] = np.sqrt(2 / (j + 1)) * u * out[j] - np.sqrt(j / (j + 1)) * out[j - 1]
    return out


def _largest_products(logs: Array, count: int) -> Array:
    """Return the `count` vectors of degrees with the largest sum of degree times log, in order."""
    start = (0,) * len(logs)
    waiting, seen = [(0.0, start)], {start}
    found: list[tuple[int, ...]] = []
    while len(found) < count:
        _, degrees = heapq.heappop(waiting)
        found.append(degrees)
        for i in range(len(logs)):
            larger = (*degrees[:i], degrees[i] + 1, *degrees[i + 1 :])
            if larger not in seen:
                seen.add(larger)
                heapq.heappush(waiting, (-float(np.dot(larger, logs)), larger))
    return np.array(found)
