"""Columns of a table in a few words: what `mercer check` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.command.text import cell

if TYPE_CHECKING:
    from mercer.data import Table

_MOST = 200  # columns that are listed


def column_rows(table: Table) -> list[tuple[str, str, str, str]]:
    """Return name, kind, number of gaps and what the entries are, for each column."""
    names = table.columns[:_MOST]
    rows = [_row(name, table.kinds[name].value, table[name]) for name in names]
    if len(table.columns) > _MOST:
        rows.append(("...", "", "", f"{len(table.columns) - _MOST} more columns"))
    return rows


def _row(name: str, kind: str, values: Array) -> tuple[str, str, str, str]:
    gaps = missing(values)
    there = values[~gaps]
    return name, kind, str(int(gaps.sum()) or ""), _entries(there)


def missing(values: Array) -> Array:
    """Return which entries are missing."""
    if values.dtype.kind in "fM":
        return np.asarray(values != values)  # noqa: PLR0124  NaN and NaT alone
    if values.dtype.kind == "O":
        return np.array([value is None for value in values.tolist()], dtype=bool)
    return np.zeros(len(values), dtype=bool)


def _entries(values: Array) -> str:
    if not len(values):
        return "none"
    if values.dtype.kind in "fiu":
        return f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
    if values.dtype.kind == "M":
        return f"{values.min()} to {values.max()}"
    counted: dict[Any, int] = {}
    for value in values.tolist():
        counted[value] = counted.get(value, 0) + 1
    most = sorted(counted, key=counted.__getitem__, reverse=True)[:3]
    shown = ", ".join(f"{cell(str(value), 20)} ({counted[value]})" for value in most)
    return f"{len(counted)} different: {shown}{', ...' if len(counted) > 3 else ''}"
