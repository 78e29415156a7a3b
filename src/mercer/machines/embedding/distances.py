"""Dissimilarities between rows: by a metric, by a function, or as they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.machines.base.parameters import refuse
from mercer.points import is_sparse, row_count, to_dense
from mercer.resources import require_memory

METRICS = (
    "euclidean",
    "cityblock",
    "chebyshev",
    "canberra",
    "braycurtis",
    "correlation",
    "cosine",
    "hamming",
    "jaccard",
)
_RANGE = 1e150  # of dissimilarities and their inverses, whose squares are numbers
_BLOCK = 1 << 20  # distances between two looks at the clock
_SYMMETRIC = 1e-8  # of the largest: by how much d(x, y) and d(y, x) may differ

Metric = str | Callable[[Array, Array], float]


def check_metric(machine: Any) -> None:
    """Refuse what is no metric."""
    metric = machine.metric
    if not callable(metric) and metric not in (*METRICS, "precomputed"):
        names = ", ".join(map(repr, METRICS))
        refuse(machine, "metric", metric, f"be 'precomputed', a function of two rows, or {names}")


def between(machine: Any, Z: Points, X: Points) -> Array:
    """Return the dissimilarities of rows Z (m, d) from rows X (n, d): (m, n)."""
    m, n = row_count(Z), row_count(X)
    what = f"dissimilarities of {m} rows from {n}"
    written = sum(8 * A.shape[0] * A.shape[1] for A in (Z, X) if is_sparse(A))
    require_memory(8 * m * n + written, what, "Use fewer rows.")
    Z, X = (np.asarray(to_dense(A), dtype=np.float64) for A in (Z, X))
    if machine.metric == "jaccard":
        Z, X = Z != 0, X != 0
    unit = _unit(Z, X) if machine.metric == "euclidean" else 1.0  # which squares differences
    X = X / unit if unit != 1.0 else X
    found, step = np.empty((m, n)), max(1, _BLOCK // max(1, n))
    for first in range(0, m, step):
        deadline.check()
        part = slice(first, first + step)
        found[part] = cdist(Z[part] / unit, X, machine.metric)
    found *= unit
    refuse_no_dissimilarities(machine, found)
    return found


def _unit(Z: Array, X: Array) -> float:
    """Return the largest power of two that is no more than the largest entry."""
    largest = max(float(np.abs(A).max(initial=0.0)) for A in (Z, X))
    return float(2.0 ** np.floor(np.log2(largest))) if 0 < largest < np.inf else 1.0


def refuse_no_dissimilarities(machine: Any, D: Array) -> None:
    """Refuse numbers that are no dissimilarities: negative, or none."""
    largest = float(D.max(initial=0.0))
    if largest > _RANGE or 0 < largest < 1.0 / _RANGE:
        raise ValueError(
            f"{type(machine).__name__}: the largest dissimilarity is {largest:.0e}, and squares "
            "leave the range of float64. Scale the features, or the dissimilarities"
        )
    bad = np.argwhere(~(np.isfinite(D) & (D >= 0)))
    if len(bad):
        i, j = bad[0]
        wrong = "Negative values in data" if D[i, j] < 0 else "not finite"
        raise ValueError(
            f"{type(machine).__name__}: {wrong}: the dissimilarity of rows {i} and {j} is "
            f"{D[i, j]:g} (metric={machine.metric!r}). Use another metric, or leave such rows out; "
            "similarities belong to PCA(kernel='precomputed')"
        )


def as_given(machine: Any, D: Array) -> Array:
    """Check a square matrix of dissimilarities; return it symmetric to the last bit."""
    owner = type(machine).__name__
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"{owner}: metric='precomputed' takes a square matrix of dissimilarities, not one of "
            f"shape {D.shape}; for rows use metric='euclidean'"
        )
    refuse_no_dissimilarities(machine, D)
    largest = float(D.max(initial=0.0))
    apart = np.argwhere(np.abs(D - D.T) > _SYMMETRIC * largest)
    if len(apart):
        i, j = apart[0]
        raise ValueError(
            f"{owner}: dissimilarities must be symmetric, but those of rows {i} and {j} are "
            f"{D[i, j]:g} and {D[j, i]:g}. Pass (D + D.T) / 2 if they mean the same"
        )
    own = np.flatnonzero(D.diagonal() > _SYMMETRIC * largest)
    if len(own):
        i = own[0]
        raise ValueError(
            f"{owner}: the dissimilarity of row {i} from itself is {D[i, i]:g}, not 0. "
            "Similarities belong to PCA(kernel='precomputed')"
        )
    half = 0.5 * D  # the sum may be out of range where no entry is
    return np.asarray(half + half.T)
