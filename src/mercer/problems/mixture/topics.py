"""Topics: each *word* of a document has a source of its own, P(w | d) = sum_j share_dj P(w | j).

The matrix of words and documents is approximated, in relative entropy, by one of rank k. Counts
stay sparse: only the entries that are there are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mercer.array_types import Array, Points
from mercer.points import is_sparse
from mercer.problems.mixture.mixture import (
    EMPTY,
    EStep,
    Mixture,
    extrapolated,
    simplex,
    simplex_fault,
)
from mercer.problems.mixture.seeding import seeds
from mercer.problems.mixture.table_mixture import MultinomialMix, frequencies
from mercer.row_chunks import chunked, slices

_ENTRIES = 1 << 17
_RARE = 1e-300


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
            logs = np.log(np.maximum(parts.proportions, _RARE)).sum(axis=1)
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
        found = extrapolated(_packed(zero), _packed(one), _packed(two), roots)
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
    expected, step = np.empty(X.nnz), max(256, _ENTRIES // topics.shape[1])

    def fill(chunk: slice) -> None:
        for part in slices(chunk.start, chunk.stop, step):
            left, right = topics[X.indices[part]], proportions[rows[part]]
            np.einsum("ek,ek->e", left, right, out=expected[part])

    chunked(fill, X.nnz)
    np.maximum(expected, _RARE, out=expected)
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


def _packed(parts: TopicParts) -> Array:
    return np.concatenate([parts.table.ravel(), parts.proportions.ravel()])


def log_sum(table: Array, smoothing: float) -> float:
    """Return the sum of the logarithms of chances; zero without smoothing, which asks for none."""
    return float(np.log(np.maximum(table, _RARE)).sum()) if smoothing else 0.0
