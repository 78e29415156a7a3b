"""Mixtures of rows in blocks: their expectations are sums over the blocks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block, RowBlocks
from mercer.points import to_dense
from mercer.problems.blocks.feature_rows import counted
from mercer.problems.mixture.covariance import Moments
from mercer.problems.mixture.gaussian_mixture import GaussianMix, GaussianParts
from mercer.problems.mixture.mixture import EStep, Mixture
from mercer.problems.mixture.table_mixture import TableMix, TableParts, TableSums


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
        return EStep(total, total, Moments(mass, first, second, parts.means))


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
