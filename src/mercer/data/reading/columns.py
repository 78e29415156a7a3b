"""Convert the output of readers to columns: inferred for a file, or with a schema for a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Column, Parsed, as_words, entries_of
from mercer.data.errors import DataError, shorten
from mercer.data.kinds import Kind, date_of, has_decimal_comma
from mercer.data.reading.source import ReadOptions
from mercer.data.table import Schema, Table, refuse_unknown


def inferred(
    name: str, values: Array, kind: Kind | None, source: str, decimal: str = "."
) -> Column:
    """Return a column of inferred kind."""
    if kind is None and values.dtype.kind == "O":
        present = {entry for entry in values.tolist() if entry is not None}
        if decimal == "." and present and all(map(has_decimal_comma, present)):
            example = shorten(min(present))
            raise DataError(
                f"holds numbers with a decimal comma, such as {example!r}; pass decimal=','",
                source=source,
                column=name,
            )
    try:
        return Column.of(name, values, kind)
    except DataError as error:
        raise error.at(source) from None


def known(name: str, values: Array, schema: Schema, source: str, lines: Sequence[int]) -> Column:
    """Return a column with the kind of a schema. Binary columns can have new values."""
    kind, parsed = schema.kinds[name], schema.parsed[name]
    try:
        if parsed == "number" and values.dtype.kind == "O":
            values = Column(values, Kind.CATEGORY, "word").as_kind(name, Kind.NUMBER).values
        elif parsed == "date" and values.dtype.kind == "O":
            values = Column(values, Kind.CATEGORY, "word").as_kind(name, Kind.DATE).values
        elif parsed == "word" and values.dtype.kind != "O":
            values = as_words(values)
        column = Column(values, kind, parsed)
        return column if kind is Kind.BINARY else column.as_kind(name, kind)
    except DataError as error:
        raise _placed(error, values, parsed, lines, source) from None


def _placed(
    error: DataError, values: Array, parsed: Parsed, lines: Sequence[int], source: str
) -> DataError:
    """Add the line of the invalid date to the error."""
    if parsed == "date" and values.dtype.kind == "O":
        for row, entry in enumerate(values.tolist()):
            if entry is not None and date_of(entry) is None:
                return error.at(source, lines[row])
    return error.at(source)


def finished(
    found: Mapping[str, Column],
    options: ReadOptions,
    source: str,
    kind: str,
    *,
    csr: Any = None,
    names: Sequence[str] = (),
) -> Table:
    """Return the selected columns as a table with the specified kinds."""
    schema = Schema(format=kind, missing=options.missing, decimal=options.decimal)
    table = Table(found, csr=csr, names=names, source=source, schema=schema)
    if not all(table.shape):
        raise DataError("the file has no rows", source=source)
    options.limits.check("columns", table.shape[1], source)
    refuse_unknown([*(options.columns or ()), *options.kinds], table.columns)
    if options.columns is not None:
        table = table[list(options.columns)]
    wanted = {name: kind for name, kind in options.kinds.items() if name in table}
    try:
        return table.with_kinds(wanted)
    except DataError as error:
        raise error.at(source) from None


def refuse_lacking(schema: Schema, names: Sequence[str], source: str) -> None:
    """Raise if a file lacks columns of the schema."""
    have = set(names)
    lacking = [name for name in schema.names if name not in have]
    if lacking:
        more = f" and {len(lacking) - 1} more columns" if len(lacking) > 1 else ""
        unused = {name.casefold(): name for name in have.difference(schema.names)}
        near = get_close_matches(lacking[0].casefold(), unused, n=1)
        hint = f"; rename {unused[near[0]]!r} if it is that column" if near else ""
        raise DataError(
            f"the file has no column {lacking[0]!r}{more} of the training table{hint}",
            source=source,
        )


def entries(name: str, values: list[Any], missing: frozenset[str], source: str) -> Array:
    """Convert Python values to numbers, dates or words. Markers of missing values become None."""
    clean = [None if isinstance(v, str) and v.strip() in missing else v for v in values]
    try:
        found = entries_of(name, clean)
    except DataError as error:
        raise error.at(source) from None
    if found.dtype.kind == "f" and np.isinf(found).any():
        raise DataError("holds a number out of range of float64", source=source, column=name)
    return found


def cut(table: Table, schema: Schema, rows: int) -> Iterator[Table]:
    """Yield blocks of a complete table with the columns of a schema."""
    refuse_lacking(schema, table.columns, table.source)
    lines = range(1, len(table) + 1)
    chosen: Table = table[schema.names]
    columns = {
        name: known(name, chosen[name], schema, table.source, lines)
        for name in chosen.dense_columns
    }
    whole = Table(
        columns, csr=chosen.csr, names=chosen.sparse_columns, source=table.source, schema=schema
    )
    for start in range(0, len(table), rows):
        yield whole.rows(slice(start, start + rows))
