"""Class `Table`: schema, columns from data frames and arrays, and display."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.data.column import DATES, Column, Parsed, as_words, different, entries_of, missing_of
from mercer.data.errors import DataError, shorten
from mercer.data.kinds import MISSING, Kind, kind_named
from mercer.rows.points import as_points, is_sparse

# --- schema --------------------------------------------------------------------------------------
#
# What the rows of a table look like, without the rows: names, kinds, how the file was written.


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns, and the format of their file.

    `read_blocks` reads new rows with the schema of the training rows, so that columns have the
    same kinds independently of the new entries.

    Attributes
    ----------
    kinds : dict of str to Kind
        Column kinds in order.
    parsed : dict of str to {"number", "word", "date"}
        Types of the entries when read from a file, before conversion to the kinds.
    format : str
        File format: "csv", "parquet", "jsonl", "arff", "libsvm", "npz", or "" for tables created
        in memory.
    missing : tuple of str
        Markers of missing values.
    decimal : str
        The decimal point of numbers.

    Examples
    --------
    >>> from mercer.data import Table
    >>> schema = Table.of({"age": [31, 40, 52], "town": ["Ulm", "Bern", "Riga"]}).schema
    >>> schema.names
    ['age', 'town']
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    kinds: dict[str, Kind] = field(default_factory=dict)
    parsed: dict[str, Parsed] = field(default_factory=dict)
    format: str = ""
    missing: tuple[str, ...] = MISSING
    decimal: str = "."

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.kinds)

    def with_columns(self, kinds: Mapping[str, Kind], parsed: Mapping[str, Parsed]) -> Schema:
        """Return the schema for other columns of such a file."""
        return replace(self, kinds=dict(kinds), parsed=dict(parsed))

    def drop(self, *names: str) -> Schema:
        """Drop columns."""
        kinds = {name: kind for name, kind in self.kinds.items() if name not in names}
        return self.with_columns(kinds, {name: self.parsed[name] for name in kinds})

    def without_identifiers(self) -> Schema:
        """Drop identifiers, which new rows need not have."""
        return self.drop(*(n for n, kind in self.kinds.items() if kind is Kind.IDENTIFIER))

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as a dictionary for JSON."""
        return {
            "names": self.names,
            "kinds": [kind.value for kind in self.kinds.values()],
            "parsed": [self.parsed[name] for name in self.kinds],
            "format": self.format,
            "missing": list(self.missing),
            "decimal": self.decimal,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Schema:
        """Create a schema from the result of `to_dict`. Raise if it is invalid."""
        try:
            names, kinds, parsed = ([*values[key]] for key in ("names", "kinds", "parsed"))
            words = [*names, *kinds, *parsed, *values["missing"], values["format"]]
            regular = all(isinstance(word, str) for word in words)
            regular = regular and len(names) == len(kinds) == len(parsed) == len(set(names))
            regular = regular and set(parsed) <= {"number", "word", "date"}
            if not regular or values["decimal"] not in (".", ","):
                raise ValueError("names, kinds and parsed are inconsistent")
            return Schema(
                dict(zip(names, map(kind_named, kinds), strict=True)),
                dict(zip(names, parsed, strict=True)),
                values["format"],
                tuple(values["missing"]),
                values["decimal"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"not a table schema ({error})") from error


# --- frames --------------------------------------------------------------------------------------
#
# Columns out of whatever holds them: pandas, polars and pyarrow tables, dicts, arrays.

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
        Names of the columns. If None, those of `data`, or x0, x1, ...
    only : collection of str, optional
        Columns to read. If None, all.
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
    """Return the columns of a data frame or array with their names."""
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
    """Raise if two columns have the same name."""
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
            raise DataError(f"{type(values).__name__} is not a column of entries", column=name)
        values = list(values) if array is None else array.tolist()
        truths = [entry for entry in values if entry is not None]
        binary = bool(truths) and all(isinstance(entry, bool) for entry in truths)
        return entries_of(name, values), Kind.BINARY if binary else None
    return _of_typed(name, array)


def _of_typed(name: str, array: Array) -> Entries:
    """Return entries of an array of numbers, Boolean values, dates or texts."""
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
    """Return the categories of a pandas column as words."""
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
    coded = kind.startswith("dictionary")
    words = coded or kind in ("string", "large_string", "binary", "large_binary")
    entries = _entries(name, _shared(column, coded) if words else column.to_pylist())
    return (entries[0], Kind.CATEGORY) if coded else entries


def _shared(column: Any, coded: bool) -> list[Any]:
    """Return the words of a pyarrow column. Equal ones of a chunk are one object."""
    found: list[Any] = []
    for chunk in getattr(column, "chunks", [column]):
        codes = chunk if coded else chunk.dictionary_encode()
        words = [*codes.dictionary.to_pylist(), None]
        places = codes.indices.cast("int64").fill_null(len(words) - 1)
        found += map(words.__getitem__, places.to_pylist())
    return found


def _of_array(data: Any) -> list[tuple[Any, Any]]:
    if getattr(getattr(data, "dtype", None), "names", None):  # a structured array
        return [(name, data[name]) for name in data.dtype.names]
    plain = isinstance(data, np.ndarray)
    array = data if plain else np.asarray(data, dtype=getattr(data, "dtype", object))
    if array.ndim != 2:
        raise DataError(f"a table has rows and columns; got {array.ndim} dimension(s)")
    return [(f"x{k}", array[:, k]) for k in range(array.shape[1])]


# --- shown ---------------------------------------------------------------------------------------
#
# A table as people look at it: a line for each column.

_MOST_COLUMNS = 60  # lines that are shown
_WIDTH = 40  # letters of a name or an example
HEAD = ("name", "kind", "missing", "distinct", "example")


def lines_of(table: Table, most: int = _MOST_COLUMNS) -> list[tuple[str, str, int, int, str]]:
    """Return name, kind, missing and distinct entries, and an example of each column."""
    found = []
    for name in table.columns[:most]:
        column = table.column(name)
        gaps = column.missing
        example = as_words(column.values[~gaps][:1]).tolist()
        shown = _line(example[0]) if example else ""
        count = len(different(column.values))
        found.append((_line(name), column.kind.value, int(gaps.sum()), count, shown))
    return found


def as_text(table: Table) -> str:
    """Format a summary of the columns."""
    rows: list[tuple[Any, ...]] = [HEAD, *lines_of(table)]
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(HEAD))]
    lines = [title(table)]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if k in (2, 3) else f"{cell:<{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *_rest(table)])


