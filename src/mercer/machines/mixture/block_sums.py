"""E and M steps of mixtures and topics as sums over blocks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.blocks.problem import counted
from mercer.machines.mixture.discrete_em_steps import (
    TableMix,
    TableParts,
    TableSums,
    as_counts,
    frequencies,
    log_sum,
    ratios,
)
from mercer.machines.mixture.gaussian_em_steps import ComponentMoments, GaussianMix, GaussianParts
from mercer.machines.mixture.problem import EMPTY, EStep, Mixture, simplex, simplex_fault
from mercer.rows.blocks import Block, Kept, Largest, RowBlocks
from mercer.rows.points import to_dense
from mercer.solvers.dispatch import is_finite

# --- mixture -------------------------------------------------------------------------------------
#
# Mixtures of rows in blocks: their expectations are sums over the blocks.


@dataclass(frozen=True, eq=False)
class ColumnUnits:
    """Rows in other units: (x - origin) / scale."""

    origin: Array
    scale: Array

    def __call__(self, X: Any) -> Array:
        """Return float64 rows in these units."""
        return np.asarray((to_dense(X) - self.origin) / self.scale)


@dataclass(frozen=True, eq=False)
class BlockMix(Mixture):
    """The parts under whose mixture rows in blocks are most likely.

    Attributes
    ----------
    blocks : RowBlocks
        The rows and their weights.
    sample : Mixture
        The same question of a few rows, whose weights add up to those of all: where starts are
        found, and whose rules the parts follow.
    read : callable
        What rows are turned to; it travels to where the blocks are.
    """

    blocks: RowBlocks
    sample: Any
    read: Any

    @abstractmethod
    def e_step(self, parts: Any, *, exact: bool = False) -> EStep:
        """Take expectations block by block, always the exact way: parts of sums must fit."""

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of parts."""
        return int(self.sample.count)

    @property
    def total(self) -> float:
        """The number of rows, each as often as it counts."""
        return float(self.sample.total)

    @property
    def rules(self) -> Any:
        """The question without any rows."""
        return replace(self.sample, X=self.sample.X[:0], weights=np.empty(0))

    def m_step(self, parts: Any, sums: Any) -> Any:
        """Fit each part to its share of the rows."""
        return self.sample.m_step(parts, sums)

    def start(self, rng: np.random.RandomState) -> Any:
        """Begin where the sample begins."""
        return self.sample.start(rng)

    def extrapolate(self, zero: Any, one: Any, two: Any) -> Any | None:
        """Extrapolate two steps."""
        return self.sample.extrapolate(zero, one, two)

    def faults(self, parts: Any) -> float:
        """Return how far the parts are from being distributions."""
        return float(self.sample.faults(parts))

    def collapsed(self, parts: Any) -> Array:
        """Return which parts have shrunk to nothing."""
        return np.asarray(self.sample.collapsed(parts))

    def rounding(self, parts: Any) -> float:
        """Return how much of the mean log-likelihood rounding may take away."""
        return float(self.sample.rounding(parts))


class BlockGaussianMix(BlockMix):
    """The Gaussians under whose mixture rows in blocks are most likely; see `GaussianMix`."""

    def e_step(self, parts: GaussianParts, *, exact: bool = False) -> EStep:
        """Take expectations block by block."""
        found = self.blocks.total(gaussian_sums, self.read, self.rules, parts)
        total, mass, first, second = found
        return EStep(total, total, ComponentMoments(mass, first, second, parts.means))


class BlockTableMix(BlockMix):
    """The coins, or bags of words, under which rows in blocks are most likely; see `TableMix`."""

    def e_step(self, parts: TableParts, *, exact: bool = False) -> EStep:
        """Take expectations block by block."""
        total, mass, first = self.blocks.total(table_sums, self.read, self.rules, parts)
        return EStep(total, total + self.sample.prior(parts.table), TableSums(mass, first))


def gaussian_sums(
    block: Block, read: Any, rules: GaussianMix, parts: GaussianParts
) -> tuple[float, Array, Array, Array]:
    """Return log-likelihood and expected moments of a block."""
    found = _expected(block, read, rules, parts)
    return found.log_likelihood, found.sums.mass, found.sums.first, found.sums.second


