"""Pre-images: points of the input space whose images come closest to given points of feature space.

The target is P = sum_i g_i phi(x_i). For a kernel of a distance k(z, z) is constant, so the nearest
phi(z) is where J(z) = sum_i g_i k(x_i, z) is largest. Its stationary points satisfy
z = sum_i g_i p_i x_i / sum_i g_i p_i with the pulls p_i at z: a step there is a step uphill of
length one over the sum. Steps that go down (some g may be negative) are halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel

_STEADY = 0.1  # share of the absolute pulls that their sum must reach to be divided by
_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Preimages:
    """Points whose images are near given points of feature space.

    Attributes
    ----------
    points : (m, d) array
        The points.
    squared_distance : (m,) array
        Squared distance, in feature space, of their images from the given points; NaN where that
        was not computed (learned pre-images).
    converged : (m,) bool array
        Whether the iteration came to rest.
    iterations : int
        Steps taken, by the slowest.
    """

    points: Array
    squared_distance: Array
    converged: Array
    iterations: int


def joined(parts: list[Preimages]) -> Preimages:
    """Put pre-images found in blocks together."""
    return Preimages(
        np.vstack([part.points for part in parts]),
        np.concatenate([part.squared_distance for part in parts]),
        np.concatenate([part.converged for part in parts]),
        max(part.iterations for part in parts),
    )


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """The fixed-point iteration for a kernel of a distance.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    pull : Kernel
        Its `preimage_weight`.
    points : (n, d) array
        The training points.
    tol : float
        Steps below tol times the spread of the points count as rest.
    max_iter : int
        Largest number of steps.
    """

    kernel: Kernel
    pull: Kernel
    points: Array
    tol: float = 1e-7
    max_iter: int = 1000

    def find(self, coef: Array, start: Array, norms: Array) -> Preimages:
        """Find pre-images.

        Parameters
        ----------
        coef : (m, n) array
            g of each target.
        start : (m,) int array
            The training point to start from.
        norms : (m,) array
            Squared length of each target.
        """
        points, values, converged, steps = self._block(coef, start)
        squared = np.maximum(self.kernel.diag(points) - 2.0 * values + norms, 0.0)
        return Preimages(points, squared, converged, steps)

    def _block(self, coef: Array, start: Array) -> tuple[Array, Array, Array, int]:
        """Start from the nearest training points; where that does not rest, from their mean."""
        Z, J, resting, steps = self._climb(coef, self.points[start])
        again = np.flatnonzero(~resting)
        if len(again):
            weights = np.maximum(coef[again], 0.0)
            middle = weights @ self.points / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
            other, height, rest, more = self._climb(coef[again], middle)
            better = rest | (height > J[again])
            Z[again[better]], J[again[better]] = other[better], height[better]
            resting[again], steps = rest & better, steps + more
        return Z, J, resting, steps

    def _climb(self, coef: Array, start: Array) -> tuple[Array, Array, Array, int]:
        """Return the points reached, their heights J, which came to rest, and the steps taken."""
        with np.errstate(over="ignore", invalid="ignore"):  # rows beyond 1e154 are all strangers
            rest = self.tol * max(float(np.sqrt(self.points.var(axis=0).sum())), 1e-300)
        Z, step = start.copy(), np.zeros_like(start)
        height = np.full(len(Z), -np.inf)
        resting, halved = np.zeros(len(Z), dtype=bool), np.zeros(len(Z), dtype=int)
        active, taken = np.arange(len(Z)), 0
        while len(active) and taken < self.max_iter:
            taken += 1
            ahead = Z[active] + step[active]
            K = self.kernel(ahead, self.points)
            value = np.einsum("ij,ij->i", coef[active], K)
            up = value >= height[active] - 1e-14 * np.abs(height[active])
            went, stayed = active[up], active[~up]
            Z[went], height[went], halved[went] = ahead[up], value[up], 0
            step[went] = self._step(coef[went], ahead[up], K[up])
            step[stayed] *= 0.5
            halved[stayed] += 1
            with np.errstate(over="ignore"):
                still = np.linalg.norm(step[active], axis=1) <= rest
            resting[active] = still
            active = active[~still & (halved[active] <= _HALVINGS)]
        return Z, height, resting, taken

    def _step(self, coef: Array, Z: Array, K: Array) -> Array:
        pulls = coef * (K if self.pull is self.kernel else self.pull(Z, self.points))
        total, most = pulls.sum(axis=1), np.abs(pulls).sum(axis=1)
        length = np.where(total > _STEADY * most, total, np.maximum(most, 1e-300))
        return np.asarray((pulls @ self.points - total[:, None] * Z) / length[:, None])
