"""Products of columns, for many rows at once: the arithmetic behind finite feature maps.

Monomials of degree q are held in lexicographic order of their columns i1 <= i2 <= ... Those that
begin at column i or later are then the last ones, so degree q + 1 is column i times a tail of
degree q, one block of columns after the other: no index arrays, no loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import comb

import numpy as np

from mercer.array_types import Array

_BLOCK_ENTRIES = 1 << 16


def symmetric_power(F: Array, degree: int) -> Array:
    """Return phi_p with <phi_p(x), phi_p(y)> = <F(x), F(y)>^p: C(m + p - 1, p) columns.

    Each monomial of degree p stands sqrt(p! / (a_1! a_2! ...)) times, a_i being its exponents.

    Examples
    --------
    >>> symmetric_power(np.array([[1.0, 2.0]]), 2).round(3).tolist()
    [[1.0, 2.828, 4.0]]
    """
    if degree == 1 or not F.shape[1]:  # powers of no feature are none
        return F
    m = F.shape[1]
    roots = _root_multinomials(m, degree).astype(F.dtype)
    tails = [[_tail(m, i, q) for i in range(m)] for q in range(1, degree)]
    return _in_blocks(F, len(roots), lambda block: _grown(block, tails) * roots)


def symmetric_powers(F: Array, degree: int) -> Iterator[Array]:
    """Return `symmetric_power` of the degrees 0, 1, ..., `degree`, one after another.

    The roots of the multinomials are multiplied in as the degree grows, so that rows of length one
    give features of length one at any degree: nothing overflows on the way.

    Examples
    --------
    >>> [block.round(3).tolist() for block in symmetric_powers(np.array([[0.6, 0.8]]), 2)]
    [[[1.0]], [[0.6, 0.8]], [[0.36, 0.679, 0.64]]]
    """
    m = F.shape[1]
    level, runs = np.ones((len(F), 1)), np.zeros(1)
    yield level
    for q in range(1, degree + 1):
        out, leading, end = np.empty((len(F), _tail(m, 0, q))), np.ones(_tail(m, 0, q)), 0
        for i in range(m):
            length = _tail(m, i, q - 1)
            start, end = end, end + length
            same = length - (_tail(m, i + 1, q - 1) if i + 1 < m else 0)  # led by i already
            leading[start : start + same] += runs[len(runs) - length :][:same] if q > 1 else 0.0
            np.multiply(level[:, level.shape[1] - length :], F[:, i : i + 1], out=out[:, start:end])
            out[:, start:end] *= np.sqrt(q / leading[start:end])
        level, runs = out, leading
        yield level


def set_products(F: Array, degree: int) -> Array:
    """Return the products of all sets of `degree` different columns: C(m, degree) columns.

    Examples
    --------
    >>> set_products(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[2.0, 3.0, 6.0]]
    """
    if degree == 1:
        return F
    m = F.shape[1]
    if degree > m:
        return F[:, :0]  # there are no such sets
    tails = [[comb(m - i - 1, q) for i in range(m)] for q in range(1, degree)]
    return _in_blocks(F, comb(m, degree), lambda block: _grown(block, tails))


def subset_products(F: Array) -> Array:
    """Return the products of all subsets of columns, the empty one first: 2^m columns.

    Examples
    --------
    >>> subset_products(np.array([[2.0, 3.0]])).tolist()
    [[1.0, 2.0, 3.0, 6.0]]
    """
    return _in_blocks(F, 2 ** F.shape[1], _doubled)


def _doubled(F: Array) -> Array:
    out = np.empty((len(F), 2 ** F.shape[1]), dtype=F.dtype)
    out[:, 0] = 1.0
    for i in range(F.shape[1]):
        done = 2**i
        np.multiply(out[:, :done], F[:, i : i + 1], out=out[:, done : 2 * done])
    return out


def _grown(F: Array, tails: list[list[int]]) -> Array:
    """Raise the degree from 1, one list of tail lengths (one per column) at a time."""
    level = F
    for lengths in tails:
        out = np.empty((len(F), sum(lengths)), dtype=F.dtype)
        end = 0
        for i, length in enumerate(lengths):
            start, end = end, end + length
            tail = level[:, level.shape[1] - length :]
            with np.errstate(over="ignore"):  # found by `refuse_overflow`
                np.multiply(tail, F[:, i : i + 1], out=out[:, start:end])
        level = out
    return level


def _in_blocks(F: Array, width: int, make: Callable[[Array], Array]) -> Array:
    """Work on few rows at a time, since each block of columns visits them all: cache."""
    out = np.empty((len(F), width), dtype=F.dtype)
    height = max(1, _BLOCK_ENTRIES // max(1, width))
    for i in range(0, len(F), height):
        out[i : i + height] = make(F[i : i + height])
    return out


def _tail(m: int, i: int, degree: int) -> int:
    """Count the monomials of this degree in the columns i, i + 1, ..., m - 1."""
    return comb(m - i + degree - 1, degree)


@lru_cache(maxsize=16)
def _root_multinomials(m: int, degree: int) -> Array:
    """Return sqrt(p! / prod a_i!) of every monomial, by the recursion that makes the monomials.

    Putting a column before a tail multiplies the multinomial by q / r, r being how often the column
    then leads. All values are whole numbers, exact in float64 below 2^53.
    """
    multinomials, runs = np.ones(m), np.ones(m)
    for q in range(2, degree + 1):
        blocks, leading = [], []
        for i in range(m):
            length = _tail(m, i, q - 1)
            run = np.ones(length)
            same = length - _tail(m, i + 1, q - 1) if i + 1 < m else length  # led by i already
            run[:same] = runs[len(runs) - length :][:same] + 1.0
            leading.append(run)
            blocks.append(multinomials[len(multinomials) - length :] * q / run)
        multinomials, runs = np.concatenate(blocks), np.concatenate(leading)
    roots = np.sqrt(multinomials)
    roots.setflags(write=False)
    return roots
