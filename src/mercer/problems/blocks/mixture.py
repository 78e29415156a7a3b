"""A mixture of rows in blocks: its expectations are sums over the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block, RowBlocks
from mercer.points import to_dense
from mercer.problems.blocks.feature_rows import counted
from mercer.problems.mixture.covariance import Moments
from mercer.problems.mixture.gaussian_mixture import GaussianMix, GaussianParts
from mercer.problems.mixture.mixture import EStep, Mixture


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
    """The Gaussians under whose mixture rows in blocks are most likely; see `GaussianMix`.

    Attributes
    ----------
    blocks : RowBlocks
        The rows and their weights.
    sample : GaussianMix
        The same question of a few rows, whose weights add up to those of all: where starts are
        found, and whose rules the parts follow.
    units : ColumnUnits
        What rows are turned to.
    """

    blocks: RowBlocks
    sample: GaussianMix
    units: ColumnUnits

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of parts."""
        return self.sample.count

    @property
    def total(self) -> float:
        """The number of rows, each as often as it counts."""
        return self.sample.total

    def e_step(self, parts: GaussianParts, *, exact: bool = False) -> EStep:
        """Take expectations block by block, always the exact way: parts of sums must fit."""
        rules = (self.sample.count, self.sample.shape, self.sample.floor, self.sample.log_volume)
        found = self.blocks.total(expected_sums, self.units, rules, parts)
        total, mass, first, second = found
        return EStep(total, total, Moments(mass, first, second, parts.means))

    def m_step(self, parts: GaussianParts, sums: Any) -> GaussianParts:
        """Fit a Gaussian to each part's share of the rows."""
        return self.sample.m_step(parts, sums)

    def start(self, rng: np.random.RandomState) -> GaussianParts:
        """Begin where the sample begins."""
        return self.sample.start(rng)

    def extrapolate(self, zero: Any, one: Any, two: Any) -> Any | None:
        """Extrapolate two steps."""
        return self.sample.extrapolate(zero, one, two)

    def faults(self, parts: Any) -> float:
        """Return how far the parts are from being distributions."""
        return self.sample.faults(parts)

    def collapsed(self, parts: Any) -> Array:
        """Return which parts have shrunk to nothing."""
        return self.sample.collapsed(parts)

    def rounding(self, parts: Any) -> float:
        """Return how much of the mean log-likelihood rounding may take away."""
        return self.sample.rounding(parts)


def expected_sums(
    block: Block, units: ColumnUnits, rules: Any, parts: GaussianParts
) -> tuple[float, Array, Array, Array]:
    """Return log-likelihood and expected moments of a block."""
    block = counted(block)
    count, shape, floor, volume = rules
    problem = GaussianMix(units(block.X), block.counts, count, shape, floor, volume)
    found = problem.e_step(parts, exact=True)
    return found.log_likelihood, found.sums.mass, found.sums.first, found.sums.second
