"""Products with K, or with some of its rows, that never store more than a few of them.

Iterations may run on entries in float32, which take half the time; residuals are formed in float64.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import StoredMatrix
from mercer.gram import Gram, LazyGram
from mercer.gram.policy import FLOAT32_RANGE
from mercer.resources import rows_at_once

_ROWS = 512  # of a Gram that hands out rows, at a time


def in_float32(gram: Gram) -> Gram | None:
    """Return the same K with entries in float32, where it is evaluated anew for each product.

    Parameters
    ----------
    gram : Gram
        K.

    Returns
    -------
    Gram or None
        None where K is stored, where it is in float32 already, and where its entries do not fit.
    """
    if not isinstance(gram, LazyGram) or gram.dtype != np.float64:
        return None
    size = float(np.abs(gram.diag()).max(initial=0.0))
    if not FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1] or not gram.source.fits_float32():
        return None
    return LazyGram(gram.source.in_float32())


def rows_product(gram: Gram, index: Array, V: Array, columns: Array | None = None) -> Array:
    """Return K[index] V, or K[index, columns] V; the entries are dropped after use.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which rows.
    V : (n, k) array
        What they are multiplied by; with as many rows as there are columns, where those are given.
    columns : int array, optional
        Which columns; all by default.

    Returns
    -------
    (m, k) float64 array
    """
    if isinstance(gram, LazyGram):
        return gram.part_product(index, V, columns)
    product = np.empty((len(index), V.shape[1]))
    step = rows_at_once(gram.shape[0], _ROWS, arrays=2)
    for first in range(0, len(index), step):
        part = slice(first, first + step)
        rows = gram.rows(index[part])
        product[part] = (rows if columns is None else rows[:, columns]) @ V
    return product


def stored_part(gram: Gram, index: Array) -> StoredMatrix:
    """Return K[index, index], held where the backend works with it.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which rows and columns.
    """
    if isinstance(gram, LazyGram):
        return gram.stored_part(index)
    return choose_backend().stored(square_part(gram, index))


def square_part(gram: Gram, index: Array) -> Array:
    """Return K[index, index] as a new float64 matrix.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which rows and columns.

    Returns
    -------
    (m, m) array
        Free to be overwritten.
    """
    if isinstance(gram, LazyGram):
        return np.array(gram.source.only(index).pairs().dense(), dtype=np.float64)
    part = np.empty((len(index), len(index)))
    step = rows_at_once(gram.shape[0], _ROWS, arrays=2)
    for first in range(0, len(index), step):
        rows = slice(first, first + step)
        part[rows] = gram.rows(index[rows])[:, index]
    return part
