"""Clusters from rows of eigenvectors without k-means: pivoted QR, or rotation and rounding."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import LinAlgWarning, qr, svd

from mercer.array_types import Array

_ROUNDS = 30
_TRIES = 10


def by_pivots(vectors: Array) -> Array:
    """Take k far-apart rows for axes (pivoted QR), rotate to them, and give the nearest axis."""
    k = vectors.shape[1]
    _, _, pivots = qr(vectors.T, mode="economic", pivoting=True)
    left, _, right = svd(vectors[pivots[:k]].T)
    return np.asarray(np.abs(vectors @ (left @ right)).argmax(axis=1))


def by_rotation(vectors: Array, rng: np.random.RandomState) -> Array:
    """Find the rotation that brings rows of length one closest to 0-1 indicators, and round."""
    n, k = vectors.shape
    norms = np.linalg.norm(vectors, axis=0)
    columns = vectors / np.where(norms > 0, norms, 1.0) * np.sqrt(n)
    columns = columns * np.where(columns[0] > 0, -1.0, 1.0)
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    rows = columns / np.where(lengths > 0, lengths, 1.0)
    labels, best = np.zeros(n, dtype=np.int64), -np.inf
    for _ in range(_TRIES):
        try:
            labels, best = _rounded(rows, _axes(rows, k, rng))
        except np.linalg.LinAlgError:  # from these axes nowhere; others may do
            continue
        break
    if best == -np.inf:
        warnings.warn("discretize: no rotation was found", LinAlgWarning, stacklevel=4)
    return labels


def _axes(rows: Array, k: int, rng: np.random.RandomState) -> Array:
    """Choose k rows, each as orthogonal to those before as can be."""
    axes = np.zeros((k, k))
    axes[:, 0] = rows[rng.randint(len(rows))]
    seen = np.zeros(len(rows))
    for j in range(1, k):
        seen += np.abs(rows @ axes[:, j - 1])
        axes[:, j] = rows[seen.argmin()]
    return axes


def _rounded(rows: Array, axes: Array) -> tuple[Array, float]:
    """Alternate between nearest indicators and the best rotation towards them."""
    before = 0.0
    for _ in range(_ROUNDS):
        labels = np.asarray((rows @ axes).argmax(axis=1))
        members = np.zeros((len(rows), axes.shape[1]))
        members[np.arange(len(rows)), labels] = 1.0
        left, singular, right = np.linalg.svd(members.T @ rows)
        if abs(singular.sum() - before) < np.finfo(float).eps * max(1.0, before):
            break
        before = float(singular.sum())
        axes = right.T @ left.T
    return labels, before
