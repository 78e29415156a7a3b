"""Partitions of a backend are those of the reference: the same labels by the same way."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mercer.array_types import Array
from mercer.backends.contract import Backend, GroupAnswer, Groups
from mercer.backends.reference.backend import Reference


def check_partitions(backend: Backend) -> None:
    """Compare stored matrices and rows of features, dense and sparse, with the reference."""
    rng = np.random.default_rng(9)
    for n, d, k in ((1, 1, 1), (7, 2, 7), (40, 3, 1), (300, 5, 6), (700, 20, 11)):
        F, w = rng.standard_normal((n, d)), rng.integers(1, 4, n).astype(np.float64)
        K = F @ F.T
        for refine in (False, True):
            groups = Groups(_starts(rng, n, k), k, w, K.diagonal().copy(), 100, refine)
            expected = Reference().partition(K, groups, None)
            label = f"{backend.name}: {n} points, {k} groups, refine={refine}"
            _compare(backend.partition(K, groups, None), expected, label)
            for rows in (F, sparse.csr_array(F)):
                _compare(backend.features(rows, None).partition(groups, None), expected, label)
            single = backend.partition(K.astype(np.float32), groups, None)
            for answer in single:
                assert (np.diff(answer.trace[:, 0]) < 0).all(), label
                assert len(np.unique(answer.labels)) == k, label


def _starts(rng: np.random.Generator, n: int, k: int) -> Array:
    starts = [np.append(np.arange(k), rng.integers(0, k, n - k)) for _ in range(3)]
    return np.stack(starts).astype(np.int32)


def _compare(found: list[GroupAnswer], expected: list[GroupAnswer], label: str) -> None:
    for answer, other in zip(found, expected, strict=True):
        assert (answer.labels == other.labels).all(), label
        assert answer.converged and other.converged, label
        assert answer.trace.shape == other.trace.shape, label
        size = max(1.0, float(other.trace[0, 0]))
        assert np.abs(answer.trace[:, 0] - other.trace[:, 0]).max() <= 1e-9 * size, label
