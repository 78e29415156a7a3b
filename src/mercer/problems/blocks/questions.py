"""What is asked of rows in blocks: the problems of ridge, risk and margin, without a Gram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.blocks.base import Block, Kept
from mercer.problems.blocks.feature_rows import FeatureRows, counted
from mercer.problems.risk.losses import Loss


@dataclass(frozen=True, eq=False)
class BlockRidge:
    """Minimise sum_i s_i (y_i - w'phi(x_i) - b)^2 + penalty |w|^2; see `LinearSystem`.

    Attributes
    ----------
    rows : FeatureRows
        Features, targets and weights.
    penalties : (t,) array
        The penalty of each target.
    bias : bool
        Whether there is a bias b.
    """

    rows: FeatureRows
    penalties: Array
    bias: bool


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Numbers of classes from labels, and what their rows count.

    Attributes
    ----------
    classes : (c,) array
        The labels, sorted.
    factors : (c,) array
        What the weights of the rows of each class are multiplied by.
    """

    classes: Array
    factors: Array

    def codes(self, y: Array) -> Array:
        """Return the number of the class of each row."""
        return np.searchsorted(self.classes, y)

    def weights(self, counts: Array, codes: Array) -> Array:
        """Return what rows count."""
        return np.asarray(counts * self.factors[codes])


@dataclass(frozen=True, eq=False)
class BlockRisk:
    """Minimise sum_i s_i loss(f(x_i), y_i) + penalty / 2 |w|^2, f = w'phi + b; see `SmoothRisk`.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes.
    total : float
        The sum of all weights.
    penalty : float
        Weight of the squared norm.
    loss : Loss
        Log or squared.
    bias : bool
        Whether there is a bias b.
    """

    rows: FeatureRows
    labels: ClassCodes
    total: float
    penalty: float
    loss: Loss
    bias: bool

    @property
    def columns(self) -> int:
        """How many functions there are."""
        count = len(self.labels.classes)
        return 1 if count == 2 else count


@dataclass(frozen=True, eq=False)
class BlockMargin:
    """Minimise |w|^2 / 2 + sum_i C_i max(0, 1 - y_i f(x_i)), f = w'phi + b, for several codings y.

    Attributes
    ----------
    rows : FeatureRows
        Features, labels and weights.
    labels : ClassCodes
        Numbers of the classes, and their factors.
    signs : (c, parts) array
        y of the rows of each class in each part: 1, -1, or 0 for classes that are not in it.
    cost : float
        C of a row that counts once.
    """

    rows: FeatureRows
    labels: ClassCodes
    signs: Array
    cost: float

    def part(self, number: int) -> PartRows:
        """Return which rows a part is about."""
        return PartRows(self.labels, self.signs[:, number], self.cost)


@dataclass(frozen=True, eq=False)
class PartRows:
    """The rows of one part, picked from a block: see `BlockMargin`."""

    labels: ClassCodes
    signs: Array
    cost: float

    def of(self, block: Block) -> tuple[Block, Array, Array]:
        """Return the rows of a block that are in the part, their signs, and their costs."""
        block = counted(block)
        codes = self.labels.codes(block.y)
        y = self.signs[codes]
        if not y.all():
            inside = np.flatnonzero(y)
            block, codes, y = block.only(inside), codes[inside], y[inside]
        return block, y, self.cost * self.labels.weights(block.counts, codes)


@dataclass(frozen=True, eq=False)
class BlockDuals:
    """An answer to a `BlockMargin`: weights, and multipliers that lie with the blocks.

    Attributes
    ----------
    weights : (D, parts) array
        w of each part.
    intercept : (parts,) array
        b of each.
    multipliers : tuple of Kept
        For each part, with each block: between 0 and C_i for each of its rows that are in it.
    """

    weights: Array
    intercept: Array
    multipliers: tuple[Kept, ...]


@dataclass(frozen=True, eq=False)
class BlockComponents:
    """The directions of largest variance of features (of largest energy where not centred).

    Attributes
    ----------
    rows : FeatureRows
        Features and weights.
    centred : bool
        Whether the mean is taken off.
    wanted : int
        How many directions, unless the rank is less.
    """

    rows: FeatureRows
    centred: bool
    wanted: int


@dataclass(frozen=True, eq=False)
class BlockDirections:
    """An answer to `BlockComponents`: eigenvalues of G'SG, orthonormal directions, the mean."""

    values: Array
    directions: Array
    mean: Array


@dataclass(frozen=True, eq=False)
class BlockPartition:
    """Clusters of least squared distance to their means in the space of the features.

    Attributes
    ----------
    rows : FeatureRows
        Features and weights.
    count : int
        How many clusters.
    """

    rows: FeatureRows
    count: int


@dataclass(frozen=True, eq=False)
class BlockClusters:
    """An answer to `BlockPartition`: labels that lie with the blocks."""

    labels: Kept
