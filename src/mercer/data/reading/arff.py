"""Read ARFF files: header, and dense or sparse rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from mercer.array_types import Array
from mercer.data.column import DATES, Column
from mercer.data.errors import DataError, shorten
from mercer.data.kinds import Kind
from mercer.data.reading.cells import Cells, NotANumberError, numbers_from
from mercer.data.reading.columns import finished, known, refuse_lacking
from mercer.data.reading.records import LineStream, Records, lines_of
from mercer.data.reading.source import Bytes, ReadOptions, utf8
from mercer.data.table import Schema, Table, refuse_twins

# --- header --------------------------------------------------------------------------------------
#
# Header of an ARFF file: the attributes it declares, and words as the format quotes them.

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
# `*+` and `++` never give back what they took: no text takes longer than its length
_FIELD = re.compile(rf"\s*+(?:({QUOTED})|([^,'\"\s][^,]*+|))\s*+(,|$)")
_NUMERIC = ("numeric", "real", "integer")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# letters of Java's date patterns, for Python's strptime
_JAVA = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}
_LONGEST_PATTERN = 200  # characters; strptime compiles it, and recurses
_ISO = "yyyy-MM-dd'T'HH:mm:ss"


@dataclass(frozen=True)
class Attribute:
    """A declared column.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "nominal", "string", "date"}
        What was declared.
    levels : tuple of str
        The values of a nominal one.
    pattern : str
        How dates are written, for `strptime`.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def column_kind(self) -> Kind | None:
        """The kind of a nominal column; that of others follows from the entries."""
        if self.kind != "nominal":
            return None
        return Kind.BINARY if len(self.levels) == 2 else Kind.CATEGORY


def read_header(
    lines: Iterator[tuple[int, str]], source: str, options: ReadOptions
) -> list[Attribute]:
    """Read the lines up to "@data"."""
    attributes: list[Attribute] = []
    for number, text in lines:
        word = text.split(maxsplit=1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            attributes.append(_attribute(text, source, number))
            options.limits.check("columns", len(attributes), source, number)
        elif word != "@relation":
            raise DataError(
                f"{shorten(text)!r}: expected @relation and @attribute lines before @data",
                source=source,
                line=number,
            )
    if not attributes:
        raise DataError("the file declares no @attribute", source=source)
    refuse_twins([attribute.name for attribute in attributes], source)
    return attributes


def _attribute(text: str, source: str, line: int) -> Attribute:
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        raise DataError(
            f"{shorten(text)!r} is not an @attribute declaration", source=source, line=line
        )
    name, declared = plain(found[1]), found[2].strip()
    word = declared.split(maxsplit=1)[0].lower() if declared else ""
    if word in _NUMERIC:
        return Attribute(name, "number")
    if word == "string":
        return Attribute(name, "string")
    if word == "date":
        return Attribute(name, "date", pattern=_pattern(declared[4:].strip(), source, line, name))
    if declared.startswith("{") and declared.endswith("}"):
        levels = fields_of(declared[1:-1].strip())
        if levels is None or len(set(levels)) < len(levels):
            raise DataError("its values are not distinct", source=source, line=line, column=name)
        return Attribute(name, "nominal", tuple(levels))
    raise DataError(
        f"type {shorten(declared)!r} is not supported; use numeric, string, date or {{a, b}}",
        source=source,
        line=line,
        column=name,
    )


def _pattern(java: str, source: str, line: int, name: str) -> str:
    """Translate a date pattern of Java."""
    java = plain(java) if java else _ISO
    if len(java) > _LONGEST_PATTERN:
        raise DataError(
            f"date pattern {shorten(java)!r} is longer than {_LONGEST_PATTERN} characters",
            source=source,
            line=line,
            column=name,
        )
    made, rest = "", java
    while rest:
        known = next((letters for letters in _JAVA if rest.startswith(letters)), None)
        if known is not None:
            made, rest = made + _JAVA[known], rest[len(known) :]
        elif rest.startswith("'"):
            literal, _, rest = rest[1:].partition("'")
            made += literal.replace("%", "%%")
        elif rest[0].isalpha():
            raise DataError(
                f"date pattern {shorten(java)!r} is not supported; use yyyy, MM, dd, HH, mm and ss",
                source=source,
                line=line,
                column=name,
            )
        else:
            made, rest = made + rest[0].replace("%", "%%"), rest[1:]
    if any(made.count(letter) > 1 for letter in _JAVA.values()):
        raise DataError(
            f"date pattern {shorten(java)!r} repeats a part",
            source=source,
            line=line,
            column=name,
        )
    return made


def plain(word: str) -> str:
    """Remove quotes and backslashes from a word."""
    word = word.strip()
    if len(word) < 2 or word[0] != word[-1] or word[0] not in "'\"":
        return word
    return re.sub(
        r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1], flags=re.DOTALL
    )


