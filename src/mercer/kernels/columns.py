"""Columns: what `k.on(columns)` accepts, and the names that a table brings along."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np


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


def as_columns(columns: Any) -> tuple[int | str, ...]:
    """Read ints, names, a slice, a mask or a single one of them into a tuple of ints and names.

    Examples
    --------
    >>> as_columns(slice(0, 3))
    (0, 1, 2)
    >>> as_columns("age")
    ('age',)
    """
    if isinstance(columns, slice):
        chosen: tuple[int | str, ...] = tuple(_range(columns))
    elif isinstance(columns, str | Integral):
        chosen = (_column(columns),)
    elif isinstance(columns, Iterable) and getattr(columns, "ndim", 1) > 0:
        chosen = _several(list(columns))
    else:
        raise _refusal(columns)
    if not chosen:
        raise ValueError(f"on: columns={columns!r} chooses no column; name at least one")
    return chosen


def _range(columns: slice) -> range:
    start, stop, step = columns.start or 0, columns.stop, columns.step or 1
    if stop is None or start < 0 or stop < 0 or step < 1:
        raise ValueError(
            f"on: columns={columns!r} must have an end, and count forward from the first column, "
            "since a kernel does not know how many columns X will have"
        )
    return range(start, stop, step)


def _several(columns: list[Any]) -> tuple[int | str, ...]:
    if columns and all(isinstance(c, bool | np.bool_) for c in columns):
        return tuple(int(i) for i in np.flatnonzero(columns))
    return tuple(_column(c) for c in columns)


def _column(column: Any) -> int | str:
    if isinstance(column, str):
        return str(column)
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise _refusal(column)
    return int(column)


def _refusal(column: Any) -> TypeError:
    return TypeError(
        f"on: column {column!r} must be a number or a name; columns are given as a list of "
        "these, a slice, a mask, or a single one"
    )
