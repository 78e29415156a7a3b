"""Sparse matrices are looked through before SciPy computes with them.

SciPy trusts the index arrays of a matrix: one that points outside is read, or written, wherever it
points. Four passes over integers find that out; the caller's arrays are only read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array

_COMPRESSED = ("csr", "csc", "bsr")
_REMEDY = (
    "Make it anew from its parts, e.g. scipy.sparse.coo_array((values, (rows, columns)), shape)"
)


def refuse_broken_sparse(X: Any) -> None:
    """Raise ValueError if the arrays of a sparse matrix contradict one another or its shape.

    Parameters
    ----------
    X : sparse matrix or array
        Of any of SciPy's formats; those that are not stored by index arrays pass.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[0.0, 2.0]])
    >>> X.indices[0] = 5
    >>> refuse_broken_sparse(X)
    Traceback (most recent call last):
        ...
    ValueError: broken sparse matrix X: index 5 in row 0 is not one of 2 columns. Make it anew ...
    """
    if X.format in _COMPRESSED:
        _refuse_compressed(X)
    elif X.format == "coo":
        _refuse_coordinates(X)


def _refuse_compressed(X: Any) -> None:
    """Check CSR, CSC and BSR: rows (or columns, or rows of blocks) one after another."""
    by_column = X.format == "csc"
    along, across = ("column", "row") if by_column else ("row", "column")
    height, width = reversed(X.shape) if by_column else X.shape
    if X.format == "bsr":
        _refuse_blocks(X)
        along, across = "row of blocks", "column of blocks"
        height, width = height // X.blocksize[0], width // X.blocksize[1]
    for name in ("indptr", "indices"):
        if getattr(X, name).dtype.kind not in "iu" or getattr(X, name).ndim != 1:
            _refuse(f"{name} must be a list of integers")
    if len(X.indptr) != height + 1:
        _refuse(f"indptr has {len(X.indptr)} entries for {height} {along}(s), not {height + 1}")
    if X.indptr[0] != 0:
        _refuse(f"indptr begins with {X.indptr[0]}, not with 0")
    falls = np.flatnonzero(X.indptr[1:] < X.indptr[:-1])
    if len(falls):
        _refuse(f"indptr falls from {along} {falls[0]} to the next")
    stored = int(X.indptr[-1])
    if stored > min(len(X.indices), len(X.data)):
        _refuse(
            f"indptr ends with {stored}, but there are {len(X.indices)} indices and {len(X.data)} "
            "values"
        )
    place = _outside(X.indices[:stored], width)
    if place is not None:
        at = int(np.searchsorted(X.indptr, place, side="right")) - 1
        _refuse(f"index {X.indices[place]} in {along} {at} is not one of {width} {across}s")


def _refuse_blocks(X: Any) -> None:
    """Check that blocks have one size, which divides the shape."""
    if X.data.ndim != 3 or X.shape[0] % X.blocksize[0] or X.shape[1] % X.blocksize[1]:
        _refuse(f"blocks of shape {X.data.shape[1:]} do not fill a matrix of shape {X.shape}")


def _refuse_coordinates(X: Any) -> None:
    """Check COO: a row and a column for each value."""
    for what, index, size in zip(("row", "column"), X.coords, X.shape, strict=False):
        if len(index) != len(X.data):
            _refuse(f"there are {len(index)} {what} numbers for {len(X.data)} values")
        place = _outside(index, size)
        if place is not None:
            _refuse(f"entry {place} is in {what} {index[place]}, which is not one of {size}")


def _outside(index: Array, size: int) -> int | None:
    """Find the place of the first number that is not in 0 ... size - 1."""
    if not len(index) or (index.min() >= 0 and index.max() < size):
        return None
    return int(np.flatnonzero((index < 0) | (index >= size))[0])


def _refuse(what: str) -> None:
    raise ValueError(f"broken sparse matrix X: {what}. {_REMEDY}")
