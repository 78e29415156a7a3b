"""Columns out of whatever holds them: pandas, polars and pyarrow tables, dicts, arrays."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import DATES, as_words, entries_of
from mercer.data.errors import DataError
from mercer.data.kinds import Kind

Entries = tuple[Array, Kind | None]
"""Entries of a column, and its kind where the holder says what it is."""


def columns_in(
    data: Any, names: Sequence[str] | None = None, only: Collection[str] | None = None
) -> dict[str, Entries]:
    """Return the columns by name, in order.

    Parameters
    ----------
    data : data frame, mapping of columns, or two-dimensional array-like
        Rows.
    names : sequence of str, optional
        Names of the columns; by default those that the holder has, or x0, x1, ...
    only : collection of str, optional
        The columns that are looked at, in place of all.
    """
    held = _held(data)
    given = [str(name) for name, _ in held] if names is None else [str(name) for name in names]
    if len(given) != len(held):
        raise DataError(f"names has {len(given)} names for {len(held)} columns")
    refuse_twins(given)
    columns = {
        name: _entries(name, values)
        for name, (_, values) in zip(given, held, strict=True)
        if only is None or name in only
    }
    lengths = {len(values) for values, _ in columns.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{name!r}: {len(values)}" for name, (values, _) in columns.items())
        raise DataError(f"columns differ in length ({shown[:200]})")
    return columns


def _held(data: Any) -> list[tuple[Any, Any]]:
    """Return the columns as their holder has them, with their names."""
    if isinstance(data, Mapping):
        return list(data.items())
    if isinstance(data, str | os.PathLike):
        raise DataError(f"rows are needed, not a path; read them first: mercer.data.read({data!r})")
    if hasattr(data, "column_names") and hasattr(data, "column"):  # pyarrow
        return list(zip(data.column_names, data.columns, strict=True))
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        return [(name, data.iloc[:, k]) for k, name in enumerate(data.columns)]
    if hasattr(data, "columns") and hasattr(data, "get_column"):  # polars
        return [(name, data.get_column(name)) for name in data.columns]
    return _of_array(data)


def refuse_twins(names: Sequence[str], source: str = "", line: int | None = None) -> None:
    """Raise if two columns have one name."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name in seen:
            raise DataError(
                f"columns {seen[name]} and {place} are both named {name!r}; rename one, or pass "
                "names=[...] for all columns",
                source=source,
                line=line,
                column=name,
            )
        seen[name] = place


def _entries(name: str, values: Any) -> Entries:
    """Return entries of a list, an array, or one column of a data frame."""
    if hasattr(values, "iloc"):
        return _of_pandas(name, values)
    if type(values).__module__.startswith("polars"):
        return _of_polars(name, values)
    if type(values).__module__.startswith("pyarrow"):
        return _of_arrow(name, values)
    array = values if isinstance(values, np.ndarray) else None
    if array is None or array.dtype.kind in "OSV":
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise DataError(f"{type(values).__name__} is no column of entries", column=name)
        values = list(values) if array is None else array.tolist()
        truths = [entry for entry in values if entry is not None]
        binary = bool(truths) and all(isinstance(entry, bool) for entry in truths)
        return entries_of(name, values), Kind.BINARY if binary else None
    return _of_typed(name, array)


def _of_typed(name: str, array: Array) -> Entries:
    """Return entries of an array of numbers, truth values, dates or texts."""
    if array.ndim != 1:
        raise DataError(f"has {array.ndim} dimensions; a column has one", column=name)
    kind = array.dtype.kind
    if kind == "b":
        return array.astype(np.float64), Kind.BINARY
    if kind in "iuf":
        return np.array(array, dtype=np.float64), None
    if kind == "M":
        return array.astype(DATES), Kind.DATE
    if kind in "UT":
        return entries_of(name, array.tolist()), None
    raise DataError(
        f"holds {array.dtype}; a column holds numbers, words or dates. Durations become numbers "
        "when divided by a unit, as in x / numpy.timedelta64(1, 'D')",
        column=name,
    )


def _of_pandas(name: str, column: Any) -> Entries:
    dtype = column.dtype
    if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):
        return entries_of(name, _words_or_none(column)), Kind.CATEGORY
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in "biufmM":
        return _of_typed(name, column.to_numpy())
    if kind == "b":
        return column.to_numpy(dtype=np.float64, na_value=np.nan), Kind.BINARY
    if kind in "iuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan), None
    return _entries(name, column.tolist())


def _words_or_none(column: Any) -> list[Any]:
    """Return the categories of a pandas column as words, however they are held."""
    words = [*as_words(entries_of(column.name, column.cat.categories.tolist())).tolist(), None]
    return [words[code] for code in column.cat.codes.tolist()]


def _of_polars(name: str, column: Any) -> Entries:
    kind = str(column.dtype)
    if kind == "Boolean":
        return entries_of(name, column.to_list()), Kind.BINARY
    if kind.startswith(("Int", "UInt", "Float")):
        return np.array(column.to_numpy(), dtype=np.float64), None
    entries = _entries(name, column.to_list())
    return (entries[0], Kind.CATEGORY) if kind.startswith(("Categorical", "Enum")) else entries


def _of_arrow(name: str, column: Any) -> Entries:
    kind = str(column.type)
    if kind.startswith("decimal"):
        column = column.cast("float64")
    if kind in ("double", "float") or kind.startswith(("int", "uint", "decimal")):
        return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64), None
    if kind.startswith("timestamp"):
        return np.array(column.to_numpy(zero_copy_only=False)).astype(DATES), Kind.DATE
    entries = _entries(name, column.to_pylist())
    return (entries[0], Kind.CATEGORY) if kind.startswith("dictionary") else entries


def _of_array(data: Any) -> list[tuple[Any, Any]]:
    if getattr(getattr(data, "dtype", None), "names", None):  # a structured array
        return [(name, data[name]) for name in data.dtype.names]
    plain = isinstance(data, np.ndarray)
    array = data if plain else np.asarray(data, dtype=getattr(data, "dtype", object))
    if array.ndim != 2:
        raise DataError(f"a table has rows and columns; got {array.ndim} dimension(s)")
    return [(f"x{k}", array[:, k]) for k in range(array.shape[1])]
