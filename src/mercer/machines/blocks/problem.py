"""Problems over rows in blocks: ridge, margin, components, directions and partition."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.resources import get_config, rows_at_once
from mercer.rows.blocks import Block, Kept, RowBlocks
from mercer.rows.points import take, to_dense

# --- feature rows --------------------------------------------------------------------------------
#
# K = F F' of rows in blocks: features are made where they are used, some rows at a time.

_KEPT = 0.1  # seconds that the budget is remembered: to read it takes as long as a small block
_ROWS_AT_ONCE = 8192  # products of more rows at a time are no quicker
_COPIES = 5  # of features: on their way, as they are, centred, weighted, and what comes of them
_LARGEST = 1e75  # of a feature: products of two kernel values are numbers, as everywhere


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The rows of F, in blocks.

    Attributes
    ----------
    blocks : RowBlocks
        The points, their targets and weights.
    features : callable
        phi: a feature map that can travel to where the blocks are.
    dimension : int
        How many features.
    """

    blocks: RowBlocks
    features: Any
    dimension: int


def counted(block: Block) -> Block:
    """Return the rows of a block that count: those of weight zero are not there."""
    if block.weights is None or block.weights.all():
        return block
    return block.only(np.flatnonzero(block.weights))


def feature_pieces(
    block: Block, features: Any, copies: int = _COPIES
) -> Iterator[tuple[slice, Array]]:
    """Yield the features of a block, a few thousand rows at a time: their place, and (rows, D).

    The arrays belong to the caller, who may change them.

    Parameters
    ----------
    block : Block
        Rows.
    features : callable
        phi.
    copies : int
        Arrays of that shape that the caller holds at once.
    """
    n = len(block)
    width = max(getattr(features, "dimension", 1), block.X.shape[1])
    step = _recent_step(width, copies, get_config().memory, int(time.monotonic() / _KEPT))
    for start in range(0, n, step):
        deadline.check()
        rows = slice(start, min(start + step, n))
        yield rows, features_of(take(block.X, rows), features, block.first + start)


@lru_cache(maxsize=16)
def _recent_step(width: int, copies: int, budget: int | None, now: int) -> int:
    """Return rows at once as of this tenth of a second: small blocks ask again and again."""
    return rows_at_once(width, _ROWS_AT_ONCE, arrays=copies)


def features_of(X: Any, features: Any, first: int) -> Array:
    """Return features as a new float64 array; rows on which they overflow are refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        F = to_dense(features(X.astype(np.float64, copy=False)))
        if isinstance(X, np.ndarray) and np.may_share_memory(F, X):
            F = F.copy()  # those of a linear kernel are the rows themselves
        largest = float(np.abs(F).max(initial=0.0))
    if not largest <= _LARGEST:
        bad = ~(np.abs(F) <= _LARGEST).all(axis=1)
        raise ValueError(
            f"kernel values of row {first + int(bad.argmax())} of X, and of {int(bad.sum()) - 1} "
            "rows after it in its block, are so large that products of two leave float64. Scale "
            "the features, or use a smaller degree."
        )
    return F


# --- questions -----------------------------------------------------------------------------------
#
# What is asked of rows in blocks: the problems of ridge, risk and margin, without a Gram.


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

    def codes(self, y: Array | None) -> Array:
        """Return the number of the class of each row."""
        assert y is not None
        return np.searchsorted(self.classes, y)

    def weights(self, counts: Array, codes: Array) -> Array:
        """Return what rows count."""
        return np.asarray(counts * self.factors[codes])


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
