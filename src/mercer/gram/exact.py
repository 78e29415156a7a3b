"""The same Gram, evaluated anew in float64 from the points: what certificates judge by."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram, columns_of
from mercer.gram.source import Source
from mercer.gram.storage.cached import CachedGram
from mercer.gram.storage.dense import DenseGram
from mercer.gram.storage.lazy import LazyGram
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.gram.transformed.centered import CenteredGram
from mercer.gram.transformed.part import PartGram, unwrap
from mercer.gram.transformed.scaled import ScaledGram
from mercer.gram.transformed.shifted import ShiftedGram
from mercer.points import take

_ROWS_AT_ONCE = 256  # of a given matrix, so that no copy of all of it is made


@singledispatch
def exact(gram: Gram | Source) -> Gram:
    """Return a Gram that trusts nothing a solver stored; given matrices and factors are data.

    Of a kernel and points alone (`Source`), the Gram that is evaluated from them in float64.
    """
    assert isinstance(gram, Gram)
    return gram


@exact.register(DenseGram)
@exact.register(CachedGram)
@exact.register(LazyGram)
def _(gram: DenseGram | CachedGram | LazyGram) -> Gram:
    return LazyGram(gram.source.in_float64())


@exact.register
def _(source: Source) -> Gram:
    return LazyGram(source.in_float64())


@exact.register
def _(gram: PrecomputedGram) -> Gram:
    return gram.in_float64()


@exact.register
def _(gram: PartGram) -> Gram:
    base = gram.base
    if not isinstance(base, DenseGram | CachedGram | LazyGram):
        return PartGram(exact(base), gram.index)
    points, index = np.unique(gram.index, return_inverse=True)  # only the points that are here
    if len(points) == len(gram.index):
        return LazyGram(base.source.in_float64().only(gram.index))
    return PartGram(LazyGram(base.source.in_float64().only(points)), index)


@exact.register
def _(gram: CenteredGram) -> Gram:
    return CenteredGram(exact(gram.base), gram.weights)


@exact.register
def _(gram: ScaledGram) -> Gram:
    return ScaledGram(exact(gram.base), gram.scale)


@exact.register
def _(gram: ShiftedGram) -> Gram:
    return ShiftedGram(exact(gram.base), gram.shift)


def in_float32(gram: Gram) -> Gram:
    """Return a Gram of the points evaluated anew in float32, where that is quicker than float64.

    For looking around: what is found is to be confirmed by `exact`.
    """
    if isinstance(gram, CenteredGram):
        return CenteredGram(in_float32(gram.base), gram.weights)
    if isinstance(gram, ScaledGram):
        return ScaledGram(in_float32(gram.base), gram.scale)
    if isinstance(gram, DenseGram | CachedGram | LazyGram):
        return LazyGram(replace(gram.source, dtype=np.dtype(np.float32)))
    return exact(gram)


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
    held, used = unwrap(gram), np.flatnonzero(coef)
    shifted = 0.0 if held.shift is None else held.shift[rows] * coef[rows]
    if held.index is None:
        return exact_sums(held.base, rows, used, coef[used])[:, 0] + shifted
    points, where = np.unique(held.index[used], return_inverse=True)
    merged = np.bincount(where, coef[used], len(points))
    return exact_sums(held.base, held.index[rows], points, merged)[:, 0] + shifted


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
    held = unwrap(gram)
    points = index if held.index is None else held.index[index]
    if isinstance(held.base, DenseGram | CachedGram | LazyGram):
        block = np.array(held.base.source.in_float64().only(points).pairs().dense())
    else:
        block = np.array(exact(held.base).rows(points)[:, points], dtype=np.float64)
    if held.shift is not None:
        block.flat[:: len(block) + 1] += held.shift[index]
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
    if isinstance(gram, DenseGram | CachedGram | LazyGram):
        source = gram.source.in_float64()
        return source.only(columns).cross(take(source.X, rows)) @ coef
    gram, product = exact(gram), np.empty((len(rows), coef.shape[1]))
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        product[part] = gram.rows(rows[part])[:, columns] @ coef
    return product
