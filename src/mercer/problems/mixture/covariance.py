"""Shapes of Gaussian parts: spherical, diagonal, shared, full.

Each shape knows the two ways of a pass. The *fast* way: log N(x) is linear in a few products of the
entries of x, so that all parts on a block of rows are one matrix product, and their moments another
one with the same products. The *exact* way takes the mean of each part off first: about twice the
work, and no digits are lost where parts are narrow and far from the origin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array


@dataclass(frozen=True, eq=False)
class Moments:
    """Expected sums over rows, about an anchor for each part.

    Attributes
    ----------
    mass : (k,) array
        How many rows each part is responsible for.
    first : (k, d) array
        Sums of x - anchor.
    second : array
        Sums of products of x - anchor; its form belongs to the shape.
    anchor : (k, d) array
        What was taken off.
    """

    mass: Array
    first: Array
    second: Array
    anchor: Array


class CovarianceStructure(ABC):
    """What covariances look like."""

    @abstractmethod
    def free(self, k: int, d: int) -> int:
        """Count the free numbers in the covariances of k parts."""

    @abstractmethod
    def small_sample(self, rows: Array, d: int) -> float:
        """Return how much too likely fitted rows are, beyond one nat for each free number.

        The expectation for normal parts of `rows` rows each (Hurvich and Tsai 1989 for one
        column): it is what the price (1/2) ln n of a number forgets, of order 1 / rows, and
        infinite where there are too few rows to expect anything.
        """

    @abstractmethod
    def roots(self, covariances: Array, k: int, d: int) -> Array:
        """Return W with W'W the inverse of a covariance: (k, d) for diagonals, else (k, d, d)."""

    @abstractmethod
    def products(self, Z: Array) -> Array:
        """Return the products that log-densities are linear in: (D, m) for columns Z (d, m)."""

    @abstractmethod
    def natural(self, roots: Array) -> Array:
        """Return the coefficients of the products: (k, D)."""

    @abstractmethod
    def from_products(self, sums: Array, d: int) -> Array:
        """Return second moments from expected sums of products (k, D)."""

    @abstractmethod
    def scatter(self, centred: Array, share: Array) -> Array:
        """Return the second moments of one part's centred rows (m, d), each with its share."""

    @abstractmethod
    def covariances(self, moments: Moments, floor: float) -> Array:
        """Return the most likely covariances that have no variance below the floor."""

    @abstractmethod
    def at_floor(self, covariances: Array, floor: float, k: int, d: int) -> Array:
        """Count, for each part, the directions in which the variance is at the floor: (k,)."""

    @abstractmethod
    def lifted(self, covariances: Array, floor: float) -> Array:
        """Raise variances below the floor to it."""

    @abstractmethod
    def expanded(self, covariances: Array, k: int, d: int) -> Array:
        """Return all covariances as matrices: (k, d, d)."""


class _Axes(CovarianceStructure):
    """Shapes without covariances between columns: roots are (k, d)."""

    def at_floor(self, covariances: Array, floor: float, k: int, d: int) -> Array:
        """Count."""
        each = np.broadcast_to(covariances.reshape(k, -1), (k, d))
        return np.asarray((each <= floor * (1 + 1e-9)).sum(axis=1))

    def lifted(self, covariances: Array, floor: float) -> Array:
        """Raise."""
        return np.maximum(covariances, floor)

    def expanded(self, covariances: Array, k: int, d: int) -> Array:
        """Write out."""
        each = np.broadcast_to(covariances.reshape(k, -1), (k, d))
        return np.asarray(each[:, :, None] * np.eye(d))

    def roots(self, covariances: Array, k: int, d: int) -> Array:
        """Invert."""
        each = np.broadcast_to(covariances.reshape(k, -1), (k, d))
        return np.asarray(1.0 / np.sqrt(each))


class Spherical(_Axes):
    """One variance for each part: (k,)."""

    def free(self, k: int, d: int) -> int:
        """Count."""
        return k

    def small_sample(self, rows: Array, d: int) -> float:
        """Count d means and a variance out of d values a row."""
        return excess((d + 1) * (d + 2), (rows - 1) * d - 2)

    def products(self, Z: Array) -> Array:
        """Multiply entries."""
        return np.asarray(np.einsum("im,im->m", Z, Z)[None])

    def natural(self, roots: Array) -> Array:
        """Write precisions as coefficients."""
        return np.asarray(-0.5 * roots[:, :1] ** 2)

    def from_products(self, sums: Array, d: int) -> Array:
        """Put sums in form."""
        return np.asarray(sums[:, 0])

    def scatter(self, centred: Array, share: Array) -> Array:
        """Sum."""
        return np.asarray(share @ np.einsum("mi,mi->m", centred, centred))

    def covariances(self, moments: Moments, floor: float) -> Array:
        """Average, and raise to the floor."""
        shift = moments.first / moments.mass[:, None]
        spread = moments.second / moments.mass - np.square(shift).sum(axis=1)
        return np.asarray(np.maximum(spread / moments.first.shape[1], floor))


