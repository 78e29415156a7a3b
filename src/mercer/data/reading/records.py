"""Split delimited text into records and fields, and detect its dialect."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mercer.data.errors import DataError, Limits, shorten
from mercer.data.kinds import date_of, has_decimal_comma, number_of

# --- chunks --------------------------------------------------------------------------------------
#
# A delimited text in pieces of whole records, and records cut into fields.
#
# Pieces without quotes are cut at line ends and delimiters by the fastest means there are. In a
# piece whose quotes stand around whole fields of one line, records end where lines do. Any other
# piece with quotes goes through Python's csv module, which alone knows where its records end.

_LINE_END = re.compile(rb"\r\n|\n|\r|$")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Complete records of a file.

    Attributes
    ----------
    data : bytes
        Lines in UTF-8.
    line : int
        The number of the first one in the file.
    quoted : bool
        Whether quotes, or runs of blanks, make line ends and delimiters ambiguous.
    whole : bool
        Whether there are quotes, all around whole fields without line ends or quotes in them.
    held : list of lists of (fields, line)
        Its records, if they had to be cut to see where the last one ends; taken out when used.
    """

    data: bytes
    line: int
    quoted: bool
    whole: bool = False
    held: list[list[tuple[list[str], int]]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Records:
    """Fields of some records.

    Attributes
    ----------
    columns : list of sequences of str
        Fields, column by column.
    lines : sequence of int
        The line at which each record ends.
    """

    columns: list[list[str]]
    lines: range | list[int]

    def __len__(self) -> int:
        return len(self.lines)


class LineStream:
    """Lines of a text file as bytes, with their numbers."""

    def __init__(self, pieces: Iterator[bytes], limits: Limits, name: str) -> None:
        self.name, self.limits = name, limits
        self.line = 1  # number of the next one
        self._pieces, self._held = pieces, b""
        self._ended = False

    def take(self, size: int) -> bytes:
        """Return whole lines, about so many bytes; nothing at the end."""
        parts, length = [self._held], len(self._held)
        ends = _last_line_end(self._held) >= 0
        while not self._ended and (length < size or not ends):
            self.limits.check("line", length - size, self.name, self.line)
            piece = next(self._pieces, b"")
            self._ended = not piece
            parts.append(piece)
            length += len(piece)
            ends = ends or _last_line_end(piece) >= 0
        data = b"".join(parts)
        cut = len(data) if self._ended else _last_line_end(data) + 1
        found, self._held = data[:cut], data[cut:]
        nul = found.find(b"\0")
        if nul >= 0:
            raise DataError(
                "NUL character found: the file is binary or needs encoding='utf-16' or another",
                source=self.name,
                line=self.line + found.count(b"\n", 0, nul),
            )
        return found

    def give_back(self, data: bytes) -> None:
        """Put lines back, to be taken again."""
        self._held = data + self._held

    def skip(self, lines: int) -> None:
        """Leave out lines at the beginning of what was given back."""
        ends = islice(_LINE_END.finditer(self._held), lines)
        self._held = self._held[max((end.end() for end in ends), default=0) :]
        self.line += lines


def _last_line_end(data: bytes) -> int:
    """Return where the last line ends: at a line feed, or at carriage returns if there are none."""
    cut = data.rfind(b"\n")
    return cut if cut >= 0 else data.rfind(b"\r", 0, -1)


def refuse_wide_lines(data: bytes, delimiter: str, limits: Limits, name: str, line: int) -> None:
    """Raise before splitting if a line has more fields than the limit on columns.

    Delimiters can be part of an entry, so the limit on characters per entry is added.
    """
    if limits.columns is None or not has_long_line(data, limits.columns + limits.field):
        return
    for number, one in enumerate(data.split(b"\n"), start=line):
        fields = max(part.count(delimiter.encode()) for part in one.split(b"\r"))
        limits.check("columns", fields - limits.field, name, number)


def has_long_line(data: bytes, most: int) -> bool:
    """Return whether a line has more bytes."""
    start = 0
    while start + most < len(data):
        end = data.rfind(b"\n", start, start + most + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def lines_of(data: bytes, name: str, line: int) -> list[str]:
    """Decode lines with any line ending. Raise for invalid UTF-8."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {data[error.start]:#04x} is not UTF-8; pass encoding=..., such as 'latin-1'",
            source=name,
            line=line + data.count(b"\n", 0, error.start),
        ) from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def first_records(sample: bytes, dialect: Dialect, name: str) -> tuple[list[list[str]], int]:
    """Return the first two records of a file, and how many lines the first one ends after."""
    reader = reader_of((line + "\n" for line in lines_of(sample, name, 1)), dialect.delimiter)
    records: list[list[str]] = []
    lines = 0
    try:
        for record in reader:
            if record:
                records.append(record)
                lines = lines or reader.line_num
            if len(records) == 2:
                break
    except csv.Error as error:
        if not records:
            raise DataError(_explained(error), source=name, line=reader.line_num) from error
    return records, lines


def chunks(stream: LineStream, dialect: Dialect, size: int) -> Iterator[Chunk]:
    """Yield the rest of a file in pieces of whole records."""
    while data := stream.take(size):
        line = stream.line
        refuse_wide_lines(data, dialect.delimiter, stream.limits, stream.name, line)
        quoted = dialect.delimiter == " " or b'"' in data
        held, whole = [], b'"' in data and _quotes_whole_fields(data, dialect.delimiter)
        if b'"' in data and not whole:
            data, records = _to_the_end_of_the_record(data, dialect, stream, size)
            held.append(records)
        stream.line += max(data.count(b"\n"), data.count(b"\r")) + (
            not data.endswith((b"\n", b"\r"))
        )
        yield Chunk(data, line, quoted, whole, held)


def _quotes_whole_fields(data: bytes, delimiter: str) -> bool:
    """Return whether quotes only enclose complete fields without quotes or line ends."""
    if delimiter == " ":
        return False
    mark = re.escape(delimiter.encode())
    field = rb'(?:^|(?<=%s))"[^"\r\n]*"(?=%s|\r|\n|\Z)' % (mark, mark)
    return 2 * len(re.findall(field, data, re.MULTILINE)) == data.count(b'"')


def _to_the_end_of_the_record(
    data: bytes, dialect: Dialect, stream: LineStream, size: int
) -> tuple[bytes, list[tuple[list[str], int]]]:
    """Read lines until the last record is complete. Return them and all records."""
    begun = stream.line
    while True:
        lines = lines_of(data, stream.name, begun)
        reader = reader_of((line + "\n" for line in lines), dialect.delimiter)
        try:
            return data, [(record, begun + reader.line_num - 1) for record in reader if record]
        except csv.Error as error:
            line = begun + reader.line_num - 1
            if "unexpected end" not in str(error):
                raise DataError(_explained(error), source=stream.name, line=line) from error
            more = stream.take(size)
            if not more:
                raise DataError(
                    "a quoted field is not closed at the end of the file",
                    source=stream.name,
                    line=line,
                ) from error
            refuse_wide_lines(more, dialect.delimiter, stream.limits, stream.name, begun)
            data += more
            stream.limits.check("line", len(data) - 8 * size, stream.name, begun)


def _explained(error: csv.Error) -> str:
    text = str(error)
    if "field larger" in text:
        return (
            f"more than {csv.field_size_limit()} characters in one entry; close the quotes, or "
            "raise the limit with limits=Limits(field=...)"
        )
    return text + "; quotes inside a field are doubled"


def records_of(chunk: Chunk, width: int, dialect: Dialect, limits: Limits, name: str) -> Records:
    """Split a chunk into fields. Raise for records of a different number of fields.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    width : int
        Fields of a record.
    dialect : Dialect
        How the file is written.
    limits : Limits
        How long an entry may be.
    name : str
        Of the file, for errors.
    """
    lines = [] if chunk.held else lines_of(chunk.data, name, chunk.line)
    if chunk.quoted:
        records = _quoted(lines, chunk, width, dialect, name)
        if limits.field < csv.field_size_limit():  # else the csv module looks at it
            _refuse_long_fields(records, limits, name)
        return records
    delimiter = dialect.delimiter
    numbers: range | list[int] = range(chunk.line, chunk.line + len(lines))
    if "" in lines:  # blank lines
        numbers = [number for number, line in zip(numbers, lines, strict=True) if line]
        lines = [line for line in lines if line]
    for row, line in enumerate(lines):
        if line.count(delimiter) != width - 1:
            last = line.rpartition(delimiter)[2]
            raise _ragged(1 + line.count(delimiter), last, width, name, numbers[row])
    fields = delimiter.join(lines).split(delimiter) if lines else []
    records = Records([fields[k::width] for k in range(width)], numbers)
    if lines and max(map(len, lines)) > limits.field:
        _refuse_long_fields(records, limits, name)
    return records


def _refuse_long_fields(records: Records, limits: Limits, name: str) -> None:
    for fields in records.columns:
        longest = max(range(len(fields)), key=lambda k: len(fields[k]), default=0)
        if len(fields):
            limits.check("field", len(fields[longest]), name, records.lines[longest])


def _quoted(lines: list[str], chunk: Chunk, width: int, dialect: Dialect, name: str) -> Records:
    if chunk.held:
        pairs = chunk.held.pop()
    else:
        reader = reader_of((line + "\n" for line in lines), dialect.delimiter)
        try:
            pairs = [(record, chunk.line + reader.line_num - 1) for record in reader if record]
        except csv.Error as error:
            line = chunk.line + reader.line_num - 1
            raise DataError(_explained(error), source=name, line=line) from error
    for record, line in pairs:
        if len(record) != width:
            raise _ragged(len(record), record[-1], width, name, line)
    records = [record for record, _ in pairs]
    columns = [list(column) for column in zip(*records, strict=True)] or [[] for _ in range(width)]
    return Records(columns, [line for _, line in pairs])


def _ragged(fields: int, last: str, width: int, name: str, line: int) -> DataError:
    return DataError(
        f"{fields} fields, but there are {width} columns; the last field is {shorten(last)!r}. "
        "Quote fields that hold the delimiter, or pass delimiter=...",
        source=name,
        line=line,
        column=min(fields, width + 1),
    )


# --- dialect -------------------------------------------------------------------------------------
#
# Dialect of a delimited text: delimiter, header, decimal point.

SAMPLE = 1 << 16  # bytes that the way of writing is told from
_RECORDS = 200  # lines of them
# in this order: a text with tabs has commas inside its fields, or as decimal points
_DELIMITERS = ("\t", ";", "|", ",", " ")


@dataclass(frozen=True)
class Dialect:
    r"""Dialect of a delimited text.

    Attributes
    ----------
    delimiter : str
        Delimiter of fields. A blank means one or more blanks.
    header : bool
        Whether the first line has the names.
    decimal : str
        The decimal point of numbers.

    Examples
    --------
    >>> dialect_of("age;size\n31;1.5\n", (), decimal=".")
    Dialect(delimiter=';', header=True, decimal='.')
    """

    delimiter: str
    header: bool
    decimal: str


def dialect_of(
    sample: str,
    missing: Sequence[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str = ".",
) -> Dialect:
    """Detect the dialect of a text from its beginning. Specified options are not changed.

    The delimiter is the first of tab, semicolon, bar, comma and blank that cuts all lines into the
    same number of fields, at least two; a text that none cuts has one column. The first line has
    the names unless one of its fields is a number or a date, or two are equal and no
    numbers follow.
    """
    if decimal not in (".", ","):
        raise ValueError(f"decimal={decimal!r} must be '.' or ','")
    if delimiter is not None and (
        len(delimiter) != 1 or delimiter in '"\r\n' or delimiter == decimal
    ):
        raise ValueError(
            f"delimiter={delimiter!r} must be one character, not a quote or {decimal!r}"
        )
    lines = sample.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:_RECORDS]
    if delimiter is None:
        delimiter = _delimiter(lines)
    if header is None:
        records = records_in(lines, delimiter)
        header = bool(records) and _is_header(records, missing)
    return Dialect(delimiter, header, decimal)


def records_in(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split lines into fields until an invalid one. Quoted fields can span several lines."""
    records = []
    with suppress(csv.Error):  # the reader of all records says where and what
        for record in reader_of(lines, delimiter, strict=False):
            if record:
                records.append(record)
    return records


def reader_of(lines: Iterable[str], delimiter: str, *, strict: bool = True) -> Any:
    """Return a reader of quoted fields that strips blanks around fields."""
    if delimiter == " ":
        lines = (line.rstrip() for line in lines)
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=strict)


def _delimiter(lines: list[str]) -> str:
    whole = lines[:-1] if len(lines) > 1 else lines  # the last one may be cut
    for delimiter in _DELIMITERS:
        records = records_in(whole, delimiter)
        widths = {len(record) for record in records[1:]} or {len(record) for record in records}
        # R leaves out the name of the column of row names
        if (
            len(widths) == 1
            and max(widths) > 1
            and len(records[0]) in (max(widths), max(widths) - 1)
        ):
            return delimiter
    return ","


def _is_header(records: list[list[str]], missing: Sequence[str]) -> bool:
    first = [field.strip() for field in records[0]]
    named = [field for field in first if field]
    if any(map(_is_value, named)) or all(field in missing for field in named):
        return False
    if len(set(named)) == len(named):
        return True
    # equal names are a mistake, or values: names if there are numbers below
    rest = [[field.strip() for field in record] for record in records[1:]]
    below = [
        [field for field in column if field not in missing] for column in zip(*rest, strict=False)
    ]
    return any(column and all(map(_is_value, column)) for column in below)


def _is_value(field: str) -> bool:
    return number_of(field) is not None or date_of(field) is not None or has_decimal_comma(field)
