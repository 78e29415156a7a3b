"""K b with nearly no rounding, where K is held as data: by features, or as a given matrix.

A sum whose terms cancel is known to the rounding of its terms, not of itself. That decides where
rows have very different sizes: f at a row of length 1e9 is off by 1e9 times the rounding of w, and
w = F'b may be a small difference of large terms. Certificates come here where a plain product
leaves too few digits for what they claim.

Sums are split without error (Rump, Ogita and Oishi, Accurate floating-point summation, 2008):
adding and subtracting a power of two well above all terms rounds them to a common grid, on which
they add up exactly; what is left over is small, and so is its rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram.base import Gram, exact
from mercer.gram.storage.precomputed import PrecomputedGram
from mercer.points import is_sparse

EPS = float(np.finfo(np.float64).eps)
_HALVES = 2.0**27 + 1  # splits 53 bits into two halves, whose products are exact (Dekker, 1971)
_BLOCK = 1 << 18  # entries at a time: a dozen arrays of them stay in the cache


def inner(a: Array, b: Array) -> float:
    """Return a'b of two vectors, added up pairwise, by this thread alone.

    BLAS wakes its threads for ten thousand entries. Where a process has others that wait for work
    (torch's), these and those take turns, and a product takes milliseconds.

    Examples
    --------
    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float((a * b).sum())


def product_rounding(gram: Gram, b: Array) -> Array:
    """Return what each entry of K b may be off by, in float64, for a positive semidefinite K.

    Parameters
    ----------
    gram : Gram
        K.
    b : (n,) array
        What it is multiplied by.

    Returns
    -------
    (n,) array
        The rounding of the largest terms there can be: |k(x_i, x_j)| <= |phi(x_i)| |phi(x_j)|.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.abs(gram.diag()))
        return np.asarray(EPS * lengths * inner(np.abs(b), lengths))


def accurate_product(gram: Gram, b: Array) -> tuple[Array, Array] | None:
    """Return K b and what each entry may be off by; None where K itself is known to rounding only.

    Parameters
    ----------
    gram : Gram
        K.
    b : (n,) array
        What it is multiplied by.

    Returns
    -------
    (n,) array, (n,) array, or None
        The product and its rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import FactoredGram
    >>> X = np.array([[1e9, 1e9, 1.0]]).T
    >>> b = np.array([1.0, -1.0, 1e-9]) + 1e-10
    >>> w = float(sum(int(2**90 * v) * int(x) for v, x in zip(b, X[:, 0])) / 2**90)
    >>> product, rounding = accurate_product(FactoredGram(lambda Z: Z, X), b)
    >>> bool(abs(product[0] - 1e9 * w) <= rounding[0])
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if gram.factor is not None:
            F = gram.factor
            w = transposed_product(F, b)
            product, rounding = np.asarray(F @ w), EPS * np.asarray(abs(F) @ np.abs(w))
        elif isinstance(gram, PrecomputedGram):
            product = transposed_product(exact(gram).dense(), b)
            rounding = EPS * np.abs(product)
        else:
            return None
    return (product, rounding) if np.isfinite(product).all() else None


def transposed_product(F: Any, b: Array) -> Array:
    """Return F'b, each entry to about its last digit.

    Parameters
    ----------
    F : (n, D) array or sparse array
        A matrix.
    b : (n,) array
        What its transpose is multiplied by.

    Returns
    -------
    (D,) array
        The sums; not finite where a term is near the end of the range.
    """
    if is_sparse(F):
        return _sparse(F.tocsc(), b)
    n, width = F.shape
    high, low = np.zeros(width), np.zeros(width)
    step = max(1, _BLOCK // max(1, width))
    for first in range(0, n, step):
        rows = slice(first, first + step)
        terms, errors = _multiplied(np.asarray(F[rows], dtype=np.float64), b[rows, None])
        grid = _grid(np.abs(terms).max(axis=0, initial=0.0), len(terms))
        coarse = (terms + grid) - grid
        high, lost = _added(high, coarse.sum(axis=0))
        low += lost + ((terms - coarse).sum(axis=0) + errors.sum(axis=0))
    return np.asarray(high + low)


def _sparse(F: Any, b: Array) -> Array:
    """Return F'b for a matrix held by columns."""
    sums = np.zeros(F.shape[1])
    held = np.flatnonzero(np.diff(F.indptr))
    if not len(held):
        return sums
    starts = F.indptr[held]
    terms, errors = _multiplied(F.data.astype(np.float64), b[F.indices])
    grid = _grid(np.maximum.reduceat(np.abs(terms), starts), F.shape[0])
    grid = np.repeat(grid, np.diff(F.indptr)[held])
    coarse = (terms + grid) - grid
    left = np.add.reduceat(terms - coarse, starts) + np.add.reduceat(errors, starts)
    sums[held] = np.add.reduceat(coarse, starts) + left
    return sums


def _multiplied(A: Array, B: Array) -> tuple[Array, Array]:
    """Return A * B rounded, and what rounding took from it, exactly."""
    product = A * B
    upper, over = _HALVES * A, _HALVES * B
    upper, over = upper - (upper - A), over - (over - B)
    lower, under = A - upper, B - over
    return product, ((upper * over - product) + upper * under + lower * over) + lower * under


def _grid(largest: Array, count: int) -> Array:
    """Return powers of two beside which so many terms of that size are rounded to one grid."""
    return np.asarray(np.ldexp(1.0, np.frexp(largest)[1] + int(count).bit_length() + 1))


def _added(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b rounded, and what rounding took from it, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
