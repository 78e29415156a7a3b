"""Rows, blocks and sums of K evaluated anew from the points, without the rest of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram, columns_of
from mercer.gram.policy import FLOAT64_COPY
from mercer.gram.source import LazyGram, Source
from mercer.gram.transformed.centered import CenteredGram
from mercer.gram.transformed.scaled import ScaledGram
from mercer.points import take

# Entries of K for several programmes: up to here, one product of all that is asked for takes less
# time than one for each of them.
_TOGETHER = 1 << 20
_ROWS_AT_ONCE = 256  # of a given matrix, so that no copy of all of it is made


def in_float32(gram: Gram) -> Gram:
    """Return a Gram of the points evaluated anew in float32, where that is quicker than float64.

    For looking around: what is found is to be confirmed by `exact`.
    """
    if isinstance(gram, CenteredGram):
        return CenteredGram(in_float32(gram.base), gram.weights)
    if isinstance(gram, ScaledGram):
        return ScaledGram(in_float32(gram.base), gram.scale)
    if gram.source is not None:
        return LazyGram(gram.source.in_float32())
    return gram.exact()


class Float64Copy:
    """K in float64, evaluated once, for those who would evaluate its entries several times over.

    Parameters
    ----------
    source : Source
        Kernel and points.
    times : int
        How often what is asked for will be asked for in all: folds of one K.
    """

    def __init__(self, source: Source, times: int) -> None:
        self.source, self.times = source, times
        self.matrix: Array | None = None
        self._lock = threading.Lock()

    def __call__(self, entries: float) -> Array | None:
        """Return K where so many entries, in all, are more work than all of it; else None."""
        if self.times * entries < FLOAT64_COPY * self.source.n**2:
            return None
        with self._lock:
            if self.matrix is None:
                self.matrix = self.source.in_float64().pairs().dense(padded=True)
            return self.matrix


def exact_rows(gram: Gram, rows: Array, coef: Array) -> Array:
    """Return some rows of K b in float64 from the points, without evaluating the others.

    Parameters
    ----------
    gram : Gram
        K.
    rows : (m,) int array
        Which rows.
    coef : (n,) array
        b; its zeros cost nothing.

    Returns
    -------
    (m,) array
        The rows of the product.
    """
    unwrapped, used = gram.unwrapped(), np.flatnonzero(coef)
    shifted = 0.0 if unwrapped.shift is None else unwrapped.shift[rows] * coef[rows]
    if unwrapped.index is None:
        return exact_sums(unwrapped.base, rows, used, coef[used])[:, 0] + shifted
    points, where = np.unique(unwrapped.index[used], return_inverse=True)
    merged = np.bincount(where, coef[used], len(points))
    return exact_sums(unwrapped.base, unwrapped.index[rows], points, merged)[:, 0] + shifted


def exact_rows_of_several(asked: Sequence[tuple[Gram, Array, Array]]) -> list[Array]:
    """Return `exact_rows` for several Grams on one base, by one product where they are few.

    Parameters
    ----------
    asked : sequence of (Gram, (m,) int array, (n,) array)
        As `exact_rows` takes them; Grams share their base.

    Returns
    -------
    list of (m,) arrays
        The rows of each product.
    """
    parts = [gram.unwrapped() for gram, _, _ in asked]
    n, places, sums = parts[0].base.shape[0], [], []
    for part, (_, rows, coef) in zip(parts, asked, strict=True):
        used = np.flatnonzero(coef)
        points = used if part.index is None else part.index[used]
        places.append(rows if part.index is None else part.index[rows])
        sums.append((points, coef[used]))
    left, columns = _Numbered(places, n), _Numbered([points for points, _ in sums], n)
    if len(left.points) * len(columns.points) > _TOGETHER:
        return [exact_rows(*one) for one in asked]
    right = np.zeros((len(columns.points), len(asked)))
    for k, (points, coef) in enumerate(sums):
        # points may be there twice: those above and below a tube add up
        right[:, k] = np.bincount(columns.place[points], coef, len(right))
    found = exact_sums(parts[0].base, left.points, columns.points, right)
    shifted = [
        0.0 if part.shift is None else part.shift[rows] * coef[rows]
        for part, (_, rows, coef) in zip(parts, asked, strict=True)
    ]
    return [found[left.place[place], k] + shifted[k] for k, place in enumerate(places)]


class _Numbered:
    """Points of several lists, each once and in order.

    Parameters
    ----------
    lists : sequence of int arrays
        Points.
    n : int
        How many there are.

    Attributes
    ----------
    points : int array
        Those that are in a list.
    place : (n,) int array
        Where each of them is there.
    """

    def __init__(self, lists: Sequence[Array], n: int) -> None:
        there = np.zeros(n, dtype=bool)
        for points in lists:
            there[points] = True
        self.points = np.flatnonzero(there)
        self.place = np.cumsum(there) - 1


def exact_block(gram: Gram, index: Array) -> Array:
    """Return K between some of its points, a new matrix in float64 from the points.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which points.

    Returns
    -------
    (m, m) array
        The block, with the shift on its diagonal.
    """
    unwrapped = gram.unwrapped()
    points = index if unwrapped.index is None else unwrapped.index[index]
    if unwrapped.base.source is not None:
        block = np.array(unwrapped.base.source.in_float64().only(points).pairs().dense())
    else:
        block = np.array(unwrapped.base.exact().rows(points)[:, points], dtype=np.float64)
    if unwrapped.shift is not None:
        block.flat[:: len(block) + 1] += unwrapped.shift[index]
    return block


def exact_sums(gram: Gram, rows: Array, columns: Array, coef: Array) -> Array:
    """Return a rectangle of K, in float64 from the points, times coefficients.

    Parameters
    ----------
    gram : Gram
        K.
    rows, columns : (m,), (u,) int array
        Which of its rows and columns.
    coef : (u,) or (u, k) array
        What they are multiplied by.

    Returns
    -------
    (m, k) array
        The products.
    """
    coef = columns_of(coef)
    if not len(columns):
        return np.zeros((len(rows), coef.shape[1]))
    if gram.source is not None:
        source = gram.source.in_float64()
        return source.only(columns).cross(take(source.X, rows)) @ coef
    gram, product = gram.exact(), np.empty((len(rows), coef.shape[1]))
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        product[part] = gram.rows(rows[part])[:, columns] @ coef
    return product
