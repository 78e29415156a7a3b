"""Rows of features in the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import _native, deadline
from mercer.array_types import Array
from mercer.backends.contract import (
    FeatureAnswer,
    FeatureBox,
    Features,
    GroupAnswer,
    Groups,
    Poll,
)
from mercer.backends.native.partition import partition_dense, partition_sparse
from mercer.backends.reference.features import ReferenceFeatures
from mercer.points import is_sparse
from mercer.resources import call_threads


def features(F: Any, index: Array | None) -> Features:
    """Bind rows; products with sparse rows are SciPy's, which walks nonzeros as we would."""
    index = None if index is None else np.ascontiguousarray(index, dtype=np.int64)
    return NativeSparse(F, index) if is_sparse(F) else NativeDense(F, index)


class NativeSparse(ReferenceFeatures):
    """CSR rows: products by SciPy, the descent compiled."""

    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Walk over rows of nonzeros."""
        F = self._F
        rows = (
            np.ascontiguousarray(F.indptr, dtype=np.int64),
            np.ascontiguousarray(F.indices, dtype=np.int32),
            np.ascontiguousarray(F.data, dtype=np.float64),
            F.shape[1],
        )
        found = _native.linear_descent_sparse(
            *rows, self._index, *_vectors(box), tol, max_epochs, poll
        )
        return FeatureAnswer(*found)

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Walk over rows of nonzeros, past those that cannot change."""
        return partition_sparse(self._F, self._index, groups, poll)


class NativeDense(Features):
    """Dense rows.

    Parameters
    ----------
    F : (N, d) float64 array
        The features of all points.
    index : (n,) int64 array, optional
        Which of them, repeats allowed.
    """

    def __init__(self, F: Array, index: Array | None) -> None:
        self._F, self._index = np.ascontiguousarray(F, dtype=np.float64), index
        self.shape = (F.shape[0] if index is None else len(index), F.shape[1])

    def matvec(self, w: Array) -> Array:
        """Multiply by all threads."""
        deadline.check()
        return _native.linear_times(self._F, self._index, _float64(w), self._threads(1))

    def rmatvec(self, x: Array) -> Array:
        """Multiply by all threads."""
        deadline.check()
        return _native.linear_pull(self._F, self._index, _float64(x), self._threads(1))

    def gram(self, weights: Array, centre: Array, group: Array, groups: int) -> Array:
        """Multiply packed rows, tile by tile."""
        deadline.check()
        threads = self._threads(self.shape[1])
        return _native.linear_gram(
            self._F, self._index, _float64(centre), _int8(group), groups, _float64(weights), threads
        )

    def descend(
        self, box: FeatureBox, tol: float, max_epochs: int, poll: Poll | None
    ) -> FeatureAnswer:
        """Walk over rows."""
        found = _native.linear_descent(self._F, self._index, *_vectors(box), tol, max_epochs, poll)
        return FeatureAnswer(*found)

    def partition(self, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Walk over rows, past those that cannot change."""
        return partition_dense(self._F, self._index, groups, poll)

    def _threads(self, vectors: int) -> int:
        return call_threads(float(self.shape[0]) * self.shape[1] * vectors)


def _vectors(box: FeatureBox) -> tuple[Any, ...]:
    return (
        _float64(box.linear),
        _float64(box.lower),
        _float64(box.upper),
        None if box.shift is None else _float64(box.shift),
        None if box.epsilon is None else _float64(box.epsilon),
        _int8(box.group),
        _float64(box.totals),
        _float64(box.start),
        _float64(box.offsets),
    )


def _float64(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.float64)


def _int8(x: Array) -> Array:
    return np.ascontiguousarray(x, dtype=np.int8)