def as_html(table: Table) -> str:
    """Format a summary of the columns for notebooks."""
    head = "".join(f"<th style='text-align:left'>{word}</th>" for word in HEAD)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in row)
        + "</tr>"
        for row in lines_of(table)
    )
    rest = "".join(f"<div>{line}</div>" for line in _rest(table))
    return (
        f"<div><strong>{escape(title(table))}</strong>"
        f"<table><tr>{head}</tr>{body}</table>{rest}</div>"
    )


def title(table: Table) -> str:
    """Describe size and source of a table."""
    rows, columns = table.shape
    origin = f" of {_line(PurePath(table.source).name)}" if table.source else ""
    return f"{rows} rows, {columns} columns{origin}"


def _rest(table: Table) -> list[str]:
    more = table.shape[1] - _MOST_COLUMNS
    return [f"... and {more} more columns"] if more > 0 else []


def _line(text: str) -> str:
    """Write a text on one line without control characters."""
    return shorten("".join(c if c.isprintable() else " " for c in text[: _WIDTH + 1]), _WIDTH)


# --- table ---------------------------------------------------------------------------------------
#
# Tables: columns by name, each of a kind.

_REMEDY = "convert it with TablePreparation, or use mercer.fit"


class Table:
    """Immutable table of named columns with kinds.

    Created by `read` from a file or by `Table.of` from data in memory. Estimators accept tables of
    numbers; `TablePreparation` converts other columns.

    Parameters
    ----------
    columns : mapping of str to Column
        Columns in order.
    csr : sparse array, optional
        Additional sparse columns of numbers.
    names : sequence of str
        Names of the sparse columns.
    source : str
        File name, or "".
    schema : Schema, optional
        Format of the file.

    Attributes
    ----------
    columns : list of str
        Names in order.
    kinds : dict of str to Kind
        Kind of each column.
    shape : tuple of int
        Rows and columns.
    csr : CSR array or None
        Sparse columns, if any.
    digest : str
        SHA-256 of names, kinds and entries.

    Examples
    --------
    >>> from mercer.data import Table
    >>> table = Table.of({"age": [31, None, 52], "town": ["Ulm", "Bern", "Ulm"]})
    >>> print(table)
    3 rows, 2 columns
    name  kind    missing  distinct  example
    age   number        1         2  31
    town  binary        0         2  Ulm
    >>> table["town"].tolist()
    ['Ulm', 'Bern', 'Ulm']
    >>> table.with_kinds({"town": "category"}).kinds["town"]
    <Kind.CATEGORY: 'category'>
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        *,
        csr: Any = None,
        names: Sequence[str] = (),
        source: str = "",
        schema: Schema | None = None,
    ) -> None:
        self._columns, self._names = dict(columns), tuple(names)
        self.csr = csr
        self.source, self._schema = source, schema
        refuse_twins([*self._columns, *self._names], source)
        rows = {len(column.values) for column in self._columns.values()}
        if csr is not None:
            rows.add(int(csr.shape[0]))
        if len(rows) > 1 or (0 if csr is None else csr.shape[1]) != len(self._names):
            raise DataError("columns differ in length, or names in number", source=source)
        self._rows = rows.pop() if rows else 0

    @staticmethod
    def of(
        data: Any,
        *,
        names: Sequence[str] | None = None,
        kinds: Mapping[str, Kind | str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> Table:
        """Create a table from data in memory.

        Parameters
        ----------
        data : Table, pandas, polars or pyarrow table, dict of columns, 2-d array or sparse matrix
            Input data. Text is not parsed: "7" is not a number and "?" is not missing.
        names : sequence of str, optional
            Names of the columns of an array. If None, x0, x1, ...
        kinds : mapping, optional
            Kinds of some columns. Replaces the inferred kinds.
        columns : sequence of str, optional
            Columns to keep. If None, all.

        Returns
        -------
        Table

        Examples
        --------
        >>> Table.of([[1.0, "a"], [2.0, "b"]], names=["size", "shape"]).columns
        ['size', 'shape']
        """
        if is_sparse(data):
            csr = as_points(data).astype(np.float64)
            given = [f"x{k}" for k in range(csr.shape[1])] if names is None else names
            data = Table({}, csr=csr, names=given)
        if isinstance(data, Table):
            part: Table = data if columns is None else data[list(columns)]
            return part if kinds is None else part.with_kinds(kinds)
        asked = {name: kind_named(kind) for name, kind in (kinds or {}).items()}
        found = columns_in(data, names, columns)
        refuse_unknown([*asked, *(columns or ())], found)
        return Table(
            {
                name: Column.of(name, found[name][0], asked.get(name, found[name][1]))
                for name in (found if columns is None else columns)
            }
        )

    # --- what it is -------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [*self._columns, *self._names]

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind of each column."""
        dense = {name: column.kind for name, column in self._columns.items()}
        return dense | dict.fromkeys(self._names, Kind.NUMBER)

    @property
    def dense_columns(self) -> list[str]:
        """Names of the dense columns."""
        return list(self._columns)

    @property
    def sparse_columns(self) -> list[str]:
        """Names of the sparse columns in `csr`."""
        return list(self._names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows, len(self._columns) + len(self._names)

    @property
    def schema(self) -> Schema:
        """Names and kinds of the columns, and format of the file."""
        written = Schema() if self._schema is None else self._schema
        parsed = {name: column.parsed for name, column in self._columns.items()}
        parsed |= dict.fromkeys(self._names, "number")
        return written.with_columns(self.kinds, parsed)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of names, kinds and entries."""
        found = hashlib.sha256()
        for name, column in self._columns.items():
            found.update(f"{len(name)} {name} {column.kind.value} ".encode("utf-8", "replace"))
            _add(found, column.values)
        if self.csr is not None:
            found.update(" ".join(self._names).encode("utf-8", "replace"))
            for part in (self.csr.indptr, self.csr.indices, self.csr.data):
                found.update(np.ascontiguousarray(part).astype("<f8").tobytes())
        return found.hexdigest()

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns or name in self._names

    def __repr__(self) -> str:
        origin = f", {self.source!r}" if self.source else ""
        return f"<Table of {self.shape[0]} rows, {self.shape[1]} columns{origin}>"

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    # --- parts ------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        """Return a column by its name, columns by a list of names, or rows as `rows` does."""
        if isinstance(key, str):
            return self.column(key).values
        if isinstance(key, tuple) and len(key) == 2 and key[1] in (Ellipsis, slice(None)):
            return self.rows(key[0])
        names = key.tolist() if isinstance(key, np.ndarray) else key
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return self._only(names)
        return self.rows(key)

    def column(self, name: str) -> Column:
        """Return a column with its kind."""
        if name in self._columns:
            return self._columns[name]
        if name in self._place:
            return Column(
                self._csc[:, [self._place[name]]].toarray().ravel(), Kind.NUMBER, "number"
            )
        raise KeyError(f"the table has no column {name!r}; its columns are {_some(self.columns)}")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._names)}

    @cached_property
    def _csc(self) -> Any:
        return self.csr.tocsc()

    def rows(self, index: Any) -> Table:
        """Select rows by a slice, mask or indices."""
        if not isinstance(index, slice):
            index = np.asarray(index)
            if index.ndim != 1 or (index.dtype.kind not in "biu" and len(index)):
                raise TypeError(f"rows are selected by a slice, mask or indices, not {index!r}")
            index = index if len(index) else index.astype(np.intp)
        chosen = {name: column.take(index) for name, column in self._columns.items()}
        csr = None if self.csr is None else self.csr[index]
        return self._with(chosen, csr, self._names)

    def drop(self, *names: str) -> Table:
        """Drop columns."""
        refuse_unknown(names, self)
        return self._only([name for name in self.columns if name not in names])

    def with_kinds(self, kinds: Mapping[str, Any]) -> Table:
        """Return the table with changed kinds of some columns."""
        refuse_unknown(kinds, self)
        asked = {name: kind_named(kind) for name, kind in kinds.items()}
        changed = {
            name: column.as_kind(name, asked.get(name, column.kind))
            if asked.get(name, column.kind) is not column.kind
            else column
            for name, column in self._columns.items()
        }
        moved = [n for n in self._names if asked.get(n, Kind.NUMBER) is not Kind.NUMBER]
        if not moved:
            return self._with(changed, self.csr, self._names)
        changed |= {name: self.column(name).as_kind(name, asked[name]) for name in moved}
        kept = [name for name in self._names if name not in moved]
        return self._with(changed, self.csr[:, [self._place[n] for n in kept]], kept)

    def with_column(self, name: str, values: Any, kind: Any = None) -> Table:
        """Return the table with a new or replaced column."""
        made = Table.of({name: values}, kinds=None if kind is None else {name: kind})
        return self._with(self._columns | made._columns, self.csr, self._names)

    def below(self, other: Table) -> Table:
        """Append the rows of another table with the same columns."""
        if self.columns != other.columns:
            raise DataError("tables with different columns cannot be concatenated")
        other = other.with_kinds({name: column.kind for name, column in self._columns.items()})
        columns = {
            name: Column(
                np.concatenate([column.values, other._columns[name].values]),
                column.kind,
                column.parsed,
            )
            for name, column in self._columns.items()
        }
        csr = None if self.csr is None else sparse.vstack([self.csr, other.csr], format="csr")
        return self._with(columns, csr, self._names)

    def _only(self, names: Iterable[str]) -> Table:
        names = list(names)
        refuse_unknown(names, self)
        columns = {name: self._columns[name] for name in names if name in self._columns}
        kept = [name for name in names if name not in columns]
        csr = None
        if kept:
            whole = tuple(kept) == self._names
            csr = self.csr if whole else self.csr[:, [self._place[name] for name in kept]]
        made = self._with(columns, csr, kept)
        made._rows = self._rows  # of a table without columns, too
        return made

    def _with(self, columns: Mapping[str, Column], csr: Any, names: Sequence[str]) -> Table:
        return Table(columns, csr=csr, names=names, source=self.source, schema=self._schema)

    # --- other forms ------------------------------------------------------------------------

    def matrix(self) -> Points:
        """Return the columns as a float64 array, or as CSR if they are sparse."""
        for name, column in self._columns.items():
            if column.values.dtype.kind != "f":
                advice = "drop it" if column.kind is Kind.IDENTIFIER else _REMEDY
                raise TypeError(f"column {name!r} holds {column.kind.entries}; {advice}")
        dense = np.empty((len(self), len(self._columns)))
        for place, column in enumerate(self._columns.values()):
            dense[:, place] = column.values
        if self.csr is None:
            return dense
        if not self._columns:
            return self.csr
        return sparse.hstack([sparse.csr_array(dense), self.csr], format="csr")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("converting a table creates a new array; copy=False is not supported")
        found = self.matrix()
        array: Array = found.toarray() if is_sparse(found) else found
        return array if dtype is None else array.astype(dtype, copy=False)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: float64, str objects with None, datetime64[us]."""
        try:
            import pandas as pd  # noqa: PLC0415  only where somebody asks for it
        except ImportError as missing:
            raise ImportError("to_pandas needs pandas: pip install pandas") from missing
        return pd.DataFrame({name: np.array(self[name]) for name in self.columns})


def refuse_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise if a column does not exist."""
    known = list(known)
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise KeyError(f"the table has no column {unknown[0]!r}; its columns are {_some(known)}")


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _add(found: Any, values: Array) -> None:
    """Add entries to a digest. All missing entries are equal."""
    if values.dtype.kind == "f":
        clean = np.where(missing_of(values), np.nan, values) + 0.0  # -0 and 0 are one number
        found.update(clean.astype("<f8").tobytes())
    elif values.dtype.kind == "M":
        found.update(values.astype("<i8").tobytes())
    else:
        texts = [b"" if w is None else w.encode("utf-8", "replace") for w in values.tolist()]
        lengths = [-1 if w is None else len(t) for w, t in zip(values, texts, strict=True)]
        found.update(np.array(lengths, dtype="<i8").tobytes())
        found.update(b"".join(texts))
