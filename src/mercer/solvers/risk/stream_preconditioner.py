"""What a stream tells of the curvature of its risk: the scatter of its rows, and how they bend.

Gradient steps are taken in this shape (see `preconditioned`), so that neither the scale of columns
nor what they have in common slows them down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.points import is_sparse, to_dense
from mercer.problems.risk.losses import Loss, LossCurvature

WIDEST = 256  # features: up to here their scatter is kept
_GROWTH = 1.5  # batches until the shape is looked at anew, times those so far
_FLATTEST = 0.1  # share of the steepest curvature that is always reckoned with
_SINGULAR = 1e-10


class StreamPreconditioner:
    """The mean curvature of what has been seen of a stream; a constant feature goes last.

    Parameters
    ----------
    features : int
        Features, without the constant one.
    """

    def __init__(self, features: int) -> None:
        self.full = features <= WIDEST
        self._width = features + 1
        self._scatter: Any = np.zeros((self._width, self._width)) if self.full else 0.0
        self._bend: Any = 0.0
        self._weight, self._batches, self._next = 0.0, 0, 0.0

    def see(self, F: Any, weights: Array, bend: LossCurvature, loss: Loss, share: float) -> None:
        """Take a batch into account; `share` is the penalty of the squared norm for one row."""
        total = float(weights.sum())
        self._weight += total
        self._batches += 1
        gain = total / self._weight
        self._scatter = self._scatter + gain * (self._moments(F, weights / total) - self._scatter)
        gain = 2.0 / (self._batches + 1.0)  # rows bend otherwise as the weights move
        self._bend = self._bend + gain * (bend.convex().mean(weights) - self._bend)
        if self._batches > self._next:
            self._next = _GROWTH * self._batches
            self._look(loss, share)

    def pace(self, F: Any, weights: Array) -> float:
        """Return the step that a batch of these rows surely bears."""
        total = float(weights.sum())
        if not self.full:
            batch_scatter = self._moments(F, weights / total)
            return float(self._axes / max(self._axes, batch_scatter))
        rows = (_with_ones(F) / self._scales) @ self._axes
        longer = float(weights @ (np.square(rows) / self._sizes).sum(axis=1)) / total / self._width
        # few rows in many directions: their own scatter is that much larger than that of all
        return float(1.0 / ((1.0 + np.sqrt(self._width / len(weights))) ** 2 * max(1.0, longer)))

    def undo(self, G: Array, g: Array) -> tuple[Array, Array]:
        """Return what a gradient by weights G and biases g is, less the curvature."""
        whole = np.vstack([G, g]) @ self._turn
        if self.full:
            whole = whole / self._scales[:, None]
            whole = self._axes @ ((self._axes.T @ whole) / np.outer(self._sizes, self._bends))
            whole = whole / self._scales[:, None]
        else:
            whole = whole / (self._axes * self._bends)
        whole = whole @ self._turn.T
        return whole[:-1], whole[-1]

    def _moments(self, F: Any, shares: Array) -> Any:
        """Return the scatter of rows, or only the mean of their squared lengths."""
        if not self.full:
            squares = F.multiply(F) if is_sparse(F) else np.square(F)
            return float(shares @ np.asarray(squares.sum(axis=1)).ravel()) + 1.0
        rows = _with_ones(F)
        return rows.T @ (shares[:, None] * rows)

    def _look(self, loss: Loss, share: float) -> None:
        """Decompose what has been seen."""
        bends, self._turn = np.linalg.eigh(self._bend)
        self._bends = np.maximum(bends, _FLATTEST * loss.steepest(len(bends)))
        penalty = share / float(self._bends.min())
        if not self.full:
            self._axes = self._scatter + penalty
            return
        scatter = self._scatter.copy()
        scatter.flat[: -1 : self._width + 1] += penalty
        self._scales = np.sqrt(np.maximum(scatter.diagonal(), np.finfo(float).tiny))
        known = self._weight / (self._weight + self._width)  # few rows: columns as if unrelated
        scatter *= known / np.multiply.outer(self._scales, self._scales)
        scatter.flat[:: self._width + 1] += 1.0 - known
        sizes, self._axes = np.linalg.eigh(scatter)
        self._sizes = np.maximum(sizes, _SINGULAR)


def _with_ones(F: Any) -> Array:
    return np.column_stack([to_dense(F), np.ones(F.shape[0])])
