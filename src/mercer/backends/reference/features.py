"""Rows of features in NumPy: products in chunks, and the specification of the coordinate descent.

With w = F'b kept along, one variable at a time is set to its optimum given all others, in random
order. A fixed sum of variables becomes rho/2 (sum - total)^2 plus a multiplier (the offset), which
moves once the descent knows the sum better than the sum is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.contract import (
    FeatureAnswer,
    FeatureBox,
    Features,
    GroupAnswer,
    Groups,
    Poll,
)
from mercer.backends.reference.partition import labelled, partition
from mercer.points import is_sparse, to_dense

_CHUNK = 1 << 18  # entries: two such blocks stay in a second-level cache
_LONG = 1 << 25  # entries that a product with a vector may read between two chances for Ctrl-C
_POLL_EVERY = 256
_STEEP = 10.0  # times the least steep penalty of a sum


class ReferenceFeatures(Features):
    """Rows F[index], dense or CSR.

    Parameters
    ----------
    F : (N, d) float64 array or CSR array
        The features of all points.
    index : (n,) int array, optional
        Which of them, repeats allowed.
    """

    def __init__(self, F: Any, index: Array | None) -> None:
        self._F, self._index = F, index
        self.shape = (F.shape[0] if index is None else len(index), F.shape[1])

    def matvec(self, w: Array) -> Array:
        """Multiply chunk by chunk."""
        out = np.empty(self.shape[0])
        for part, block in self._blocks(_LONG):
            out[part] = block @ w
        return out

    def rmatvec(self, x: Array) -> Array:
        """Multiply chunk by chunk."""
        out = np.zeros(self.shape[1])
        for part, block in self._blocks(_LONG):
            out += block.T @ x[part]
        return out

    def gram(self, weights: Array, centre: Array, group: Array, groups: int) -> Array:
        """Add up chunks; sparse ones are never centred."""
        d = self.shape[1]
        out = np.zeros((d + groups, d + groups))
        for part, block in self._blocks(_LONG if is_sparse(self._F) else _CHUNK):
            beside = (group[part, None] == np.arange(groups)).astype(np.float64)
            if is_sparse(block):
                scaled = block.multiply(weights[part, None]).tocsr()
                out[:d, :d] += to_dense(block.T @ scaled)
                out[:d, d:] += scaled.T @ beside - np.outer(centre, weights[part] @ beside)
            else:
                scaled = weights[part, None] * (block - centre)
                out[:d, :d] += (block - centre).T @ scaled
                out[:d, d:] += scaled.T @ beside
            out[d:, d:] += np.diag(weights[part] @ beside)
        out[d:, :d] = out[:d, d:].T
        return out

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the steps of `partition` on F F', of which only what is asked for is multiplied."""
        rows = self._F if self._index is None else self._F[self._index]
        return partition(Products(rows), labelled(groups, rows), poll)

    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Walk over all variables in random order, without leaving any out."""
        return _CoordinateDescent(self, box).run(tol, max_epochs, poll)

    def row(self, i: int) -> Array:
        """Return one row."""
        return np.asarray(to_dense(self._F[[i if self._index is None else self._index[i]]])[0])

    def _blocks(self, entries: int) -> Iterator[tuple[slice, Any]]:
        step = max(1, entries // max(1, self.shape[1]))
        if is_sparse(self._F):
            step = max(1, entries // max(1, self._F.nnz // max(1, self._F.shape[0])))
        for first in range(0, self.shape[0], step):
            deadline.check()
            part = slice(first, min(self.shape[0], first + step))
            yield part, self._F[part if self._index is None else self._index[part]]


class _CoordinateDescent:
    def __init__(self, rows: ReferenceFeatures, box: FeatureBox) -> None:
        self.rows, self.box, self.b = rows, box, box.start.astype(np.float64)
        n = rows.shape[0]
        self.epsilon = np.zeros(n) if box.epsilon is None else box.epsilon
        self.shift = np.zeros(n) if box.shift is None else box.shift
        lengths = np.array([float(x @ x) for x in map(rows.row, range(n))])
        slope = _STEEP * _box_slope(box)
        self.rho = float(max(lengths.mean() if n else 0.0, slope)) or 1.0
        self.curvature = lengths + self.shift + np.where(box.group >= 0, self.rho, 0.0)
        self.offsets = box.offsets.astype(np.float64)
        self.w = rows.rmatvec(self.b)
        sums = np.bincount(box.group + 1, weights=self.b, minlength=len(box.totals) + 1)[1:]
        self.off = sums - box.totals

    def run(self, tol: float, max_epochs: int, poll: Poll | None) -> FeatureAnswer:
        rng, epochs, violation = np.random.default_rng(0), 0, np.inf
        while epochs < max_epochs:
            rise = fall = 0.0
            for step, i in enumerate(rng.permutation(len(self.b))):
                if step % _POLL_EVERY == 0 and poll is not None and poll(epochs, violation):
                    return FeatureAnswer(self.b, self.offsets, epochs, violation)
                up, down = self._move(int(i))
                rise, fall = max(rise, up), max(fall, -down)
            epochs, violation = epochs + 1, rise + fall
            infeasibility = self.rho * float(np.abs(self.off).max(initial=0.0))
            if violation <= tol and infeasibility <= 0.1 * tol:
                break
            if violation <= max(tol, 3.0 * infeasibility):
                self.offsets += self.rho * self.off
        return FeatureAnswer(self.b, self.offsets, epochs, violation)

    def _move(self, i: int) -> tuple[float, float]:
        x, g, b, box = self.rows.row(i), int(self.box.group[i]), self.b[i], self.box
        G = box.linear[i] - x @ self.w - self.shift[i] * b
        if g >= 0:
            G -= self.offsets[g] + self.rho * self.off[g]
        epsilon, q = self.epsilon[i], self.curvature[i]
        up = G + (epsilon if b < 0 else -epsilon) if b < box.upper[i] else -np.inf
        down = G + (-epsilon if b > 0 else epsilon) if b > box.lower[i] else np.inf
        if up > 0 or down < 0:
            z = float(np.clip(_target(b, G, epsilon, q), box.lower[i], box.upper[i]))
            if np.isfinite(z):
                self.b[i] = z
                self.w += (z - b) * x
                if g >= 0:
                    self.off[g] += z - b
        return float(up), float(down)


def _target(b: float, G: float, epsilon: float, q: float) -> float:
    """Return where a variable would like to be; with a row of zeros as far as it may go."""
    if q > 0:
        z = b + G / q
        return float(np.sign(z) * max(abs(z) - epsilon / q, 0.0))
    return float(np.sign(G) * np.inf) if abs(G) > epsilon else b


def _box_slope(box: FeatureBox) -> float:
    """Return how far forces lie apart, over how far sums can go: by less a sum is not felt."""
    m = box.group >= 0
    apart = float(np.ptp(box.linear[m])) if m.any() else 0.0
    width = (box.upper - box.lower)[m]
    if box.shift is not None:
        bent = box.shift[m] > 0
        reach = np.where(bent, apart / np.where(bent, box.shift[m], 1.0), np.inf)
        width = np.minimum(width, reach)
    total = float(width.sum())
    return apart / total if total > 0 else 0.0


class Products:
    """F F' for those who ask for single rows or for products."""

    def __init__(self, F: Any) -> None:
        self._F = F

    def __getitem__(self, index: Array) -> Array:
        return to_dense(self._F[index] @ self._F.T)

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self._F @ (self._F.T @ V))