def table_sums(
    block: Block, read: Any, rules: TableMix, parts: TableParts
) -> tuple[float, Array, Array]:
    """Return log-likelihood and expected sums of a block."""
    found = _expected(block, read, rules, parts)
    return found.log_likelihood, found.sums.mass, found.sums.first


def _expected(block: Block, read: Any, rules: Any, parts: Any) -> EStep:
    block = counted(block)
    if not len(block):  # nothing in it counts: any row, of no weight, gives sums of the right shape
        block = Block(np.zeros((1, block.X.shape[1])), None, np.zeros(1), block.first)
    try:
        rows = read(block.X)
    except ValueError as error:
        raise ValueError(f"in the block from row {block.first} on: {error}") from error
    problem: Mixture = replace(rules, X=rows, weights=block.counts)
    return problem.e_step(parts, exact=True)


# --- topics --------------------------------------------------------------------------------------
#
# Topics of documents in blocks: proportions of documents stay where their block is.

_LEAPS = (1.0, 1e8)  # stretches along two steps, as `extrapolated` has them


@dataclass(frozen=True, eq=False)
class BlockTopicParts:
    """An answer to a `BlockTopicMix`.

    Attributes
    ----------
    table : (k, d) array
        Chances of words in each topic.
    kept : Kept
        Of each block, shares of topics in its documents that count: those of this answer, and of
        the two steps before it.
    likelihoods : (t,) array or None
        Objectives on the way there.
    """

    table: Array
    kept: Kept
    likelihoods: Array | None = None


@dataclass(frozen=True, eq=False)
class BlockTopicSums:
    """Expected words of each topic (k, d), and the shares in documents that follow."""

    words: Array
    kept: Kept


@dataclass(frozen=True, eq=False)
class BlockTopicMix(BlockMix):
    """The topics under which the words of documents in blocks are most likely; see `TopicMix`.

    Attributes
    ----------
    words : float
        Words in all, each as often as its document counts.
    """

    words: float = 1.0

    @property
    def total(self) -> float:
        """The number of words: steps are per word."""
        return self.words

    def start(self, rng: np.random.RandomState) -> BlockTopicParts:
        """Begin where the sample begins, with equal proportions."""
        table = self.sample.start(rng).table
        return BlockTopicParts(table, self.blocks.start(equal_shares, self.count))

    def e_step(self, parts: BlockTopicParts, *, exact: bool = False) -> EStep:
        """Take expectations block by block."""
        rules = self.rules
        asked = (self.read, parts.table, rules.document_smoothing)
        kept, found = self.blocks.step(parts.kept, topic_sums, *asked)
        total, logs, words = found
        prior = rules.smoothing * log_sum(parts.table, rules.smoothing)
        prior += rules.document_smoothing * logs
        return EStep(total, total + prior, BlockTopicSums(words, kept))

    def m_step(self, parts: BlockTopicParts, sums: BlockTopicSums) -> BlockTopicParts:
        """Count; documents have been counted where they are."""
        return BlockTopicParts(frequencies(sums.words, self.rules.smoothing), sums.kept)

    def extrapolate(
        self, zero: BlockTopicParts, one: BlockTopicParts, two: BlockTopicParts
    ) -> BlockTopicParts | None:
        """Extrapolate chances and proportions, which are with the last of the steps."""
        r, v = one.table - zero.table, (two.table - one.table) - (one.table - zero.table)
        first, change = self.blocks.step(two.kept, step_sizes)[1]
        first, change = first + float(np.sum(r**2)), change + float(np.sum(v**2))
        stretch = np.sqrt(first / change) if change > 0 else 1.0
        if not _LEAPS[0] < stretch < _LEAPS[1]:
            return None
        table = simplex(zero.table + 2.0 * stretch * r + stretch**2 * v, 0.1 * two.table)
        return BlockTopicParts(table, self.blocks.step(two.kept, leap, stretch)[0])

    def held_movement(self, after: BlockTopicParts) -> float:
        """Compare proportions with those of the step before, which blocks keep."""
        move, size = self.blocks.step(after.kept, share_moves)[1]
        return float(move.value / max(size.value, np.finfo(float).tiny))

    def shares(self, parts: BlockTopicParts) -> Array:
        """Return the shares of topics among all words; among documents if there are no words."""
        words, documents = self.blocks.step(parts.kept, share_sums, self.read)[1]
        found = words if words.sum() > 0.0 else documents
        return np.asarray(found / found.sum())

    def collapsed(self, parts: BlockTopicParts) -> Array:
        """Return which topics are empty."""
        return np.asarray(self.shares(parts) < EMPTY)

    def faults(self, parts: BlockTopicParts) -> float:
        """Return how far topics and proportions are from distributions."""
        if parts.table.shape != (self.count, self.blocks.n_columns):
            return np.inf
        documents = self.blocks.step(parts.kept, share_faults, self.count)[1]
        return max(simplex_fault(parts.table), float(documents.value))


