"""The compiled backend: expressions become flat programs that run tile by tile in C++."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer import _native, deadline
from mercer.array_types import Array, Points
from mercer.backends.boxes import Box, BoxAnswer, BoxPath, BoxPathAnswer
from mercer.backends.contract import (
    Band,
    Features,
    GroupAnswer,
    Groups,
    Pairs,
    Poll,
    RowParts,
)
from mercer.backends.host_backend import HostBackend
from mercer.backends.lowering.diagonal import diagonal
from mercer.backends.native.boxes import box_paths, box_qps
from mercer.backends.native.features import features
from mercer.backends.native.neighbours import neighbours
from mercer.backends.native.online import perceptron_pass
from mercer.backends.native.pairs import NativePairs
from mercer.backends.native.partition import partition
from mercer.backends.perceptron_state import LinearFunctions, PassCounts
from mercer.expression import Expression
from mercer.resources import call_threads

# compiled calls look at the deadline of a fit wherever they look at signals
_native.watch_polls(deadline.check)
atexit.register(_native.watch_polls, None)


class Native(HostBackend):
    """The compiled core."""

    name = "native"

    def pairs(self, expression: Expression, X: Points, Y: Points | None, dtype: Any) -> Pairs:
        """Bind an expression to points."""
        return NativePairs(expression, X, Y, dtype)

    def diagonal(self, expression: Expression, X: Points, dtype: Any) -> Array:
        """Evaluate e(x_i, x_i), without comparing different rows; overflow gives infinity."""
        with np.errstate(all="ignore"):
            return diagonal(expression, X).astype(dtype, copy=False)

    def neighbours(
        self, expression: Expression, X: Points, Y: Points | None, count: int
    ) -> tuple[Array, Array]:
        """Search while tiles go by."""
        with np.errstate(all="ignore"):
            return neighbours(NativePairs, expression, X, Y, count)

    def empty(self, n: int, m: int) -> Array:
        """Take pages from the arena."""
        return np.asarray(_native.empty_double(n, m))

    def symmetric_product(self, K: Array, V: Array, parts: RowParts | None = None) -> Array:
        """Read each tile above the diagonal once, for both of its places."""
        deadline.check()
        K, V = np.ascontiguousarray(K), np.ascontiguousarray(V, dtype=np.float64)
        threads = call_threads(float(K.size) * (1 + V.shape[1]))
        ends, reads, writes = parts or (None, None, None)
        return _native.symmetric_product(K, V, ends, reads, writes, threads)

    def cholesky(self, A: Array) -> int:
        """Factor in place, interruptible."""
        deadline.check()
        return _native.cholesky(A, call_threads(float(len(A)) ** 3))

    def band_reduce(self, A: Array, width: int) -> Band:
        """Reduce by blocked Householder steps, interruptible."""
        Qt, lower = _native.band_reduce(A, width, call_threads(float(len(A)) ** 3))
        return Band(Qt, lower, width)

    def band_inverse_diagonals(self, band: Band, shifts: Array) -> Array:
        """Solve with all shifted bands together."""
        deadline.check()
        shifts = np.ascontiguousarray(shifts, dtype=np.float64)
        threads = call_threads(float(band.Qt.size) * band.width * len(shifts))
        return _native.band_inverse_diagonals(band.Qt, band.lower, band.width, shifts, threads)

    def box_qps(
        self, K: Array, boxes: Sequence[Box], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxAnswer]:
        """Run the compiled loop on a stored float32 or float64 matrix."""
        return box_qps(K, boxes, tol, max_iter, poll)

    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve in compiled code; several paths on several threads."""
        return box_paths(K, paths, tol, max_iter, poll)

    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the compiled steps on a stored float32 or float64 matrix."""
        return partition(K, groups, poll)

    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk in the compiled core."""
        return perceptron_pass(X, codes, order, rules, step, interruptible)

    def features(self, F: Any, index: Array | None) -> Features:
        """Bind rows."""
        return features(F, index)
