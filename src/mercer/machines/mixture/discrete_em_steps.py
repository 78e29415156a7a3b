"""Bernoulli and multinomial mixtures and topics: E and M steps."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer.array_types import Array, Points
from mercer.machines.mixture.problem import (
    EMPTY,
    EStep,
    Mixture,
    extrapolated,
    grouped,
    log_shares,
    packed_shares,
    seeds,
    simplex,
    simplex_fault,
    softened,
)
from mercer.rows.chunks import added, chunked, slices
from mercer.rows.points import is_sparse, row_count, take, to_dense

# --- table mixture -------------------------------------------------------------------------------
#
# Mixtures of coins, and of bags of words: rows of numbers whose log-probability is linear in
# them.
#
# Rows may be sparse and stay so: a pass is one product with the rows, and one with their
# transpose.

_TABLE_MIXTURE_ENTRIES = 1 << 18
SHARP = 1e-12  # the least chance of a head or a tail: no logarithm of zero, and no bound reached
_TABLE_MIXTURE_RARE = 1e-300  # the same for words, of which there are many


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
        return max(64, _TABLE_MIXTURE_ENTRIES // (self.count + width))


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
        found = extrapolated(*map(_table_mixture_packed, (zero, one, two)))
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
        return np.log(np.maximum(parts.table, _TABLE_MIXTURE_RARE)).T, log_shares(parts.shares)

    def table(self, sums: TableSums) -> Array:
        """Return frequencies of words."""
        return frequencies(sums.first, self.smoothing)

    def prior(self, table: Array) -> float:
        """Return the logarithm of the Dirichlet prior."""
        if self.smoothing == 0:
            return 0.0
        return float(self.smoothing * np.log(np.maximum(table, _TABLE_MIXTURE_RARE)).sum())

    def extrapolate(self, zero: TableParts, one: TableParts, two: TableParts) -> TableParts | None:
        """Extrapolate log-shares and chances."""
        found = extrapolated(*map(_table_mixture_packed, (zero, one, two)))
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


def _table_mixture_packed(parts: TableParts) -> Array:
    return np.concatenate([packed_shares(parts.shares), parts.table.ravel()])


def _shares(logs: Array) -> Array:
    return simplex(np.exp(logs - logs.max()), np.zeros(len(logs)))


# --- tied coins ----------------------------------------------------------------------------------
#
# A mixture of coins of which every toss of a row is one coin's: one chance for each part.


class TiedBernoulliMix(BernoulliMix):
    """Coins that are tossed once for each column: P(x) = sum_j w_j p_j^h (1 - p_j)^(d - h).

    A row counts by its number h of heads alone. The table of an answer repeats p_j in all d
    columns, and smoothing is heads and tails of each coin, not of each column.
    """

    def table(self, sums: TableSums) -> Array:
        """Return shares of heads in all tosses of a part."""
        columns = sums.first.shape[1]
        mass = columns * np.maximum(sums.mass, EMPTY * self.total) + 2.0 * self.smoothing
        p = np.clip((sums.first.sum(axis=1) + self.smoothing) / mass, SHARP, 1.0 - SHARP)
        return np.repeat(p[:, None], columns, axis=1)

    def prior(self, table: Array) -> float:
        """Return the logarithm of the Beta prior of each coin."""
        return super().prior(table[:, :1])

    def faults(self, parts: TableParts) -> float:
        """Return how far shares are from a distribution, and columns from being equal."""
        found = super().faults(parts)
        return max(found, float(np.ptp(parts.table, axis=1).max())) if found < np.inf else found


# --- topics --------------------------------------------------------------------------------------
#
# Topics: each *word* of a document has a source of its own, P(w | d) = sum_j share_dj P(w | j).
#
# The matrix of words and documents is approximated, in relative entropy, by one of rank k. Counts
# stay sparse: only the entries that are there are looked at.

_TOPICS_ENTRIES = 1 << 17
_TOPICS_RARE = 1e-300


@dataclass(frozen=True, eq=False)
class TopicParts:
    """An answer to a `TopicMix`.

    Attributes
    ----------
    table : (k, d) array
        Chances of words in each topic.
    proportions : (n, k) array
        Shares of topics in each document.
    likelihoods : (t,) array or None
        Objectives on the way there.
    """

    table: Array
    proportions: Array
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class TopicSums:
    """Expected words of each topic in each document (n, k), and of each word (k, d)."""

    documents: Array
    words: Array


@dataclass(frozen=True, eq=False)
class TopicMix(Mixture):
    """The topics under which the words of documents are most likely.

    Attributes
    ----------
    X : csr_array
        Counts of words.
    weights : (n,) array
        How often each document counts.
    count : int
        The number of topics.
    smoothing : float
        How many of each word were seen in each topic beforehand.
    document_smoothing : float
        How many words of each topic were seen in each document beforehand.
    """

    X: Any
    weights: Array
    count: int
    smoothing: float = 0.0
    document_smoothing: float = 0.0

    def e_step(self, parts: TopicParts, *, exact: bool = False) -> EStep:
        """Take expectations."""
        topics = np.ascontiguousarray(parts.table.T)
        ratio, each = ratios(self.X, topics, parts.proportions)
        total = float(self.weights @ each)
        documents = parts.proportions * (ratio @ topics)
        words = topics * (ratio.T @ (parts.proportions * self.weights[:, None]))
        prior = self.smoothing * log_sum(parts.table, self.smoothing)
        if self.document_smoothing:
            logs = np.log(np.maximum(parts.proportions, _TOPICS_RARE)).sum(axis=1)
            prior += self.document_smoothing * float(self.weights @ logs)
        return EStep(total, total + prior, TopicSums(documents, words.T))

    def m_step(self, parts: TopicParts, sums: TopicSums) -> TopicParts:
        """Count."""
        table = frequencies(sums.words, self.smoothing)
        return TopicParts(table, frequencies(sums.documents, self.document_smoothing))

    def start(self, rng: np.random.RandomState) -> TopicParts:
        """Begin with documents unlike one another, half-way to all words, in equal proportions."""
        rays = MultinomialMix(self.X, self.weights, self.count).rays()
        chosen = seeds(rays, self.weights * (self.X.sum(axis=1) > 0) + 1e-9, self.count, rng)
        all_words = np.asarray(self.weights @ self.X)[None]
        table = frequencies(self.X[chosen].toarray(), 0.0) + frequencies(all_words, 0.0)
        n, k = self.X.shape[0], self.count
        return TopicParts(0.5 * table, np.full((n, k), 1.0 / k))

    def extrapolate(self, zero: TopicParts, one: TopicParts, two: TopicParts) -> TopicParts | None:
        """Extrapolate chances and proportions, those of a document as often as it counts."""
        size, counts = two.table.size, np.repeat(self.weights, self.count)
        roots = np.sqrt(np.concatenate([np.ones(size), counts]))
        found = extrapolated(_topics_packed(zero), _topics_packed(one), _topics_packed(two), roots)
        if found is None:
            return None
        table = simplex(found[:size].reshape(two.table.shape), 0.1 * two.table)
        left = found[size:].reshape(two.proportions.shape)
        return TopicParts(table, simplex(left, 0.1 * two.proportions))

    def posterior(self, parts: TopicParts, X: Any) -> tuple[Array, Array]:
        """Return log-probabilities of new documents (m,) and their topics (m, k)."""
        proportions, density = folded(X, parts.table, self.document_smoothing)
        return density, proportions

    def shares(self, parts: TopicParts) -> Array:
        """Return the shares of topics among all words; among documents if there are no words."""
        words = self.weights * np.asarray(self.X.sum(axis=1)).ravel()
        found = words @ parts.proportions
        if not found.sum() > 0.0:
            found = self.weights @ parts.proportions
        return np.asarray(found / found.sum())

    def collapsed(self, parts: TopicParts) -> Array:
        """Return which topics are empty."""
        return np.asarray(self.shares(parts) < EMPTY)

    def faults(self, parts: TopicParts) -> float:
        """Return how far topics and proportions are from distributions."""
        n, d = self.X.shape
        if parts.table.shape != (self.count, d) or parts.proportions.shape != (n, self.count):
            return np.inf
        return max(simplex_fault(parts.table), simplex_fault(parts.proportions))

    @property
    def total(self) -> float:
        """Return the number of words, each as often as its document counts: steps are per word."""
        return float(self.weights @ self.X.sum(axis=1)) or 1.0


def ratios(X: Any, topics: Array, proportions: Array) -> tuple[Any, Array]:
    """Return counts over their expected frequencies, sparse as X is, and log-probabilities (n,)."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    expected, step = np.empty(X.nnz), max(256, _TOPICS_ENTRIES // topics.shape[1])

    def fill(chunk: slice) -> None:
        for part in slices(chunk.start, chunk.stop, step):
            left, right = topics[X.indices[part]], proportions[rows[part]]
            np.einsum("ek,ek->e", left, right, out=expected[part])

    chunked(fill, X.nnz)
    np.maximum(expected, _TOPICS_RARE, out=expected)
    with np.errstate(over="ignore"):  # counts of 1e200, judged by what comes of it
        ratio = csr_array((X.data / expected, X.indices, X.indptr), shape=X.shape)
    np.log(expected, out=expected)
    expected *= X.data
    return ratio, np.bincount(rows, expected, minlength=X.shape[0])


