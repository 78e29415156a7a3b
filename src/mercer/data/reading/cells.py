"""Convert fields of text to columns, one at a time or vectorized, or by pyarrow."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isinf, nan
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Parsed
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.kinds import number_of, overflows
from mercer.data.reading.records import Chunk, Records, has_long_line, lines_of

# --- convert -------------------------------------------------------------------------------------
#
# Fields of a text as the entries of a column: numbers or words.


@dataclass(frozen=True, eq=False)
class Cells:
    """Options for parsing fields.

    Attributes
    ----------
    missing : frozenset of str
        Markers of missing values.
    decimal : str
        The decimal point of numbers.
    """

    missing: frozenset[str]
    decimal: str

    @property
    def plain(self) -> bool:
        """Whether no number stands for a missing entry, and the decimal point is a point."""
        return self.decimal == "." and not any(number_of(word) is not None for word in self.missing)


class NotANumberError(Exception):
    """A field in a numeric column that is not a number."""

    def __init__(self, row: int, word: str) -> None:
        super().__init__(row, word)
        self.row, self.word = row, word


def words_from(fields: Sequence[str], cells: Cells) -> Array:
    """Return fields as words without blanks around, None where missing."""
    # each different field once: most columns of words have few
    entries = {field: field.strip() for field in set(fields)}
    known = {field: None if word in cells.missing else word for field, word in entries.items()}
    found = np.empty(len(fields), dtype=object)
    found[:] = list(map(known.__getitem__, fields))
    return found


def numbers_from(fields: Sequence[str], cells: Cells, name: str, records: Records) -> Array:
    """Return fields as numbers, nan where missing.

    Raises
    ------
    NotANumberError
        If a field is none.
    DataError
        If it is one beyond float64.
    """
    quick = _quickly(fields, cells) if cells.plain else None
    if quick is None or np.isinf(quick).any():
        return _one_by_one(fields, cells, name, records)
    # what Python's float takes and a table does not: 1_000, and digits of other scripts
    text = "".join(fields)
    if "_" in text or not text.isascii():
        return _one_by_one(fields, cells, name, records)
    return quick


def _quickly(fields: Sequence[str], cells: Cells) -> Array | None:
    missing = cells.missing
    try:
        return np.fromiter(map(float, fields), np.float64, len(fields))
    except ValueError:
        pass
    try:
        return np.array([nan if field in missing else float(field) for field in fields])
    except ValueError:
        return None


def numbers_at_once(
    chunk: Chunk,
    width: int,
    places: Sequence[int],
    delimiter: str,
    cells: Cells,
    *,
    gaps: bool,
) -> Array | None:
    """Parse a numeric piece with NumPy's text reader.

    Takes 0.6 of the time of splitting and parsing fields one by one. Returns None for quotes, other
    words, records of a different length and numbers out of range of float64.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    width : int
        Fields of a record.
    places : sequence of int
        The columns that are wanted.
    delimiter : str
        Between fields.
    cells : Cells
        What is missing.
    gaps : bool
        Whether to search for missing values. Disable it to save time if there are none.
    """
    if chunk.quoted or not cells.plain or not chunk.data.isascii() or not places:
        return None
    lines = [line for line in lines_of(chunk.data, "", chunk.line) if line]
    commas = width - 1
    if not lines or any(line.count(delimiter) != commas for line in lines):
        return None
    if gaps:
        lines = _with_nan(lines, delimiter, cells.missing)
    try:
        found = np.loadtxt(
            lines, delimiter=delimiter, comments=None, usecols=tuple(places), ndmin=2
        )
    except ValueError:
        return None
    return None if len(found) != len(lines) or np.isinf(found).any() else found


def _with_nan(lines: list[str], delimiter: str, missing: Collection[str]) -> list[str]:
    """Write nan in place of the words for missing entries."""
    text = "\n".join(["", *lines, ""])
    for word in missing:
        if word not in text or word.lower() == "nan":
            continue
        for left in (delimiter, "\n"):
            for right in (delimiter, "\n"):
                while left + word + right in text:  # twice: neighbours share a delimiter
                    text = text.replace(left + word + right, f"{left}nan{right}")
    return text[1:-1].split("\n")


def _one_by_one(fields: Sequence[str], cells: Cells, name: str, records: Records) -> Array:
    missing, comma = cells.missing, cells.decimal == ","
    found = np.empty(len(fields))
    for row, field in enumerate(fields):
        word = field.strip()
        if word in missing:
            found[row] = nan
            continue
        if comma:
            if "." in word:
                raise NotANumberError(row, word)
            word = word.replace(",", ".")
        number = number_of(word)
        if number is None:
            raise NotANumberError(row, field.strip())
        if isinf(number) and overflows(word):
            raise DataError(
                f"{shorten(word)!r} is out of range of float64; use the kind category, or scale it",
                line=records.lines[row],
                column=name,
            )
        found[row] = number
    return found


# --- arrow ---------------------------------------------------------------------------------------
#
# The quick way through a piece of delimited text: pyarrow, where it is installed.
#
# It reads the easy cases, which are nearly all: quotes around whole fields only, no number in an
# odd spelling. What it does not read, or might read differently, goes through `records_of` and
# `numbers_from`, so that a file is the same table with and without pyarrow.

# bytes: pyarrow cuts a piece into blocks of so many, and one block keeps one thread busy; threads
# that are started for it gain nothing, and may abort the process while it ends
_BLOCK = 1 << 20


@cache
def pyarrow() -> Any:
    """Return pyarrow with its reader of CSV, or None where it is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415  optional
        import pyarrow.csv  # noqa: PLC0415
    except ImportError:
        return None
    return pa


