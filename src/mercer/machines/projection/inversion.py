"""From scores back to rows: exactly, by iteration, by regression, or not at all and why."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.kernels import Gaussian, Kernel, Linear, Precomputed
from mercer.machines.base.inputs import read_array, refuse_nonfinite
from mercer.machines.projection.preimage import FixedPoint, Preimages, joined
from mercer.machines.projection.preimage_weights import preimage_weight
from mercer.machines.projection.subspace import FeatureSubspace, PointSubspace
from mercer.machines.regression.ridge import KernelRidge
from mercer.points import is_objects, to_dense
from mercer.resources import require_memory, rows_at_once

_BLOCK = 1 << 20  # entries of K(z, x) at once
_ARRAYS = 6  # of that shape: coefficients, K and pulls, and what is left of them after a step


class Inverse(ABC):
    """A way from scores to rows."""

    @abstractmethod
    def find(self, scores: Array) -> Preimages:
        """Return rows for scores (m, k)."""


@dataclass(frozen=True, eq=False)
class Impossible(Inverse):
    """No way, and why."""

    reason: str

    def find(self, scores: Array) -> Preimages:
        """Refuse."""
        raise ValueError(self.reason)


@dataclass(frozen=True, eq=False)
class Exact(Inverse):
    """The linear kernel: the point of the subspace is a row."""

    subspace: FeatureSubspace

    def find(self, scores: Array) -> Preimages:
        """Add up the directions."""
        rows = scores @ self.subspace.directions.T + self.subspace.mean
        m = len(scores)
        return Preimages(rows, np.zeros(m), np.ones(m, dtype=bool), 0)


@dataclass(frozen=True, eq=False)
class Iterated(Inverse):
    """The fixed-point iteration, from the training point with the nearest scores."""

    subspace: PointSubspace
    kernel: Kernel
    pull: Kernel
    training: Array

    @cached_property
    def _search(self) -> FixedPoint:
        rows = self.subspace.source.X
        what = f"{rows.shape[0]} training rows, not sparse, for pre-images"
        require_memory(8 * rows.shape[0] * rows.shape[1], what, "Use preimage='learned'.")
        return FixedPoint(self.kernel, self.pull, to_dense(rows))

    def find(self, scores: Array) -> Preimages:
        """Go through the targets in blocks."""
        n = len(self.training)
        block = rows_at_once(n, max(1, _BLOCK // n), arrays=_ARRAYS)
        parts = [self._block(scores[i : i + block]) for i in range(0, len(scores), block)]
        return joined(parts) if parts else self._block(scores)

    def _block(self, scores: Array) -> Preimages:
        """Write the targets over the training points, and climb."""
        space = self.subspace
        coef = scores @ space.coef.T + space.shares
        lengths = np.square(scores).sum(axis=1)
        norms = lengths + 2.0 * scores @ space.centre[:-1] + space.centre[-1]
        return self._search.find(coef, self._nearest(scores), norms)

    def _nearest(self, scores: Array) -> Array:
        own = np.square(self.training).sum(axis=1)
        return np.asarray((own - 2.0 * scores @ self.training.T).argmin(axis=1))


@dataclass(frozen=True, eq=False)
class Learned(Inverse):
    """Kernel ridge regression from scores to rows, learned when first asked for."""

    training: Array
    rows: Points
    weights: Array

    @cached_property
    def _regression(self) -> KernelRidge:
        rows = to_dense(self.rows)
        share = self.weights / self.weights.sum()
        # scale as the default of the Gaussian kernel, but where all scores are equal: any will do
        spread = float((share @ np.square(self.training - share @ self.training)).sum())
        kernel = Gaussian(sqrt(spread / 2) if spread > 0 else 1.0)
        return KernelRidge("loo", kernel=kernel).fit(self.training, rows, self.weights)

    def find(self, scores: Array) -> Preimages:
        """Predict rows; how close their images come is not known."""
        rows, m = self._regression.predict(scores), len(scores)
        return Preimages(rows, np.full(m, np.nan), np.ones(m, dtype=bool), 0)


def choose(machine: Any, rows: Points, training: Array, weights: Array) -> Inverse:
    """Return the way back that a machine's kernel and `preimage` allow.

    Parameters
    ----------
    machine : PCA
        With `kernel_` and the subspace found.
    rows : Points
        The training rows.
    training : (n, k) array
        Their scores.
    weights : (n,) array
        How often each row counts.
    """
    kernel, space, name = machine.kernel_, machine._subspace, type(machine).__name__
    if isinstance(kernel, Linear) and isinstance(space, FeatureSubspace):
        return Exact(space)
    if isinstance(kernel, Precomputed):
        return Impossible(f"{name}: a precomputed kernel knows no rows that could be pre-images")
    if is_objects(rows):
        return Impossible(f"{name}: rows that are sequences have no pre-images; numbers do")
    pull = preimage_weight(kernel)
    if machine.preimage == "learned" or (machine.preimage == "auto" and pull is None):
        return Learned(training, rows, weights)
    if pull is None or not isinstance(space, PointSubspace):
        return Impossible(
            f"{name}: preimage='fixed_point' needs a kernel of a distance that is smooth at zero "
            f"(Gaussian, RationalQuadratic, Matern with nu > 1, their sums), not {kernel!r}; use "
            "preimage='learned'"
        )
    return Iterated(space, kernel, pull, training)


def check_scores(machine: Any, X: Any, count: int) -> Array:
    """Check scores that are to be turned back."""
    owner = type(machine).__name__
    scores = read_array(owner, X, "X", dtype=np.float64, ensure_min_samples=0)
    refuse_nonfinite(owner, scores)
    if scores.shape[1] != count:
        raise ValueError(
            f"{owner}: X has {scores.shape[1]} columns, but there are {count} components"
        )
    return np.asarray(scores)