class Diagonal(_Axes):
    """One variance for each part and column: (k, d)."""

    def free(self, k: int, d: int) -> int:
        """Count."""
        return k * d

    def small_sample(self, rows: Array, d: int) -> float:
        """Count a mean and a variance for each column."""
        return excess(2 * d * 3, rows - 3)

    def products(self, Z: Array) -> Array:
        """Multiply entries."""
        return np.asarray(Z * Z)

    def natural(self, roots: Array) -> Array:
        """Write precisions as coefficients."""
        return np.asarray(-0.5 * roots**2)

    def from_products(self, sums: Array, d: int) -> Array:
        """Put sums in form."""
        return sums

    def scatter(self, centred: Array, share: Array) -> Array:
        """Sum."""
        return np.asarray(share @ (centred * centred))

    def covariances(self, moments: Moments, floor: float) -> Array:
        """Average, and raise to the floor."""
        shift = moments.first / moments.mass[:, None]
        return np.asarray(np.maximum(moments.second / moments.mass[:, None] - shift**2, floor))


class Full(CovarianceStructure):
    """A covariance matrix for each part: (k, d, d)."""

    def free(self, k: int, d: int) -> int:
        """Count."""
        return k * d * (d + 1) // 2

    def small_sample(self, rows: Array, d: int) -> float:
        """Count d means and a matrix."""
        return excess(d * (d + 3) / 2 * (d + 2), rows - d - 2)

    def roots(self, covariances: Array, k: int, d: int) -> Array:
        """Invert."""
        lower = np.linalg.cholesky(covariances)
        return np.broadcast_to(np.linalg.solve(lower, np.eye(d)), (k, d, d))

    def expanded(self, covariances: Array, k: int, d: int) -> Array:
        """Write out."""
        return np.broadcast_to(covariances, (k, d, d))

    def products(self, Z: Array) -> Array:
        """Multiply entries."""
        d, m = Z.shape
        found, start = np.empty((d * (d + 1) // 2, m)), 0
        for i in range(d):  # the upper triangle, row by row
            np.multiply(Z[i], Z[i:], out=found[start : start + d - i])
            start += d - i
        return found

    def natural(self, roots: Array) -> Array:
        """Write precisions as coefficients."""
        precision = np.swapaxes(roots, 1, 2) @ roots
        d = precision.shape[1]
        upper = np.triu_indices(d)
        twice = np.where(upper[0] == upper[1], -0.5, -1.0)
        return np.asarray(precision[:, *upper] * twice)

    def from_products(self, sums: Array, d: int) -> Array:
        """Put sums in form."""
        upper = np.triu_indices(d)
        found = np.empty((len(sums), d, d))
        found[:, *upper] = sums
        found[:, upper[1], upper[0]] = sums
        return found

    def scatter(self, centred: Array, share: Array) -> Array:
        """Sum."""
        return np.asarray((centred * share[:, None]).T @ centred)

    def covariances(self, moments: Moments, floor: float) -> Array:
        """Average, and raise to the floor."""
        shift = moments.first / moments.mass[:, None]
        found = moments.second / moments.mass[:, None, None]
        return self.lifted(found - shift[:, :, None] * shift[:, None, :], floor)

    def at_floor(self, covariances: Array, floor: float, k: int, d: int) -> Array:
        """Count; eigenvalues are known to within rounding of the largest of their matrix."""
        values = np.linalg.eigvalsh(covariances)
        known = 10 * d * np.finfo(float).eps * values[..., -1:]
        at_floor = (values <= floor * (1 + 1e-6) + known).sum(axis=-1)
        return np.asarray(np.broadcast_to(at_floor, (k,)))

    def lifted(self, covariances: Array, floor: float) -> Array:
        """Raise eigenvalues: the exact maximum among matrices with none below the floor."""
        found = 0.5 * (covariances + np.swapaxes(covariances, -1, -2))
        d = found.shape[-1]
        try:  # positive definite without the floor: nothing to raise
            np.linalg.cholesky(found - floor * np.eye(d))
            return np.asarray(found)
        except np.linalg.LinAlgError:
            values, vectors = np.linalg.eigh(found)
            raised = np.maximum(values, floor)[..., None, :]
            made = (vectors * raised) @ np.swapaxes(vectors, -1, -2)
            low = (values[..., :1] < floor)[..., None]
            return np.where(low, made, found)


class Shared(Full):
    """One covariance matrix for all parts: (d, d).

    z'Pz is the same for all parts, and the sum of all zz' never changes, so that a pass needs the
    entries of x alone.
    """

    def free(self, k: int, d: int) -> int:
        """Count."""
        return d * (d + 1) // 2

    def small_sample(self, rows: Array, d: int) -> float:
        """Count k means and one matrix out of all rows."""
        k, total = len(rows), rows.sum(keepdims=True)
        return excess((k * d + d * (d + 1) / 2) * (k + d + 1), total - k - d - 1)

    def products(self, Z: Array) -> Array:
        """Multiply entries."""
        return np.empty((0, Z.shape[1]))

    def natural(self, roots: Array) -> Array:
        """Write precisions as coefficients."""
        return np.empty((len(roots), 0))

    def from_products(self, sums: Array, d: int) -> Array:
        """Put sums in form."""
        raise NotImplementedError("the sum over parts is known beforehand")

    def covariances(self, moments: Moments, floor: float) -> Array:
        """Average, and raise to the floor."""
        shift = moments.first / moments.mass[:, None]
        found = moments.second - (shift * moments.mass[:, None]).T @ shift
        return self.lifted(found / moments.mass.sum(), floor)


def excess(numbers: float, spare: Array) -> float:
    """Sum numbers / spare over the parts; infinite where nothing is to spare."""
    return float((numbers / spare).sum()) if (spare > 0).all() else np.inf
