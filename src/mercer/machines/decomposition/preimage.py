"""Pre-images: fixed-point iteration, learned maps, and inverse transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, singledispatch
from math import inf, sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array, FrozenArray, Points
from mercer.kernels import (
    Constant,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
)
from mercer.kernels.algebra import Product, Sum
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.decomposition.components import FeatureSubspace, PointSubspace
from mercer.machines.ridge.kernel_ridge import KernelRidge
from mercer.resources import require_memory, rows_at_once
from mercer.rows.points import is_objects, to_dense

# --- preimage weights ----------------------------------------------------------------------------
#
# How strongly a training point pulls a pre-image towards itself: minus the slope of the kernel.
#
# For k = h(|x - y|^2) the function sum_i g_i k(x_i, z) is stationary where sum_i g_i p(x_i, z)
# (x_i - z) = 0 with p = -2 h'. That p is a kernel of the same family again.


def preimage_weight(kernel: Kernel) -> Kernel | None:
    """Return p for kernels of a distance that are smooth at zero; None for all others."""
    if isinstance(kernel, Gaussian):
        return kernel  # up to a factor; with one scale per feature, the pull is the same for each
    if isinstance(kernel, Product) and len(kernel.parts) == 1:
        return preimage_weight(kernel.parts[0])
    try:
        return _weight_kernel(kernel)
    except (OverflowError, ZeroDivisionError):  # a scale whose square is no number
        return None


@singledispatch
def _weight_kernel(kernel: Kernel) -> Kernel | None:
    return None


@_weight_kernel.register
def _(kernel: Gaussian) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray):
        return None  # beside others: each feature would have a pull of its own
    return float(kernel.scale) ** -2 * kernel  # type: ignore[arg-type]


@_weight_kernel.register
def _(kernel: RationalQuadratic) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray):
        return None
    scale, alpha = float(kernel.scale), float(kernel.alpha)  # type: ignore[arg-type]
    return scale**-2 * RationalQuadratic(alpha + 1.0, scale * sqrt(alpha / (alpha + 1.0)))


@_weight_kernel.register
def _(kernel: Matern) -> Kernel | None:
    if isinstance(kernel.scale, FrozenArray) or kernel.nu <= 1:
        return None  # at nu <= 1 the pull at zero distance is infinite
    scale, nu = float(kernel.scale), float(kernel.nu)  # type: ignore[arg-type]
    if nu == inf:
        return scale**-2 * Gaussian(scale)
    factor = nu / ((nu - 1.0) * scale**2)
    return factor * Matern(nu - 1.0, scale * sqrt((nu - 1.0) / nu))


@_weight_kernel.register
def _(kernel: Product) -> Kernel | None:
    inner = _weight_kernel(kernel.parts[0]) if len(kernel.parts) == 1 else None
    return None if inner is None or kernel.factor == 0 else kernel.factor * inner


@_weight_kernel.register
def _(kernel: Sum) -> Kernel | None:
    moving = [part for part in kernel.parts if not isinstance(part, Constant)]
    pulls = [_weight_kernel(part) for part in moving]
    if not pulls or any(pull is None for pull in pulls):
        return None
    return Sum(tuple(pull for pull in pulls if pull is not None))


# --- preimage ------------------------------------------------------------------------------------
#
# Pre-images: points of the input space whose images come closest to given points of feature
# space.
#
# The target is P = sum_i g_i phi(x_i). For a kernel of a distance k(z, z) is constant, so the
# nearest phi(z) is where J(z) = sum_i g_i k(x_i, z) is largest. Its stationary points satisfy z =
# sum_i g_i p_i x_i / sum_i g_i p_i with the pulls p_i at z: a step there is a step uphill of
# length one over the sum. Steps that go down (some g may be negative) are halved.

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


# --- inversion -----------------------------------------------------------------------------------
#
# From scores back to rows: exactly, by iteration, by regression, or not at all and why.

_BLOCK = 1 << 20  # entries of K(z, x) at once
_ARRAYS = 6  # of that shape: coefficients, K and pulls, and what is left of them after a step


class Inverse(ABC):
    """A way from scores to rows."""

    @abstractmethod
    def find(self, scores: Array) -> Preimages:
        """Return rows for scores (m, k)."""


@dataclass(frozen=True, eq=False)
class Impossible(Inverse):
    """No way, and why."""

    reason: str

    def find(self, scores: Array) -> Preimages:
        """Refuse."""
        raise ValueError(self.reason)


@dataclass(frozen=True, eq=False)
class Exact(Inverse):
    """The linear kernel: the point of the subspace is a row."""

    subspace: FeatureSubspace

    def find(self, scores: Array) -> Preimages:
        """Add up the directions."""
        rows = scores @ self.subspace.directions.T + self.subspace.mean
        m = len(scores)
        return Preimages(rows, np.zeros(m), np.ones(m, dtype=bool), 0)


@dataclass(frozen=True, eq=False)
class Iterated(Inverse):
    """The fixed-point iteration, from the training point with the nearest scores."""

    subspace: PointSubspace
    kernel: Kernel
    pull: Kernel
    training: Array

    @cached_property
    def _search(self) -> FixedPoint:
        rows = self.subspace.source.X
        what = f"{rows.shape[0]} training rows, not sparse, for pre-images"
        require_memory(8 * rows.shape[0] * rows.shape[1], what, "Use preimage='learned'.")
        return FixedPoint(self.kernel, self.pull, to_dense(rows))

    def find(self, scores: Array) -> Preimages:
        """Go through the targets in blocks."""
        n = len(self.training)
        block = rows_at_once(n, max(1, _BLOCK // n), arrays=_ARRAYS)
        parts = [self._block(scores[i : i + block]) for i in range(0, len(scores), block)]
        return joined(parts) if parts else self._block(scores)

    def _block(self, scores: Array) -> Preimages:
        """Write the targets over the training points, and climb."""
        space = self.subspace
        coef = scores @ space.coef.T + space.shares
        lengths = np.square(scores).sum(axis=1)
        norms = lengths + 2.0 * scores @ space.centre[:-1] + space.centre[-1]
        return self._search.find(coef, self._nearest(scores), norms)

    def _nearest(self, scores: Array) -> Array:
        own = np.square(self.training).sum(axis=1)
        return np.asarray((own - 2.0 * scores @ self.training.T).argmin(axis=1))


@dataclass(frozen=True, eq=False)
class Learned(Inverse):
    """Kernel ridge regression from scores to rows, learned when first asked for."""

    training: Array
    rows: Points
    weights: Array

    @cached_property
    def _regression(self) -> KernelRidge:
        rows = to_dense(self.rows)
        share = self.weights / self.weights.sum()
        # scale as the default of the Gaussian kernel, but where all scores are equal: any will do
        spread = float((share @ np.square(self.training - share @ self.training)).sum())
        kernel = Gaussian(sqrt(spread / 2) if spread > 0 else 1.0)
        return KernelRidge("loo", kernel=kernel).fit(self.training, rows, self.weights)

    def find(self, scores: Array) -> Preimages:
        """Predict rows; how close their images come is not known."""
        rows, m = self._regression.predict(scores), len(scores)
        return Preimages(rows, np.full(m, np.nan), np.ones(m, dtype=bool), 0)


def choose(machine: Any, rows: Points, training: Array, weights: Array) -> Inverse:
    """Return the way back that a machine's kernel and `preimage` allow.

    Parameters
    ----------
    machine : PCA
        With `kernel_` and the subspace found.
    rows : Points
        The training rows.
    training : (n, k) array
        Their scores.
    weights : (n,) array
        How often each row counts.
    """
    kernel, space, name = machine.kernel_, machine._subspace, type(machine).__name__
    if isinstance(kernel, Linear) and isinstance(space, FeatureSubspace):
        return Exact(space)
    if isinstance(kernel, Precomputed):
        return Impossible(f"{name}: a precomputed kernel knows no rows that could be pre-images")
    if is_objects(rows):
        return Impossible(f"{name}: rows that are sequences have no pre-images; numbers do")
    pull = preimage_weight(kernel)
    if machine.preimage == "learned" or (machine.preimage == "auto" and pull is None):
        return Learned(training, rows, weights)
    if pull is None or not isinstance(space, PointSubspace):
        return Impossible(
            f"{name}: preimage='fixed_point' needs a kernel of a distance that is smooth at zero "
            f"(Gaussian, RationalQuadratic, Matern with nu > 1, their sums), not {kernel!r}; use "
            "preimage='learned'"
        )
    return Iterated(space, kernel, pull, training)


def check_scores(machine: Any, X: Any, count: int) -> Array:
    """Check scores that are to be turned back."""
    owner = type(machine).__name__
    scores = read_array(owner, X, "X", dtype=np.float64, ensure_min_samples=0)
    refuse_nonfinite(owner, scores)
    if scores.shape[1] != count:
        raise ValueError(
            f"{owner}: X has {scores.shape[1]} columns, but there are {count} components"
        )
    return np.asarray(scores)