def fields_of(text: str) -> list[str] | None:
    """Split a row at its commas. Return None if quotes are not closed."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    found, place = [], 0
    while True:
        match = _FIELD.match(text, place)
        if match is None:
            return None
        found.append(plain(match[1] or match[2]))
        place = match.end()
        if not match[3]:
            return found


# --- read ----------------------------------------------------------------------------------------
#
# Rows of an ARFF file, dense or sparse, as columns of what their attributes declare.

_SIZE = 1 << 20  # bytes of lines that are read at a time
_PAIR = re.compile(rf"\s*+(\d{{1,9}})\s++({QUOTED}|[^,'\"\s]++)\s*+(?:,|$)")


def read_arff(data: Bytes, options: ReadOptions) -> Table:
    """Read all rows; entries must be what their attribute declares."""
    file = ArffFile(data, options)
    records = file.records()
    if not len(records):
        raise DataError("the file has no rows", source=data.name)
    found = {
        one.name: Column.of(one.name, file.values(one, records), one.column_kind)
        for one in file.attributes
    }
    return finished(found, options, data.name, "arff")


def arff_blocks(data: Bytes, schema: Schema, rows: int, options: ReadOptions) -> Iterator[Table]:
    """Read rows as the columns of a schema, block by block."""
    file = ArffFile(data, options)
    by_name = {attribute.name: attribute for attribute in file.attributes}
    refuse_lacking(schema, list(by_name), data.name)
    while len(records := file.records(rows)):
        arrays = {name: file.values(by_name[name], records) for name in schema.names}
        yield Table(
            {n: known(n, arrays[n], schema, data.name, records.lines) for n in schema.names},
            source=data.name,
            schema=schema,
        )
    if not file.rows:
        raise DataError("the file has no rows", source=data.name)


class ArffFile:
    """A file whose attributes are known, and whose rows come in pieces."""

    def __init__(self, data: Bytes, options: ReadOptions) -> None:
        options.refuse_text_options("ARFF")
        self.name, self.options = data.name, options
        stream = LineStream(utf8(data, options.encoding), options.limits, data.name)
        self._lines = _lines(stream)
        self.attributes = read_header(self._lines, data.name, options)
        self.rows = 0  # that were read
        self._cells = Cells(frozenset(options.missing) - {""}, ".")

    def records(self, most: int | None = None) -> Records:
        """Split the next rows into fields, at most `count` rows."""
        limits, width = self.options.limits, len(self.attributes)
        columns: list[list[str]] = [[] for _ in self.attributes]
        numbers: list[int] = []
        for number, text in islice(self._lines, most):
            row = _row(text, self.attributes, self.name, number)
            for column, field in zip(columns, row, strict=True):
                column.append(field)
            numbers.append(number)
            limits.check("rows", self.rows + len(numbers), self.name)
            limits.check("bytes", 8 * width * len(numbers), self.name)  # rows may be sparse
        self.rows += len(numbers)
        return Records(columns, numbers)

    def values(self, attribute: Attribute, records: Records) -> Array:
        """Return the entries of a column as numbers, dates or words."""
        fields = records.columns[self.attributes.index(attribute)]
        return _values(attribute, fields, records, self._cells, self.name)


def _lines(stream: LineStream) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, except comments and blank lines."""
    while piece := stream.take(_SIZE):
        lines = lines_of(piece, stream.name, stream.line)
        for number, text in enumerate(lines, start=stream.line):
            clean = text.strip()
            if clean and not clean.startswith("%"):
                yield number, clean
        stream.line += len(lines)


def _row(text: str, attributes: list[Attribute], source: str, line: int) -> list[str]:
    if text.startswith("{"):
        return _sparse_row(text, attributes, source, line)
    row = fields_of(text)
    if row is None:
        raise DataError("quotes are not closed", source=source, line=line)
    if len(row) != len(attributes):
        raise DataError(
            f"{len(row)} fields, but there are {len(attributes)} attributes",
            source=source,
            line=line,
            column=min(len(row), len(attributes)) + (len(row) > len(attributes)),
        )
    return row


def _sparse_row(text: str, attributes: list[Attribute], source: str, line: int) -> list[str]:
    """Expand a sparse row. Other entries are zero or the first value."""
    if not text.endswith("}"):
        raise DataError("a sparse row ends with }", source=source, line=line)
    row = [attribute.levels[0] if attribute.levels else "0" for attribute in attributes]
    inner, place, last = text[1:-1].strip(), 0, -1
    while place < len(inner):
        match = _PAIR.match(inner, place)
        if match is None:
            shown = shorten(inner[place:], 30)
            raise DataError(f"{shown!r} is not an index and a value", source=source, line=line)
        index = int(match[1])
        if not last < index < len(attributes):
            raise DataError(
                f"index {index}: indices must increase from 0 to {len(attributes) - 1}",
                source=source,
                line=line,
            )
        row[index], last, place = plain(match[2]), index, match.end()
    return row


def _values(
    attribute: Attribute, fields: list[str], records: Records, cells: Cells, source: str
) -> Array:
    name = attribute.name
    if attribute.kind == "number":
        try:
            return numbers_from(fields, cells, name, records)
        except NotANumberError as odd:
            raise DataError(
                f"{shorten(odd.word)!r} is not a number",
                source=source,
                line=records.lines[odd.row],
                column=name,
            ) from None
        except DataError as error:
            raise error.at(source) from None
    values = np.empty(len(fields), dtype=object)
    values[:] = [None if field == "?" else field for field in fields]
    if attribute.kind == "date":
        return _dates(attribute, values, records, source)
    if attribute.kind == "nominal":
        declared = {None, *attribute.levels}
        for row, entry in enumerate(values.tolist()):
            if entry not in declared:
                raise DataError(
                    f"{shorten(entry)!r} is not a declared value",
                    source=source,
                    line=records.lines[row],
                    column=name,
                )
    return values


def _dates(attribute: Attribute, values: Array, records: Records, source: str) -> Array:
    found = np.full(len(values), np.datetime64("NaT", "us"), dtype=DATES)
    for row, entry in enumerate(values.tolist()):
        if entry is None:
            continue
        try:
            day = datetime.strptime(entry, attribute.pattern)
            found[row] = day if day.tzinfo is None else day.astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError) as error:
            raise DataError(
                f"{shorten(entry)!r} does not match the date pattern",
                source=source,
                line=records.lines[row],
                column=attribute.name,
            ) from error
    return found