def is_easy(chunk: Chunk, cells: Cells, limits: Limits) -> bool:
    """Return whether a piece is read alike by both ways."""
    if (chunk.quoted and not chunk.whole) or not cells.plain:
        return False
    if has_long_line(chunk.data, limits.field):
        return False
    if chunk.data.startswith(codecs.BOM_UTF8):  # which pyarrow takes off wherever a piece begins
        return False
    if b"\r" in chunk.data and chunk.data.count(b"\r") != chunk.data.count(b"\r\n"):
        return False
    if chunk.data.isascii():
        return True
    try:
        chunk.data.decode("utf-8")
    except UnicodeDecodeError:
        return False  # the other way says where
    return True


def arrow_columns(
    chunk: Chunk, names: Sequence[str], parsed: Mapping[str, Parsed], cells: Cells, delimiter: str
) -> dict[str, Array] | None:
    """Return columns of a piece as numbers or words, or None if pyarrow does not support it.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    names : sequence of str
        Of all columns.
    parsed : mapping
        Selected columns and their types.
    cells : Cells
        What is missing.
    delimiter : str
        Between fields.
    """
    pa = pyarrow()
    types = {n: pa.float64() if what == "number" else pa.string() for n, what in parsed.items()}
    try:
        table = pa.csv.read_csv(
            pa.py_buffer(chunk.data),
            read_options=pa.csv.ReadOptions(
                column_names=list(names), block_size=_BLOCK, use_threads=len(chunk.data) > _BLOCK
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if chunk.quoted else False,
                newlines_in_values=False,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(parsed),
                null_values=sorted(cells.missing),
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    found = {}
    for name, what in parsed.items():
        column = table.column(name)
        values = _arrow_numbers(column) if what == "number" else _words(column, cells)
        if values is None:
            return None
        found[name] = values
    return found


def _arrow_numbers(column: Any) -> Array | None:
    values: Array = column.to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(values).all() if column.null_count else np.isfinite(values.sum())
    if finite:
        return values
    # infinity may be 1e400, and nan may be written in a way that only one of the two ways takes
    odd = np.isinf(values).any() or int(np.isnan(values).sum()) != column.null_count
    return None if odd else values


def _words(column: Any, cells: Cells) -> Array:
    coded = column.combine_chunks().dictionary_encode()
    if hasattr(coded, "num_chunks"):  # a chunked array, in some versions
        coded = coded.combine_chunks() if coded.num_chunks != 1 else coded.chunk(0)
    words = [word.strip() for word in coded.dictionary.to_pylist()]
    known = np.empty(len(words) + 1, dtype=object)
    known[:-1] = [None if word in cells.missing else word for word in words]
    found: Array = known[coded.indices.fill_null(len(words)).to_numpy()]
    return found
