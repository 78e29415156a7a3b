"""Mixtures of coins, and of bags of words: rows of numbers whose log-probability is linear in them.

Rows may be sparse and stay so: a pass is one product with the rows, and one with their transpose.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array, Points
from mercer.points import row_count, take, to_dense
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

_ENTRIES = 1 << 18
SHARP = 1e-12  # the least chance of a head or a tail: no logarithm of zero, and no bound reached
_RARE = 1e-300  # the same for words, of which there are many


@dataclass(frozen=True, eq=False)
class TableParts:
    """An answer to a `BernoulliMix` or `MultinomialMix`.

    Attributes
    ----------
    shares : (k,) array
        How often each part is the source.
    table : (k, d) array
        Chances: of a head for each coin, or of each word.
    likelihoods : (t,) array or None
        Objectives on the way there.
    """

    shares: Array
    table: Array
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class TableSums:
    """Expected sums: how many rows each part has (k,), and the sum of these rows (k, d)."""

    mass: Array
    first: Array


@dataclass(frozen=True, eq=False)
class TableMix(Mixture):
    """What mixtures of coins and of words share.

    Attributes
    ----------
    X : Points
        Rows, dense or CSR: zeros and ones, or counts.
    weights : (n,) array
        How often each row counts.
    count : int
        The number of parts.
    smoothing : float
        How many heads and tails, or how many of each word, were seen in each part beforehand.
    """

    X: Points
    weights: Array
    count: int
    smoothing: float = 0.0

    @abstractmethod
    def linear(self, parts: TableParts) -> tuple[Array, Array]:
        """Return coefficients (d, k) and constants (k,) of the log-probability of a row."""

    @abstractmethod
    def table(self, sums: TableSums) -> Array:
        """Return the most likely chances for expected sums: (k, d)."""

    @abstractmethod
    def prior(self, table: Array) -> float:
        """Return the logarithm of the prior."""

    def e_step(self, parts: TableParts, *, exact: bool = False) -> EStep:
        """Take expectations."""
        coefficients, constants = self.linear(parts)
        found = chunked(
            lambda chunk: self._chunk(coefficients, constants, chunk), len(self.weights)
        )
        total = float(added(found, 0))
        mass, first = added(found, 1), added(found, 2)
        return EStep(total, total + self.prior(parts.table), TableSums(mass, first.T))

    def _chunk(
        self, coefficients: Array, constants: Array, chunk: slice
    ) -> tuple[float, Array, Array]:
        mass, first, total = np.zeros(self.count), np.zeros(coefficients.shape), 0.0
        for rows in slices(chunk.start, chunk.stop, self._step(self.X)):
            X, s = take(self.X, rows), self.weights[rows]
            scores = _scores(X, coefficients, constants)
            total += float(s @ softened(scores))
            scores *= s
            mass += scores.sum(axis=1)
            first += np.asarray(X.T @ scores.T)
        return total, mass, first

    def m_step(self, parts: TableParts, sums: TableSums) -> TableParts:
        """Count; parts without rows stay as they are."""
        empty = (sums.mass < EMPTY * self.total)[:, None] & (self.smoothing == 0)
        table = np.where(empty, parts.table, self.table(sums))
        return TableParts(sums.mass / sums.mass.sum(), table)

    def start(self, rng: np.random.RandomState) -> TableParts:
        """Begin with the groups of a short k-means, half-way to the mean of all rows."""
        labels = grouped(self.rays(), self.weights, self.count, rng)
        sums, every = np.zeros((self.count, self.X.shape[1])), np.arange(self.count)
        for rows in slices(0, len(self.weights), self._step(self.X)):
            chosen = (labels[rows] == every[:, None]) * self.weights[rows]
            sums += np.asarray((take(self.X, rows).T @ chosen.T).T)
        mass = np.bincount(labels, self.weights, minlength=self.count)
        share = (mass / mass.sum())[:, None]
        # what one group lacks another has seen: a chance of zero would stay zero for ever
        first = 0.5 * sums + 0.5 * share * sums.sum(axis=0)
        alone = mass[:, None] > 0
        first = np.where(alone, first, EMPTY * (1.0 + sums.sum(axis=0)))
        some = np.maximum(mass, EMPTY * self.total)
        return TableParts((mass + 0.1) / (mass + 0.1).sum(), self.table(TableSums(some, first)))

    def rays(self) -> Points:
        """Return the rows in the form in which they are compared at the start."""
        return self.X

    def faults(self, parts: TableParts) -> float:
        """Return how far shares and chances are from distributions."""
        good = parts.table.shape == (self.count, self.X.shape[1])
        good = good and parts.shares.shape == (self.count,)
        inside = good and np.isfinite(parts.table).all() and (parts.table >= 0).all()
        return simplex_fault(parts.shares) if inside else np.inf

    def collapsed(self, parts: TableParts) -> Array:
        """Return which parts are empty."""
        return np.asarray(parts.shares < EMPTY)

    def posterior(self, parts: TableParts, X: Points) -> tuple[Array, Array]:
        """Return log-probabilities of rows (m,) and what each part contributed (m, k)."""
        coefficients, constants = self.linear(parts)
        density, shares = np.empty(row_count(X)), np.empty((row_count(X), self.count))
        for rows in slices(0, row_count(X), self._step(X)):
            scores = _scores(take(X, rows), coefficients, constants)
            density[rows] = softened(scores)
            shares[rows] = scores.T
        return density, shares

    def _step(self, X: Points) -> int:
        width = X.shape[1] if isinstance(X, np.ndarray) else 64
        return max(64, _ENTRIES // (self.count + width))


class BernoulliMix(TableMix):
    """The coins under whose mixture rows of zeros and ones are most likely."""

    def linear(self, parts: TableParts) -> tuple[Array, Array]:
        """Return log-odds, and the log-probability of no head at all."""
        p = np.clip(parts.table, SHARP, 1.0 - SHARP)
        tails = np.log1p(-p)
        return (np.log(p) - tails).T, tails.sum(axis=1) + log_shares(parts.shares)

    def table(self, sums: TableSums) -> Array:
        """Return shares of heads."""
        mass = np.maximum(sums.mass, EMPTY * self.total)[:, None] + 2.0 * self.smoothing
        return np.clip((sums.first + self.smoothing) / mass, SHARP, 1.0 - SHARP)

    def prior(self, table: Array) -> float:
        """Return the logarithm of the Beta prior."""
        if self.smoothing == 0:
            return 0.0
        p = np.clip(table, SHARP, 1.0 - SHARP)
        return float(self.smoothing * (np.log(p) + np.log1p(-p)).sum())

    def faults(self, parts: TableParts) -> float:
        """Return how far shares are from a distribution; chances must be one at most."""
        return np.inf if (parts.table > 1).any() else super().faults(parts)

    def extrapolate(self, zero: TableParts, one: TableParts, two: TableParts) -> TableParts | None:
        """Extrapolate log-shares and chances."""
        found = extrapolated(*map(_packed, (zero, one, two)))
        if found is None:
            return None
        k = self.count
        table = np.clip(found[k:].reshape(two.table.shape), 0.1 * two.table, None)
        table = np.minimum(table, 1.0 - 0.1 * (1.0 - two.table))
        return TableParts(_shares(found[:k]), np.clip(table, SHARP, 1.0 - SHARP))


class MultinomialMix(TableMix):
    """The bags of words under whose mixture documents are most likely, one bag for each document.

    Log-probabilities are those of the words in their order; the number of orders is left out.
    """

    def rays(self) -> Points:
        """Compare square roots of word frequencies: long documents must not be far from all."""
        totals = np.maximum(np.asarray(self.X.sum(axis=1)).ravel(), 1.0)
        if isinstance(self.X, np.ndarray):
            return np.sqrt(self.X / totals[:, None])
        rows = self.X.astype(np.float64)
        rows.data = np.sqrt(rows.data / np.repeat(totals, np.diff(rows.indptr)))
        return rows

    def linear(self, parts: TableParts) -> tuple[Array, Array]:
        """Return logarithms of the chances of words."""
        return np.log(np.maximum(parts.table, _RARE)).T, log_shares(parts.shares)

    def table(self, sums: TableSums) -> Array:
        """Return frequencies of words."""
        return frequencies(sums.first, self.smoothing)

    def prior(self, table: Array) -> float:
        """Return the logarithm of the Dirichlet prior."""
        if self.smoothing == 0:
            return 0.0
        return float(self.smoothing * np.log(np.maximum(table, _RARE)).sum())

    def extrapolate(self, zero: TableParts, one: TableParts, two: TableParts) -> TableParts | None:
        """Extrapolate log-shares and chances."""
        found = extrapolated(*map(_packed, (zero, one, two)))
        if found is None:
            return None
        k = self.count
        table = simplex(found[k:].reshape(two.table.shape), 0.1 * two.table)
        return TableParts(_shares(found[:k]), table)

    def faults(self, parts: TableParts) -> float:
        """Return how far shares and chances are from distributions."""
        found = super().faults(parts)
        return max(found, simplex_fault(parts.table)) if np.isfinite(found) else found


def frequencies(sums: Array, smoothing: float | Array) -> Array:
    """Turn sums of words (k, d) into chances; a part that has seen nothing knows nothing."""
    raised = sums + smoothing
    totals = raised.sum(axis=1, keepdims=True)
    uniform = np.full_like(raised, 1.0 / raised.shape[1])
    return np.where(totals > 0, raised / np.where(totals > 0, totals, 1.0), uniform)


def _scores(X: Points, coefficients: Array, constants: Array) -> Array:
    return np.ascontiguousarray(to_dense(X @ coefficients).T) + constants[:, None]


def _packed(parts: TableParts) -> Array:
    return np.concatenate([packed_shares(parts.shares), parts.table.ravel()])


def _shares(logs: Array) -> Array:
    return simplex(np.exp(logs - logs.max()), np.zeros(len(logs)))
