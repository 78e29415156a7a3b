"""Compiled backend: kernel matrices, box QPs, perceptron, k-means and features in C++."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import _native, deadline
from mercer.array_types import Array, Points
from mercer.backends.box_programs import (
    Box,
    BoxAnswer,
    BoxPath,
    BoxPathAnswer,
    FeatureAnswer,
    FeatureBox,
)
from mercer.backends.contract import (
    BackendFeatures,
    Band,
    GroupAnswer,
    Groups,
    LinearFunctions,
    Pairs,
    PassCounts,
    Poll,
    RowParts,
)
from mercer.backends.host import HostBackend
from mercer.backends.native.neighbor_search import neighbours
from mercer.backends.native.pairs import NativePairs
from mercer.backends.reference.backend import ReferenceFeatures
from mercer.backends.reference.kmeans import labelled
from mercer.backends.row_values import diagonal
from mercer.expression import Expression
from mercer.resources import call_threads
from mercer.rows.points import is_sparse

# --- backend -------------------------------------------------------------------------------------
#
# The compiled backend: expressions become flat programs that run tile by tile in C++.

_STEPS_PER_VARIABLE = 2.0  # a guess, to tell whether a second thread is worth waking

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
            return neighbours(expression, X, Y, count)

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
        """Run the compiled loop on a stored float32 or float64 matrix.

        With a float32 matrix the gradient is kept in float32, too, and the one returned has its
        accuracy: about 1e-7 of its largest change, times the square root of the number of steps.
        """
        arrays = [_boxes_arrays(box) for box in boxes]
        work = _STEPS_PER_VARIABLE * sum(float(len(box.gradient)) ** 2 for box in boxes)
        answers = _native.box_qps(_rows(K), arrays, tol, max_iter, poll, call_threads(work))
        return [BoxAnswer(*answer) for answer in answers]

    def box_paths(
        self, K: Array, paths: Sequence[BoxPath], tol: float, max_iter: int, poll: Poll | None
    ) -> list[BoxPathAnswer]:
        """Solve in compiled code; several paths on several threads."""
        arrays = [_path_arrays(path) for path in paths]
        work = _STEPS_PER_VARIABLE * sum(
            len(path.steps) * float(len(path.box.gradient)) ** 2 for path in paths
        )
        answers = _native.box_chains(_rows(K), arrays, tol, max_iter, poll, call_threads(work))
        return [
            BoxPathAnswer(
                b.reshape(len(path.steps), len(path.box.gradient)),
                gradient.reshape(len(path.steps), len(path.box.gradient)),
                offsets.reshape(len(path.steps), len(path.totals)),
                values.reshape(len(path.steps), len(path.evaluation_rows)),
                np.array(iterations, dtype=np.int64),
                violation,
            )
            for path, (b, gradient, offsets, values, iterations, violation) in zip(
                paths, answers, strict=True
            )
        ]

    def partition(self, K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
        """Run the compiled steps: sums are kept in the type of K, objectives in float64."""
        work = float(len(groups.starts)) * K.shape[0] * K.shape[1]
        return _answers(_native.partition(_rows(K), *_partition_arrays(groups, poll, work)))

    def perceptron(
        self,
        X: Any,
        codes: Array,
        order: Array | None,
        rules: LinearFunctions,
        step: float,
        interruptible: bool,
    ) -> PassCounts:
        """Walk over dense or CSR rows; weights are changed in place."""
        after = (
            order,
            codes,
            rules.weights,
            rules.bias,
            rules.late,
            rules.late_bias,
            rules.tally,
            rules.has_bias,
            step,
            interruptible,
        )
        if not is_sparse(X):
            return PassCounts(*_native.perceptron_dense(X, *after))
        begin = np.ascontiguousarray(X.indptr, dtype=np.int64)
        columns = np.ascontiguousarray(X.indices, dtype=np.int32)
        return PassCounts(*_native.perceptron_sparse(begin, columns, X.data, X.shape[1], *after))

    def features(self, F: Any, index: Array | None) -> BackendFeatures:
        """Bind rows; products with sparse rows are SciPy's, which walks nonzeros as we would."""
        index = None if index is None else np.ascontiguousarray(index, dtype=np.int64)
        return NativeSparse(F, index) if is_sparse(F) else NativeDense(F, index)


