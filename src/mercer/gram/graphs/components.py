"""Which points of a graph hang together: a Gram read as weights of edges."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from mercer.array_types import Array
from mercer.gram.base import Gram, exact

_ENTRIES_AT_ONCE = 1 << 22


def components(gram: Gram) -> Array:
    """Return the connected components numbers, the largest first.

    Points are joined where K_ij is not zero. In a full matrix one row mostly reaches everybody,
    and no more rows are read than that takes.

    Parameters
    ----------
    gram : Gram
        K.

    Returns
    -------
    (n,) int array
        The number of each point's component; of equally large ones the one with the first point
        comes first.
    """
    if gram.csr is not None:
        found = np.asarray(connected_components(gram.csr, directed=False)[1], dtype=np.int64)
    else:
        # single precision underflows where double does not: the type of storage decides nothing
        found = _by_rows(exact(gram) if gram.dtype == np.float32 else gram)
    return _largest_first(found)


def _by_rows(gram: Gram) -> Array:
    n = gram.shape[0]
    number = np.full(n, -1, dtype=np.int64)
    step = max(1, min(64, _ENTRIES_AT_ONCE // max(n, 1)))  # few: one mostly is enough
    count = 0
    for seed in range(n):
        if number[seed] >= 0:
            continue
        number[seed] = count
        frontier = np.array([seed])
        while len(frontier):
            reached = []
            for first in range(0, len(frontier), step):
                unseen = number < 0
                if not unseen.any():
                    return number
                joined = gram.rows(frontier[first : first + step]) != 0
                fresh = np.flatnonzero(joined.any(axis=0) & unseen)
                number[fresh] = count
                reached.append(fresh)
            frontier = np.concatenate(reached)
        count += 1
    return number


def _largest_first(number: Array) -> Array:
    sizes = np.bincount(number)
    first = np.full(len(sizes), len(number))
    np.minimum.at(first, number, np.arange(len(number)))
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(sizes), dtype=np.int64)
    rank[order] = np.arange(len(sizes))
    return np.asarray(rank[number])