def equal_shares(block: Block, count: int) -> tuple[Array, ...]:
    """Return equal proportions for the documents of a block that count."""
    return (np.full((len(counted(block)), count), 1.0 / count),)


def word_count(block: Block, read: Any) -> float:
    """Return the words of a block, each as often as its document counts."""
    block = counted(block)
    return float(block.counts @ _counts(block, read).sum(axis=1)) if len(block) else 0.0


def topic_sums(
    block: Block, kept: tuple[Array, ...], read: Any, table: Array, smoothing: float
) -> tuple[tuple[Array, ...], tuple[float, float, Array]]:
    """Return the next proportions of a block; its log-likelihood, prior, and expected words."""
    block, topics, shares = counted(block), np.ascontiguousarray(table.T), kept[0]
    if not len(block):
        return (shares, *kept[:2]), (0.0, 0.0, np.zeros_like(table))
    weights = block.counts
    ratio, each = ratios(_counts(block, read), topics, shares)
    documents = shares * (ratio @ topics)
    words = topics * (ratio.T @ (shares * weights[:, None]))
    logs = float(weights @ np.log(np.maximum(shares, np.finfo(float).tiny)).sum(axis=1))
    ahead = frequencies(documents, smoothing)
    return (ahead, *kept[:2]), (float(weights @ each), logs, words.T)


def step_sizes(
    block: Block, kept: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[float, float]]:
    """Return squared lengths of the first of two steps, and of the change between both.

    Documents count as often as they do in the likelihood, so that weights are repetition.
    """
    two, one, zero = kept
    r, v = one - zero, (two - one) - (one - zero)
    counts = counted(block).counts
    return kept, (float(counts @ np.sum(r**2, axis=1)), float(counts @ np.sum(v**2, axis=1)))


def leap(block: Block, kept: tuple[Array, ...], stretch: float) -> tuple[tuple[Array, ...], float]:
    """Return proportions further along two steps."""
    two, one, zero = kept
    r, v = one - zero, (two - one) - (one - zero)
    return (simplex(zero + 2.0 * stretch * r + stretch**2 * v, 0.1 * two),), 0.0


def share_sums(
    block: Block, kept: tuple[Array, ...], read: Any
) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
    """Return words, and documents, of each topic."""
    block = counted(block)
    if not len(block):
        none = np.zeros(kept[0].shape[1])
        return kept, (none, none)
    words = block.counts * np.asarray(_counts(block, read).sum(axis=1)).ravel()
    return kept, (words @ kept[0], block.counts @ kept[0])


def share_moves(
    block: Block, kept: tuple[Array, ...]
) -> tuple[tuple[Array, ...], tuple[Largest, Largest]]:
    """Return how far the last step moved proportions of a block, and the largest before it."""
    after, here = kept[:2]
    move, size = np.abs(after - here).max(initial=0.0), np.abs(here).max(initial=0.0)
    return kept, (Largest(float(move)), Largest(float(size)))


def share_faults(
    block: Block, kept: tuple[Array, ...], count: int
) -> tuple[tuple[Array, ...], Largest]:
    """Return how far proportions of a block are from distributions."""
    shares, n = kept[0], len(counted(block))
    if shares.shape != (n, count):
        return kept, Largest(np.inf)
    return kept, Largest(simplex_fault(shares) if n else 0.0)


def _counts(block: Block, read: Any) -> Any:
    try:
        return as_counts(read(block.X))
    except ValueError as error:
        raise ValueError(f"in the block from row {block.first} on: {error}") from error


@is_finite.register
def _(value: BlockTopicParts) -> bool:
    return bool(np.isfinite(value.table).all())  # shares follow from the table
