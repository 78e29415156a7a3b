"""JSON lines: one object for each row, whose keys are the columns."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mercer.data.errors import DataError, Limits, shorten
from mercer.data.reading.columns import entries, finished, inferred, known
from mercer.data.reading.records import LineStream, lines_of
from mercer.data.reading.source import Bytes, ReadOptions, utf8
from mercer.data.table import Schema, Table
from mercer.resources import require_memory

_SIZE = 1 << 20  # bytes of lines that are read at a time
_CELLS = 1 << 22  # cells that are read before memory is thought of
_LONG = 1 << 16  # characters of a line that is looked through before it is parsed
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def read_json_lines(data: Bytes, options: ReadOptions) -> Table:
    """Read all rows. Keys that a row lacks are missing values."""
    options.refuse_text_options("JSON lines")
    values: dict[str, list[Any]] = {}
    rows, asked = 0, _CELLS
    for _, row in _rows(data, options):
        for name, value in row.items():
            column = values.get(name)
            if column is None:
                column = values[name] = []
                options.limits.check("columns", len(values), data.name)
            # the cells of keys that come late, or not in every row
            cells = (rows + 1) * len(values)
            options.limits.check("bytes", 8 * cells, data.name)
            if cells > asked:
                asked = 2 * cells
                _require_memory(asked, data.name)
            column.extend([None] * (rows - len(column)))
            column.append(value)
        rows += 1
        options.limits.check("rows", rows, data.name)
    if not rows or not values:
        raise DataError("the file has no rows", source=data.name)
    missing = frozenset(options.missing)
    found = {}
    for name, column in values.items():
        column.extend([None] * (rows - len(column)))
        array = entries(name, column, missing, data.name)
        found[name] = inferred(name, array, options.kinds.get(name), data.name, decimal="")
    return finished(found, options, data.name, "jsonl")


def _require_memory(cells: int, source: str) -> None:
    """Raise if twice the current number of cells exceeds the memory budget."""
    require_memory(
        2 * 8 * cells,
        f"reading more than {cells // 2} cells of {source or 'a stream'}",
        "Write the same keys in every line, or read block by block (read_blocks).",
        held=4 * cells,
    )


def json_line_blocks(
    data: Bytes, schema: Schema, rows: int, options: ReadOptions
) -> Iterator[Table]:
    """Read rows block by block with the columns of a schema. The first block has all its keys."""
    yield from row_blocks(_rows(data, options), schema, rows, data.name)


def row_blocks(
    found: Iterable[tuple[int, dict[str, Any]]], schema: Schema, rows: int, source: str
) -> Iterator[Table]:
    """Make tables of rows that were parsed, each with its line."""
    held: list[tuple[int, dict[str, Any]]] = []
    first = True
    for pair in found:
        held.append(pair)
        if len(held) == rows:
            yield _block(held, schema, source, first)
            held, first = [], False
    if held:
        yield _block(held, schema, source, first)


def _block(
    held: list[tuple[int, dict[str, Any]]], schema: Schema, source: str, first: bool
) -> Table:
    lines = [line for line, _ in held]
    missing = frozenset(schema.missing)
    columns = {}
    for name in schema.names:
        values = [row.get(name) for _, row in held]
        if first and all(name not in row for _, row in held):
            raise DataError(
                "no row has this key; write null for missing values",
                source=source,
                line=lines[0],
                column=name,
            )
        columns[name] = known(name, entries(name, values, missing, source), schema, source, lines)
    return Table(columns, source=source, schema=schema)


def _rows(data: Bytes, options: ReadOptions) -> Iterator[tuple[int, dict[str, Any]]]:
    stream = LineStream(utf8(data, options.encoding), options.limits, data.name)
    while piece := stream.take(_SIZE):
        lines = lines_of(piece, data.name, stream.line)
        for number, text in enumerate(lines, start=stream.line):
            if text.strip():
                yield number, json_row(text, data.name, number, options.limits)
        stream.line += len(lines)


def _constant(word: str) -> float | None:
    if word == "NaN":
        return None
    raise ValueError(f"{word} is not a JSON number")


def json_row(
    text: str,
    source: str,
    line: int,
    limits: Limits,
    constant: Callable[[str], Any] = _constant,
) -> dict[str, Any]:
    """Parse an object of numbers, words, true, false and null.

    Parameters
    ----------
    text : str
        The object.
    source, line : str, int
        Its place, for errors.
    limits : Limits
        Columns, and characters of an entry.
    constant : callable
        Value of NaN and infinity.
    """
    if len(text) > _LONG:
        signs = _STRING.sub("", text)
        if signs.count("{") + signs.count("[") > 1:  # each may take a hundred times its size
            raise _no_row(source, line)
        limits.check("columns", signs.count(":"), source, line)
    try:
        row = json.loads(text, object_pairs_hook=_pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        place = getattr(error, "colno", None)
        reason = getattr(error, "msg", str(error))
        raise DataError(
            f"this line is not valid JSON ({shorten(str(reason))})",
            source=source,
            line=line,
            column=place,
        ) from None
    if not isinstance(row, dict):
        raise _no_row(source, line)
    for name, value in row.items():
        if isinstance(value, dict | list):
            raise DataError(
                "holds a list or an object; a cell is a number, a word, true, false or null",
                source=source,
                line=line,
                column=name,
            )
        if isinstance(value, str) and len(value) > limits.field:
            limits.check("field", len(value), source, line)
        if isinstance(value, int) and abs(value) > 10**308:
            raise DataError(
                "holds an integer out of range of float64", source=source, line=line, column=name
            )
    return row


def _no_row(source: str, line: int) -> DataError:
    words = 'each line is an object of numbers and words, as in {"age": 31}'
    return DataError(words, source=source, line=line)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice, _ = counts.most_common(1)[0]
        raise ValueError(f"the key {shorten(twice, 30)!r} is duplicated")
    return found
