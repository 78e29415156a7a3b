"""Gaussian mixtures: E and M steps, covariance structures, and regularized variances."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import numpy as np
from scipy.special import logsumexp

from mercer.array_types import Array
from mercer.machines.mixture.problem import (
    EMPTY,
    EStep,
    Mixture,
    extrapolated,
    grouped,
    log_shares,
    packed_shares,
    simplex,
    simplex_fault,
    softened,
)
from mercer.rows.chunks import added, chunked, slices

# --- covariance ----------------------------------------------------------------------------------
#
# Shapes of Gaussian parts: spherical, diagonal, shared, full.
#
# Each shape knows the two ways of a pass. The *fast* way: log N(x) is linear in a few products of
# the entries of x, so that all parts on a block of rows are one matrix product, and their moments
# another one with the same products. The *exact* way takes the mean of each part off first: about
# twice the work, and no digits are lost where parts are narrow and far from the origin.


@dataclass(frozen=True, eq=False)
class ComponentMoments:
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
    def covariances(self, moments: ComponentMoments, floor: float) -> Array:
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

    def covariances(self, moments: ComponentMoments, floor: float) -> Array:
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

    def covariances(self, moments: ComponentMoments, floor: float) -> Array:
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

    def covariances(self, moments: ComponentMoments, floor: float) -> Array:
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

    def covariances(self, moments: ComponentMoments, floor: float) -> Array:
        """Average, and raise to the floor."""
        shift = moments.first / moments.mass[:, None]
        found = moments.second - (shift * moments.mass[:, None]).T @ shift
        return self.lifted(found / moments.mass.sum(), floor)


def excess(numbers: float, spare: Array) -> float:
    """Sum numbers / spare over the parts; infinite where nothing is to spare."""
    return float((numbers / spare).sum()) if (spare > 0).all() else np.inf


# --- gaussian mixture ----------------------------------------------------------------------------
#
# Mixtures of Gaussians: what a pass over the rows is, fast where that is safe, else exact.

_ENTRIES = 1 << 17  # of a block: products, scores and rows together stay in the cache
_CANCEL = 1e7  # squared length of rows in narrowest widths, beyond which products lose digits


@dataclass(frozen=True, eq=False)
class GaussianParts:
    """An answer to a `GaussianMix`.

    Attributes
    ----------
    shares : (k,) array
        How often each part is the source.
    means : (k, d) array
        Means.
    covariances : array
        Covariances, in the form of their shape.
    likelihoods : (t,) array or None
        Objectives on the way there.
    """

    shares: Array
    means: Array
    covariances: Array
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class GaussianMix(Mixture):
    """The Gaussians under whose mixture rows are most likely.

    Attributes
    ----------
    X : (n, d) array
        Rows, float64; best centred and scaled.
    weights : (n,) array
        How often each row counts.
    count : int
        The number of parts.
    shape : Shape
        What covariances look like.
    floor : float
        The smallest variance in any direction.
    log_volume : float
        Added to the log-density of each row: rows may be given in other units.
    """

    X: Array
    weights: Array
    count: int
    shape: CovarianceStructure
    floor: float
    log_volume: float = 0.0

    def __post_init__(self) -> None:
        if self.count < 1 or not self.floor > 0:
            raise ValueError("GaussianMix: count must be at least 1, and floor above 0")

    def e_step(self, parts: GaussianParts, *, exact: bool = False) -> EStep:
        """Take expectations, with products where they are safe and cheaper."""
        k, d = parts.means.shape
        roots = self.shape.roots(parts.covariances, k, d)
        if exact or not self._quick(roots):
            total, moments = self._exact(parts, roots)
        else:
            total, moments = self._fast(parts, roots)
        total += self.log_volume * self.total
        return EStep(total, total, moments)

    def m_step(self, parts: GaussianParts, sums: ComponentMoments) -> GaussianParts:
        """Fit a Gaussian to each part's share of the rows; parts without rows stay."""
        empty = sums.mass < EMPTY * self.total
        mass = np.where(empty, 1.0, sums.mass)
        safe = ComponentMoments(
            mass, np.where(empty[:, None], 0.0, sums.first), sums.second, sums.anchor
        )
        means = np.where(empty[:, None], parts.means, sums.anchor + safe.first / mass[:, None])
        if isinstance(self.shape, Shared):
            safe = ComponentMoments(
                np.maximum(sums.mass, 1e-300), safe.first, sums.second, sums.anchor
            )
            covariances = self.shape.covariances(safe, self.floor)
        else:
            covariances = self.shape.covariances(safe, self.floor)
            covariances[empty] = parts.covariances[empty]
        return GaussianParts(sums.mass / sums.mass.sum(), means, covariances)

    def start(self, rng: np.random.RandomState) -> GaussianParts:
        """Begin with the groups of a short k-means."""
        labels = grouped(self.X, self.weights, self.count, rng)
        k, d = self.count, self.X.shape[1]
        mass = np.bincount(labels, self.weights, minlength=k)
        anchor, first, seconds = np.zeros((k, d)), np.zeros((k, d)), []
        for j in range(k):
            rows, s = self.X[labels == j], self.weights[labels == j]
            anchor[j] = s @ rows / s.sum() if len(s) else self.X[j % len(self.X)]
            seconds.append(self.shape.scatter(rows - anchor[j], s))
        pooled = isinstance(self.shape, Shared)
        second = np.sum(seconds, axis=0) if pooled else np.array(seconds)
        blank = self.shape.lifted(np.zeros_like(second), max(self.floor, 1.0))
        parts = GaussianParts(mass / mass.sum(), anchor, blank)
        return self.m_step(parts, ComponentMoments(mass, first, second, anchor))

    def extrapolate(
        self, zero: GaussianParts, one: GaussianParts, two: GaussianParts
    ) -> GaussianParts | None:
        """Extrapolate log-shares, means and covariances."""
        found = extrapolated(*map(_packed, (zero, one, two)))
        if found is None:
            return None
        k, d = two.means.shape
        logs = found[:k] - found[:k].max()
        covariances = found[k + k * d :].reshape(two.covariances.shape)
        if not np.isfinite(covariances).all():
            return None
        means = found[k : k + k * d].reshape(k, d)
        lifted = self.shape.lifted(covariances, self.floor)
        return GaussianParts(simplex(np.exp(logs), np.zeros(k)), means, lifted)

    def faults(self, parts: GaussianParts) -> float:
        """Return how far shares are from summing to one, or covariances below the floor."""
        k, d = self.count, self.X.shape[1]
        one = self.shape.scatter(np.zeros((0, d)), np.zeros(0)).shape
        form = one if isinstance(self.shape, Shared) else (k, *one)
        shapes = parts.shares.shape, parts.means.shape, parts.covariances.shape
        if shapes != ((k,), (k, d), form):
            return np.inf
        if not np.isfinite(parts.means).all() or not np.isfinite(parts.covariances).all():
            return np.inf
        each = self.shape.expanded(parts.covariances, k, d)
        skew = np.abs(each - np.swapaxes(each, 1, 2)).max() / np.abs(each).max()
        least = np.linalg.eigvalsh(each).min()
        if least <= 0:
            return np.inf
        # where variances span many decades, eigenvalues near the floor are known that well only
        below = max(0.0, 1.0 - float(least) / self.floor)
        largest = float(np.abs(parts.covariances).max())
        slack = d * np.finfo(float).eps * largest / self.floor
        return max(simplex_fault(parts.shares), float(skew), float(below - 10 * slack))

    def rounding(self, parts: GaussianParts) -> float:
        """Estimate what log-densities lose where a covariance is close to singular; no bound.

        An allowance for the fall of the likelihood in a step that should raise it.
        """
        k, d = parts.means.shape
        values = np.linalg.eigvalsh(self.shape.expanded(parts.covariances, k, d))
        condition = float((values[:, -1] / np.maximum(values[:, 0], 1e-300)).max())
        return float(d * np.finfo(float).eps * condition)

    def collapsed(self, parts: GaussianParts) -> Array:
        """Return which parts are empty, or at the floor in more directions than all rows are."""
        k, d = parts.means.shape
        at_floor = self.shape.at_floor(parts.covariances, self.floor, k, d)
        return np.asarray((at_floor > self._flat) | (parts.shares < EMPTY))

    def posterior(self, parts: GaussianParts, X: Array) -> tuple[Array, Array]:
        """Return log-densities of rows (m,) and what each part contributed (m, k); exact."""
        k, d = parts.means.shape
        roots = self.shape.roots(parts.covariances, k, d)
        density, shares = np.empty(len(X)), np.empty((len(X), k))
        for rows in slices(0, len(X), max(64, _ENTRIES // (d + k))):
            with np.errstate(over="ignore", invalid="ignore"):
                scores = _scores(parts, roots, X[rows])
            far = ~np.isfinite(scores).all(axis=0)
            if far.any():
                scores[:, far] = _far_scores(parts, roots, X[rows][far])
            density[rows] = softened(scores) + self.log_volume
            density[rows][far] = -np.finfo(float).max
            shares[rows] = scores.T
        return density, shares

    def _quick(self, roots: Array) -> bool:
        """Return whether products are accurate enough, and not more work than they save."""
        k, d = roots.shape[:2]
        narrowest = np.square(roots).reshape(k, -1).sum(axis=1).max()
        few = roots.ndim == 3 and not isinstance(self.shape, Shared) and 6 * k < d
        return bool(not few and self._longest * narrowest < _CANCEL)

    @cached_property
    def _longest(self) -> float:
        return float(np.einsum("ij,ij->i", self.X, self.X).max())

    @cached_property
    def _flat(self) -> int:
        """Count the directions in which all rows together are at the floor."""
        mean = self.weights @ self.X / self.total
        scatter = self.shape.scatter(self.X - mean, self.weights)[None]
        one = ComponentMoments(
            np.array([self.total]), np.zeros((1, len(mean))), scatter, mean[None]
        )
        pooled = ComponentMoments(one.mass, one.first, scatter[0], one.anchor)
        moments = pooled if isinstance(self.shape, Shared) else one
        found = self.shape.covariances(moments, self.floor)
        return int(self.shape.at_floor(found, self.floor, 1, len(mean))[0])

    @cached_property
    def _scatter(self) -> Array:
        """Return the sum of all zz', for the shared shape."""
        return np.asarray((self.X * self.weights[:, None]).T @ self.X)

    def _fast(self, parts: GaussianParts, roots: Array) -> tuple[float, ComponentMoments]:
        (k, d), shape = parts.means.shape, self.shape
        pulled = roots**2 * parts.means if roots.ndim == 2 else _pulled(roots, parts.means)
        constant = _constants(parts, roots) - 0.5 * np.einsum("ki,ki->k", pulled, parts.means)
        coefficients = np.hstack([shape.natural(roots), pulled])
        found = chunked(lambda chunk: self._fast_chunk(coefficients, constant, chunk), len(self.X))
        total = float(added(found, 0))
        mass, sums = added(found, 1), added(found, 2)
        second = (
            self._scatter if isinstance(shape, Shared) else shape.from_products(sums[:, :-d], d)
        )
        if isinstance(shape, Shared):  # what all parts have in common was left out
            total -= 0.5 * float(np.sum((roots[0].T @ roots[0]) * self._scatter))
        return total, ComponentMoments(mass, sums[:, -d:], second, np.zeros((k, d)))

    def _fast_chunk(
        self, coefficients: Array, constant: Array, chunk: slice
    ) -> tuple[float, Array, Array]:
        mass, sums, total = np.zeros(len(constant)), np.zeros_like(coefficients), 0.0
        step = max(256, _ENTRIES // coefficients.shape[1])
        for rows in slices(chunk.start, chunk.stop, step):
            Z = np.ascontiguousarray(self.X[rows].T)
            products = np.concatenate([self.shape.products(Z), Z])
            scores = coefficients @ products
            scores += constant[:, None]
            total += float(self.weights[rows] @ softened(scores))
            scores *= self.weights[rows]
            mass += scores.sum(axis=1)
            sums += scores @ products.T
        return total, mass, sums

    def _exact(self, parts: GaussianParts, roots: Array) -> tuple[float, ComponentMoments]:
        found = chunked(lambda chunk: self._exact_chunk(parts, roots, chunk), len(self.X))
        total = float(added(found, 0))
        mass, first, second = (added(found, place) for place in (1, 2, 3))
        pooled = isinstance(self.shape, Shared)
        second = second.sum(axis=0) if pooled else second
        return total, ComponentMoments(mass, first, second, parts.means)

    def _exact_chunk(
        self, parts: GaussianParts, roots: Array, chunk: slice
    ) -> tuple[float, Array, Array, Array]:
        k, d = parts.means.shape
        mass, first, total = np.zeros(k), np.zeros((k, d)), 0.0
        seconds = [np.zeros(()) for _ in range(k)]
        for rows in slices(chunk.start, chunk.stop, max(64, _ENTRIES // (2 * d + k))):
            X = self.X[rows]
            scores = _scores(parts, roots, X)
            total += float(self.weights[rows] @ softened(scores))
            scores *= self.weights[rows]
            mass += scores.sum(axis=1)
            for j in range(k):
                centred = X - parts.means[j]
                first[j] += scores[j] @ centred
                seconds[j] = seconds[j] + self.shape.scatter(centred, scores[j])
        return total, mass, first, np.array(seconds)


def _packed(parts: GaussianParts) -> Array:
    return np.concatenate(
        [packed_shares(parts.shares), parts.means.ravel(), parts.covariances.ravel()]
    )


def _scores(parts: GaussianParts, roots: Array, X: Array) -> Array:
    """Return log(share) + log N for all parts and rows: (k, m)."""
    scores = np.empty((len(parts.means), len(X)))
    for j, (mean, root) in enumerate(zip(parts.means, roots, strict=True)):
        white = (X - mean) * root if root.ndim == 1 else (X - mean) @ root.T
        np.einsum("mi,mi->m", white, white, out=scores[j])
    scores *= -0.5
    scores += _constants(parts, roots)[:, None]
    return scores


def _far_scores(parts: GaussianParts, roots: Array, X: Array) -> Array:
    """Rank the parts for rows so far away that squares overflow, where means do not matter: (k, m).

    The widest part that way takes the row; parts that are equally wide share it.
    """
    rows = X / np.abs(X).max(axis=1, keepdims=True)
    squares = [np.square(rows * r if r.ndim == 1 else rows @ r.T).sum(axis=1) for r in roots]
    lengths = np.where(parts.shares[:, None] > 0, np.array(squares), np.inf)
    behind = lengths > lengths.min(axis=0)
    return np.where(behind, -np.finfo(float).max, log_shares(parts.shares)[:, None])


def _constants(parts: GaussianParts, roots: Array) -> Array:
    diagonals = roots if roots.ndim == 2 else np.diagonal(roots, axis1=1, axis2=2)
    volume = np.log(diagonals).sum(axis=1) - 0.5 * parts.means.shape[1] * log(2.0 * pi)
    return np.asarray(log_shares(parts.shares) + volume)


def _pulled(roots: Array, means: Array) -> Array:
    """Return P m for each part."""
    white = np.einsum("kij,kj->ki", roots, means)
    return np.asarray(np.einsum("kij,ki->kj", roots, white))


# --- regularized mixture -------------------------------------------------------------------------
#
# A mixture of Gaussians with a constant added to variances, as scikit-learn fits it.


@dataclass(frozen=True, eq=False)
class GaussianComponents:
    """An answer to `RegularizedMixture`.

    Attributes
    ----------
    weights : (k,) array
        Shares of the components.
    means : (k, d) array
        Means.
    covariances : (k, d, d) array
        Covariances, written out.
    precisions : (k, d, d) array
        Their inverses, as they are stored beside them.
    """

    weights: Array
    means: Array
    covariances: Array
    precisions: Array


@dataclass(frozen=True, eq=False)
class RegularizedMixture:
    """Rows, and the form of the covariances that explain them.

    Attributes
    ----------
    X : (n, d) array
        Rows.
    form : str
        "full", "tied", "diag" or "spherical".
    added : float
        What is added to each variance.
    """

    X: Array
    form: str
    added: float

    def log_densities(self, value: GaussianComponents) -> Array:
        """Return log w_j + log N(x_i | m_j, C_j): (n, k)."""
        n, d = self.X.shape
        found = np.empty((n, len(value.weights)))
        for j, (mean, covariance) in enumerate(zip(value.means, value.covariances, strict=True)):
            root = np.linalg.cholesky(covariance)
            white = np.linalg.solve(root, (self.X - mean).T)
            log_volume = 2 * np.log(np.diag(root)).sum()
            found[:, j] = -0.5 * (np.square(white).sum(axis=0) + log_volume + d * np.log(2 * np.pi))
        with np.errstate(divide="ignore"):  # a component of no weight
            return np.asarray(found + np.log(value.weights))

    def mean_log_likelihood(self, value: GaussianComponents) -> float:
        """Return the mean of log P(x) over the rows."""
        return float(np.mean(logsumexp(self.log_densities(value), axis=1)))

    def step(self, value: GaussianComponents) -> GaussianComponents:
        """Return where a step of expectation maximisation leads."""
        joint = self.log_densities(value)
        chances = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        total = chances.sum(axis=0) + 10 * np.finfo(np.float64).eps  # as scikit-learn has it
        means = chances.T @ self.X / total[:, None]
        scatter = np.array([self._scatter(*one) for one in zip(chances.T, means, strict=True)])
        covariances = self._of_form(scatter, total) + self.added * np.eye(self.X.shape[1])
        return GaussianComponents(
            total / total.sum(), means, covariances, np.linalg.inv(covariances)
        )

    def _scatter(self, chances: Array, mean: Array) -> Array:
        left = self.X - mean
        return np.asarray((chances[:, None] * left).T @ left)

    def _of_form(self, scatter: Array, total: Array) -> Array:
        """Return the most likely covariances of this form."""
        if self.form == "tied":
            return np.repeat(scatter.sum(axis=0)[None] / total.sum(), len(scatter), axis=0)
        covariances = scatter / total[:, None, None]
        if self.form == "full":
            return np.asarray(covariances)
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        if self.form == "spherical":
            variances = np.repeat(variances.mean(axis=1, keepdims=True), self.X.shape[1], axis=1)
        return np.asarray(variances[:, :, None] * np.eye(self.X.shape[1]))
