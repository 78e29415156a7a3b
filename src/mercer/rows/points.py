"""Rows as dense arrays, CSR matrices or objects: reading, conversions, names of columns, checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Index, Points
from mercer.rows.device_arrays import CardArray
from mercer.rows.device_rows import CardRows

# --- points --------------------------------------------------------------------------------------
#
# Points: what a row is. Dense rows, CSR rows, or objects such as strings; nothing else.
#
# Everything above this file may assume one of three shapes of `X`: a C-contiguous float32/float64
# array, a canonical CSR array of those, or a one-dimensional object array. Sparsity is a property
# of the points; only backends look at it. Dense rows may lie on a card, where they answer as
# arrays do.


def as_points(X: Any) -> Points:
    """Turn an array-like into points: float rows, CSR rows, or an object array of sequences.

    Parameters
    ----------
    X : array-like, sparse matrix, DataFrame, or list of str / list of token lists
        Rows are samples.

    Returns
    -------
    Points
        float32 and float64 are kept; other numbers become float64.

    Examples
    --------
    >>> as_points([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> as_points(["spam", "ham"]).shape
    (2,)
    """
    if isinstance(X, CardRows):
        return X
    if is_sparse(X):
        return _csr(X)
    if is_sequence_data(X):
        return _objects(X)
    array = np.asarray(X)
    if array.dtype == object:
        array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: kernels compare real rows")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"points must be numbers or sequences, not {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"points must be a two-dimensional array, rows are samples; got {array.ndim} "
            "dimension(s). Reshape one sample with X.reshape(1, -1)."
        )
    return np.ascontiguousarray(array, dtype=working_dtype(array.dtype))


def working_dtype(dtype: Any) -> Any:
    """Return float32 for float32 and float16 data, float64 for everything else."""
    return np.float32 if np.dtype(dtype) in (np.float32, np.float16) else np.float64


def row_count(X: Points) -> int:
    """Count the rows."""
    return int(X.shape[0])


def take(X: Points, index: Index) -> Points:
    """Select rows, keeping the kind of points."""
    return X[index]


def own(X: Points) -> Points:
    """Return a copy of rows where they lie: what a caller does to his own changes no machine."""
    return X.copied() if isinstance(X, CardRows) else X.copy()


def to_host(X: Points) -> Points:
    """Return points in the memory of the processor: what is kept after a fit."""
    return X.on_host() if isinstance(X, CardRows | CardArray) else X


def is_sparse(X: Any) -> bool:
    """Return whether the points are CSR rows (or any SciPy sparse array)."""
    return bool(sparse.issparse(X))


def to_dense(X: Any, dtype: Any = np.float64) -> Array:
    """Return rows or a matrix as an ordinary array."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=dtype)


def is_objects(X: Points) -> bool:
    """Return whether the points are sequences rather than rows of numbers."""
    return isinstance(X, np.ndarray) and X.dtype == object


def _csr(X: Any) -> Points:
    refuse_broken_sparse(X)
    rows = sparse.csr_array(X, dtype=working_dtype(X.dtype))
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # never sort or shorten the caller's own arrays
        rows.sum_duplicates()
        rows.eliminate_zeros()  # so that equal rows are stored alike
    return rows


def is_sequence_data(X: Any) -> bool:
    """Return whether raw input is a collection of strings or token lists, not of numeric rows."""
    if isinstance(X, np.ndarray):
        if X.ndim != 1 or X.dtype.kind not in "OUS":
            return False
        return X.dtype.kind != "O" or (len(X) > 0 and _is_sequence(X[0]))
    if _is_column(X):
        return is_sequence_data(np.asarray(X))
    if isinstance(X, list | tuple) and X:
        return isinstance(X[0], str) or (
            isinstance(X[0], list | tuple) and any(isinstance(token, str) for token in X[0])
        )
    return False


def _is_sequence(item: Any) -> bool:
    return isinstance(item, str | list | tuple | np.ndarray)


def _is_column(X: Any) -> bool:
    """Return whether X is one column of a table (a Series): an array in all but name."""
    one_axis = len(getattr(X, "shape", (0,))) == 1 and not hasattr(X, "columns")
    return one_axis and hasattr(X, "__array__") and not isinstance(X, np.ndarray)


def _objects(X: Any) -> Array:
    out = np.empty(len(X), dtype=object)
    for i, item in enumerate(np.asarray(X) if _is_column(X) else X):
        if not _is_sequence(item):
            raise TypeError(
                f"row {i} of X is {item!r}, but other rows are strings or lists of tokens; "
                "remove it, or write an empty string"
            )
        out[i] = item if isinstance(item, str) else tuple(item)
    return out


# --- mixed columns -------------------------------------------------------------------------------
#
# Rows of columns of which some hold text: tuples of their entries. Kernels on columns read them.


def mixed_rows(X: Any) -> Array | None:
    """Return rows with text among their entries as tuples; None for rows of numbers, and others.

    Parameters
    ----------
    X : DataFrame, Table, two-dimensional array, or list of tuples or lists

    Examples
    --------
    >>> mixed_rows([("spam", 1), ("ham", 2)]).tolist()
    [('spam', 1.0), ('ham', 2.0)]
    >>> mixed_rows([[1, 2], [3, 4]]) is None
    True
    """
    listed = _listed(X)
    if not listed or not all(isinstance(row, list | tuple) for row in listed):
        return None
    if not any(_is_text(entry) for row in listed for entry in row):
        return None
    rows = np.empty(len(listed), dtype=object)
    for i, row in enumerate(listed):
        if len(row) != len(listed[0]):
            raise ValueError(
                f"row {i} of X has {len(row)} entries, but row 0 has {len(listed[0])}; rows of "
                "mixed columns must be equally long"
            )
        rows[i] = tuple(_entry(entry, i, j) for j, entry in enumerate(row))
    return rows


def _listed(X: Any) -> Any:
    """Return the rows of a table as tuples, of a list or an array of objects as they are."""
    if hasattr(X, "columns") and not isinstance(X.columns, str) and len(X):
        held = [np.asarray(X.iloc[:, k] if hasattr(X, "iloc") else X[k]) for k in _places(X)]
        if all(column.dtype.kind in "fiub" for column in held):
            return None
        return list(zip(*(column.astype(object).tolist() for column in held), strict=True))
    if isinstance(X, np.ndarray):
        return X.tolist() if X.dtype.kind in "OU" else None
    return X if isinstance(X, list | tuple) else None


def _places(X: Any) -> Any:
    return range(len(X.columns)) if hasattr(X, "iloc") else list(X.columns)


def _is_text(entry: Any) -> bool:
    return isinstance(entry, str | list | tuple)


def _entry(entry: Any, row: int, column: int) -> Any:
    """Return text, or a finite number; refuse what is neither."""
    if _is_text(entry):
        return entry if isinstance(entry, str) else tuple(entry)
    if isinstance(entry, Real | np.bool_) and np.isfinite(float(entry)):
        return float(entry)
    raise ValueError(
        f"{entry!r:.60} in row {row}, column {column} of X is neither text nor a finite number; "
        "fill it in, or remove the row"
    )


def chosen_columns(rows: Array, columns: Sequence[int]) -> Points:
    """Return some columns of mixed rows: a column of text, or columns of numbers."""
    if not all(isinstance(row, list | tuple) for row in rows):
        raise TypeError("the kernel speaks of columns, but X holds strings, which have none")
    width = min(map(len, rows), default=0)
    for column in columns:
        if len(rows) and not -width <= column < width:
            raise ValueError(f"the kernel speaks of column {column}, but X has {width} columns")
    if len(columns) == 1 and len(rows) and _is_text(rows[0][columns[0]]):
        return _objects([row[columns[0]] for row in rows])
    for i, row in enumerate(rows):
        for column in columns:
            if _is_text(row[column]):
                raise TypeError(
                    f"{row[column]!r:.60} in row {i}, column {column} of X is text; a kernel takes "
                    "one column of text, as in Spectrum(3).on([0]), or columns of numbers"
                )
    chosen = [[row[column] for column in columns] for row in rows]
    return np.array(chosen, dtype=np.float64).reshape(len(rows), len(columns))


# --- names of columns ----------------------------------------------------------------------------


def column_names(X: Any) -> list[str] | None:
    """Return the column names of a pandas or polars table, None for anything without names.

    Examples
    --------
    >>> column_names([[1.0, 2.0]]) is None
    True
    """
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(columns, str) or not isinstance(columns, Iterable):
        return None
    names = list(columns)
    if not any(isinstance(name, str) for name in names):
        return None  # a table without a header: columns are known by number only
    return [str(name) for name in names]


def shared_names(X: Any, Y: Any) -> list[str] | None:
    """Return the column names of two blocks that are to be compared, which must agree."""
    of_X, of_Y = column_names(X), column_names(Y)
    if of_X is not None and of_Y is not None and of_X != of_Y:
        raise ValueError(
            f"X and Y have different columns, {of_X[:8]} and {of_Y[:8]}; "
            "select and order them alike, for example Y[X.columns]"
        )
    return of_Y if of_X is None else of_X


# --- sparse format -------------------------------------------------------------------------------
#
# Sparse matrices are looked through before SciPy computes with them.
#
# SciPy trusts the index arrays of a matrix: one that points outside is read, or written, wherever
# it points. Four passes over integers find that out; the caller's arrays are only read.

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
