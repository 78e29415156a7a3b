"""Where to begin: rows far from one another (k-means++), and a few rounds of k-means after it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.points import is_sparse, row_count, take, to_dense

_ROUNDS = 12
_ENTRIES = 1 << 18


def grouped(X: Points, weights: Array, k: int, rng: np.random.RandomState) -> Array:
    """Return each row one of k groups, found by k-means from centres far from one another.

    Parameters
    ----------
    X : Points
        Rows, dense or CSR.
    weights : (n,) array
        How often each row counts.
    k : int
        The number of groups; some may stay empty where there are fewer distinct rows.
    rng : RandomState
        Source of random numbers.
    """
    norms = _squared_norms(X)
    centres = to_dense(take(X, seeds(X, weights, k, rng, norms)))
    labels = _nearest(X, centres)
    for _ in range(_ROUNDS):
        mass, sums = _totals(X, weights, labels, k)
        full = mass > 0
        centres[full] = sums[full] / mass[full, None]
        moved = _nearest(X, centres)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return labels


def seeds(
    X: Points, weights: Array, k: int, rng: np.random.RandomState, norms: Array | None = None
) -> Array:
    """Draw k rows, each with a chance in proportion to its squared distance from those before.

    Of a few drawn, the one that leaves the smallest distances is taken.
    """
    norms = _squared_norms(X) if norms is None else norms
    trials = 2 + int(np.log(k))
    chosen = [int(_draw(weights, 1, rng)[0])]
    nearest = _distances(X, norms, np.array(chosen))[0]
    while len(chosen) < k:
        deadline.check()
        chances = weights * nearest
        drawn = _draw(chances if chances.any() else weights, trials, rng)
        closer = np.minimum(_distances(X, norms, drawn), nearest)
        best = int(np.argmin(closer @ weights))
        chosen.append(int(drawn[best]))
        nearest = closer[best]
    return np.array(chosen)


def _draw(chances: Array, count: int, rng: np.random.RandomState) -> Array:
    ladder = np.cumsum(chances)
    found = np.searchsorted(ladder, rng.uniform(size=count) * ladder[-1], side="right")
    # at the very top rounding may point behind the last row, or at one without a chance
    return np.asarray(np.minimum(found, int(np.flatnonzero(chances)[-1])))


def _squared_norms(X: Points) -> Array:
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


def _distances(X: Points, norms: Array, rows: Array) -> Array:
    """Return squared distances of all rows from some of them: (len(rows), n)."""
    centres = to_dense(take(X, rows))
    found = norms - 2.0 * np.asarray(X @ centres.T).T + norms[rows, None]
    np.maximum(found, 0.0, out=found)
    found[np.arange(len(rows)), rows] = 0.0
    return np.asarray(found)


def _nearest(X: Points, centres: Array) -> Array:
    half = 0.5 * np.einsum("ij,ij->i", centres, centres)
    labels = np.empty(row_count(X), dtype=np.intp)
    step = max(256, _ENTRIES // len(centres))
    for first in range(0, len(labels), step):
        deadline.check()
        rows = slice(first, first + step)
        labels[rows] = np.argmin(half - np.asarray(take(X, rows) @ centres.T), axis=1)
    return labels


def _totals(X: Points, weights: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Return the weight of each group and the weighted sum of its rows."""
    n = len(labels)
    groups = csr_array((weights, labels, np.arange(n + 1)), shape=(n, k))
    sums = groups.T @ X
    return np.bincount(labels, weights, minlength=k), to_dense(sums)
