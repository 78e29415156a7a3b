"""A mixture of coins of which every toss of a row is one coin's: one chance for each part."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.problems.mixture.mixture import EMPTY
from mercer.problems.mixture.table_mixture import SHARP, BernoulliMix, TableParts, TableSums


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
