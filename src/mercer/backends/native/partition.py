"""Partitions in the compiled core: plain contiguous arrays in, answers out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer import _native
from mercer.array_types import Array
from mercer.backends.contract import GroupAnswer, Groups, Poll
from mercer.backends.reference.partition import labelled
from mercer.resources import call_threads


def partition(K: Array, groups: Groups, poll: Poll | None) -> list[GroupAnswer]:
    """Part points with a stored matrix; sums are kept in its type, objectives in float64."""
    if len(K) > 1 and K.strides[1] != K.itemsize:
        K = np.ascontiguousarray(K)
    work = float(len(groups.starts)) * K.shape[0] * K.shape[1]
    return _answers(_native.partition(K, *_arrays(groups, poll, work)))


def partition_dense(
    F: Array, index: Array | None, groups: Groups, poll: Poll | None
) -> list[GroupAnswer]:
    """Part rows of features."""
    work = float(len(groups.starts)) * len(groups.weights) * F.shape[1] * groups.count
    means, groups_ = _means(groups), _arrays(groups, poll, work)
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
    means, groups_ = _means(groups), _arrays(groups, poll, work)
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


def _arrays(groups: Groups, poll: Poll | None, work: float) -> tuple[Any, ...]:
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
