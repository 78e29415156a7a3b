"""Mixtures of Gaussians: what a pass over the rows is, fast where that is safe, else exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, pi

import numpy as np

from mercer.array_types import Array
from mercer.problems.mixture.covariance import CovarianceStructure, Moments, Shared
from mercer.problems.mixture.mixture import (
    EMPTY,
    EStep,
    Mixture,
    extrapolated,
    log_shares,
    packed_shares,
    simplex,
    simplex_fault,
    softened,
)
from mercer.problems.mixture.seeding import grouped
from mercer.row_chunks import added, chunked, slices

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

    def m_step(self, parts: GaussianParts, sums: Moments) -> GaussianParts:
        """Fit a Gaussian to each part's share of the rows; parts without rows stay."""
        empty = sums.mass < EMPTY * self.total
        mass = np.where(empty, 1.0, sums.mass)
        safe = Moments(mass, np.where(empty[:, None], 0.0, sums.first), sums.second, sums.anchor)
        means = np.where(empty[:, None], parts.means, sums.anchor + safe.first / mass[:, None])
        if isinstance(self.shape, Shared):
            safe = Moments(np.maximum(sums.mass, 1e-300), safe.first, sums.second, sums.anchor)
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
        return self.m_step(parts, Moments(mass, first, second, anchor))

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
        one = Moments(np.array([self.total]), np.zeros((1, len(mean))), scatter, mean[None])
        pooled = Moments(one.mass, one.first, scatter[0], one.anchor)
        moments = pooled if isinstance(self.shape, Shared) else one
        found = self.shape.covariances(moments, self.floor)
        return int(self.shape.at_floor(found, self.floor, 1, len(mean))[0])

    @cached_property
    def _scatter(self) -> Array:
        """Return the sum of all zz', for the shared shape."""
        return np.asarray((self.X * self.weights[:, None]).T @ self.X)

    def _fast(self, parts: GaussianParts, roots: Array) -> tuple[float, Moments]:
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
        return total, Moments(mass, sums[:, -d:], second, np.zeros((k, d)))

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

    def _exact(self, parts: GaussianParts, roots: Array) -> tuple[float, Moments]:
        found = chunked(lambda chunk: self._exact_chunk(parts, roots, chunk), len(self.X))
        total = float(added(found, 0))
        mass, first, second = (added(found, place) for place in (1, 2, 3))
        pooled = isinstance(self.shape, Shared)
        second = second.sum(axis=0) if pooled else second
        return total, Moments(mass, first, second, parts.means)

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
