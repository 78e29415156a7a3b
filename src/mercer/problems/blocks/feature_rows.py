"""K = F F' of rows in blocks: features are made where they are used, some rows at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.blocks.base import Block, RowBlocks
from mercer.points import take, to_dense
from mercer.resources import get_config, rows_at_once

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