def folded(
    X: Any, table: Array, smoothing: float, tol: float = 1e-5, max_iter: int = 200
) -> tuple[Array, Array]:
    """Return the proportions of known topics in new documents (n, k), and log-probabilities (n,).

    Proportions have one best value (the objective is concave): where the iteration starts does not
    matter, and neither does what other documents there are.
    """
    topics = np.ascontiguousarray(table.T)
    proportions = np.full((X.shape[0], len(table)), 1.0 / len(table))
    moving, (rows, prior) = np.arange(X.shape[0]), _near_one(X, smoothing)
    live = np.ones(len(moving), dtype=bool)
    for _ in range(max_iter):
        part = proportions[moving]
        ratio, _ = ratios(rows, topics, part)
        after = frequencies(part * (ratio @ topics), prior)
        proportions[moving[live]] = after[live]  # who is done stays: others must not matter
        live &= np.abs(after - part).max(axis=1, initial=0.0) > tol
        if not live.any():
            break
        if live.sum() < 0.8 * len(live):  # leave out those that are done, now and then
            moving, rows, prior, live = moving[live], rows[live], prior[live], live[live]
    return proportions, ratios(X, topics, proportions)[1]


def _near_one(X: Any, smoothing: float) -> tuple[Any, Array]:
    """Return documents whose counts are near one, and smoothing (n, 1) divided by the same.

    Proportions are the same, and counts of 1e300 over small frequencies are numbers. Powers of two
    round nothing.
    """
    size = np.maximum(X.max(axis=1).toarray().ravel(), 1.0)
    size = np.exp2(np.floor(np.log2(size)))
    data = X.data / np.repeat(size, np.diff(X.indptr))
    return csr_array((data, X.indices, X.indptr), shape=X.shape), smoothing / size[:, None]


def as_counts(X: Points) -> Any:
    """Return rows of counts as CSR, float64."""
    rows = X if is_sparse(X) else csr_array(X)
    return rows.astype(np.float64)


def _topics_packed(parts: TopicParts) -> Array:
    return np.concatenate([parts.table.ravel(), parts.proportions.ravel()])


def log_sum(table: Array, smoothing: float) -> float:
    """Return the sum of the logarithms of chances; zero without smoothing, which asks for none."""
    return float(np.log(np.maximum(table, _TOPICS_RARE)).sum()) if smoothing else 0.0