# --- box QPs -------------------------------------------------------------------------------------
#
# Box QPs for the compiled core, as plain contiguous arrays.


def _rows(K: Array) -> Array:
    """Return K with rows whose entries stand side by side."""
    return np.ascontiguousarray(K) if len(K) > 1 and K.strides[1] != K.itemsize else K


def _path_arrays(path: BoxPath) -> tuple[Any, ...]:
    return (
        *_boxes_arrays(path.box),
        np.ascontiguousarray(path.totals, dtype=np.float64),
        [(s.bound, s.epsilon, s.shift, s.total, s.start) for s in path.steps],
        np.ascontiguousarray(path.evaluation_rows, dtype=np.int64),
    )


def _boxes_arrays(box: Box) -> tuple[Any, ...]:
    numbers = (box.gradient, box.start, box.lower, box.upper, box.epsilon, box.shift)
    indices = (box.group, box.rows)
    return (
        *(None if v is None else np.ascontiguousarray(v, dtype=np.float64) for v in numbers),
        *(None if v is None else np.ascontiguousarray(v, dtype=np.int64) for v in indices),
    )


# --- partition -----------------------------------------------------------------------------------
#
# Partitions in the compiled core: plain contiguous arrays in, answers out.


def partition_dense(
    F: Array, index: Array | None, groups: Groups, poll: Poll | None
) -> list[GroupAnswer]:
    """Part rows of features."""
    work = float(len(groups.starts)) * len(groups.weights) * F.shape[1] * groups.count
    means, groups_ = _means(groups), _partition_arrays(groups, poll, work)
    found = _answers(_native.partition_dense(F, index, means, *groups_))
    return _begun(found, groups, F, index)


def partition_sparse(
    F: Any, index: Array | None, groups: Groups, poll: Poll | None
) -> list[GroupAnswer]:
    """Part rows of nonzeros."""
    rows = (
        np.ascontiguousarray(F.indptr, dtype=np.int64),
        np.ascontiguousarray(F.indices, dtype=np.int32),
        np.ascontiguousarray(F.data, dtype=np.float64),
        F.shape[1],
    )
    work = float(len(groups.starts)) * F.nnz * groups.count
    means, groups_ = _means(groups), _partition_arrays(groups, poll, work)
    found = _answers(_native.partition_sparse(*rows, index, means, *groups_))
    return _begun(found, groups, F, index)


def _means(groups: Groups) -> Array | None:
    """Return the means of all starts below one another, (r k, d); None where they are labels."""
    if groups.starts.ndim == 2:
        return None
    return np.ascontiguousarray(groups.starts.reshape(-1, groups.starts.shape[2]), np.float64)


def _begun(
    found: list[GroupAnswer], groups: Groups, F: Any, index: Array | None
) -> list[GroupAnswer]:
    """Return labels also of starts from means that were stopped before the first pass was over."""
    if groups.starts.ndim == 2 or all(len(answer.trace) for answer in found):
        return found
    starts = labelled(groups, F if index is None else F[index]).starts
    pairs = zip(found, starts, strict=True)
    return [a if len(a.trace) else replace(a, labels=labels) for a, labels in pairs]


def _partition_arrays(groups: Groups, poll: Poll | None, work: float) -> tuple[Any, ...]:
    labels = groups.starts.ndim == 2
    return (
        np.ascontiguousarray(groups.starts, dtype=np.int32) if labels else None,
        groups.count,
        np.ascontiguousarray(groups.weights, dtype=np.float64),
        np.ascontiguousarray(groups.diagonal, dtype=np.float64),
        groups.max_iter,
        groups.refine,
        poll,
        call_threads(work),
    )


def _answers(found: list[tuple[Array, Array, bool]]) -> list[GroupAnswer]:
    return [GroupAnswer(*answer) for answer in found]


# --- features ------------------------------------------------------------------------------------
#
# Rows of features in the compiled core.


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


class NativeDense(BackendFeatures):
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
