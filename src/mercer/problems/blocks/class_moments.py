"""Discriminant directions of rows in blocks: means of the classes, and the scatter within them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block
from mercer.problems.blocks.feature_rows import FeatureRows, counted, feature_pieces
from mercer.problems.blocks.questions import ClassCodes


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Moments of the rows of each class; those of more rows are the sum.

    Attributes
    ----------
    totals : (c,) array
        Weights.
    means : (c, D) array
        Means of the features; zero for classes without rows.
    within : (D, D) array
        Scatter within classes, each by its factor.
    factors : (c,) array
        What a unit of weight counts in it.
    largest : (D,) array
        Largest magnitude of each feature.
    """

    totals: Array
    means: Array
    within: Array
    factors: Array
    largest: Array

    def __add__(self, other: ClassMoments) -> ClassMoments:
        totals = self.totals + other.totals
        share = other.totals / np.where(totals > 0, totals, 1.0)
        off = other.means - self.means
        pull = np.sqrt(self.factors * self.totals * share)[:, None] * off
        within = self.within + other.within + pull.T @ pull
        means = self.means + share[:, None] * off
        largest = np.maximum(self.largest, other.largest)
        return ClassMoments(totals, means, within, self.factors, largest)


def class_moments(block: Block, features: Any, labels: ClassCodes, factors: Array) -> ClassMoments:
    """Return the moments of a block."""
    block = counted(block)
    s, codes = block.counts, labels.codes(block.y)
    c, m = len(factors), features.dimension
    none = np.zeros((c, m))
    found = ClassMoments(np.zeros(c), none, np.zeros((m, m)), factors, np.zeros(m))
    for rows, F in feature_pieces(block, features):
        table = np.zeros((len(F), c))
        table[np.arange(len(F)), codes[rows]] = s[rows]
        totals = table.sum(axis=0)
        means = table.T @ F / np.where(totals > 0, totals, 1.0)[:, None]
        largest = np.abs(F).max(axis=0, initial=0.0)
        np.subtract(F, means[codes[rows]], out=F)
        np.multiply(F, np.sqrt(s[rows] * factors[codes[rows]])[:, None], out=F)
        found = found + ClassMoments(totals, means, F.T @ F, factors, largest)
    return found


@dataclass(frozen=True, eq=False)
class BlockDiscriminant:
    """The `count` directions of largest ratio; see `Discriminant`.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes.
    factors : (c,) array
        What a unit of weight of each class counts in the scatter within.
    shares : (c,) array
        The weights of the classes, with sum 1.
    penalty : float
        Added to the scatter within classes.
    count : int
        How many directions.
    """

    rows: FeatureRows
    labels: ClassCodes
    factors: Array
    shares: Array
    penalty: float
    count: int

    def moments(self) -> ClassMoments:
        """Add up over all rows."""
        shared = (self.rows.features, self.labels, self.factors)
        return self.rows.blocks.total(class_moments, *shared)

    def between(self, means: Array) -> Array:
        """Return sqrt(p_c) (m_c - m) as columns (D, c)."""
        return np.asarray((means - self.shares @ means).T * np.sqrt(self.shares))
