"""Pieces of a file that can be read apart: byte ranges of a text, row groups of a Parquet file."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.blocks.files import npy_part
from mercer.data.errors import DataError
from mercer.data.limits import Limits
from mercer.data.reading.delimited import DelimitedFile
from mercer.data.reading.formats import format_of
from mercer.data.reading.options import Options
from mercer.data.reading.parquet import parquet_blocks, parquet_groups
from mercer.data.reading.read import read_blocks
from mercer.data.reading.source import opened
from mercer.data.schema import Schema
from mercer.data.table import Table

_NO_LIMITS = Limits(bytes=None, rows=None)
_BY_LINES = ("jsonl", "libsvm")  # each row is a line, and no line is anything else
_BY_RECORDS = ("csv", "tsv")  # rows are lines, but for those inside quotes
_LOOK = 1 << 16  # bytes that the end of a record is looked for in, at a time
_QUOTE, _END = ord('"'), ord("\n")


@dataclass(frozen=True)
class FilePiece:
    """Some rows of a file.

    Attributes
    ----------
    path : str
        The file, as each reader finds it.
    format : str
        As in `mercer.data.read`.
    first, last : int or None
        Where it begins and ends: bytes of a text, whose records that begin there it has, row
        groups, or rows of an array; None for the whole file.
    reader : dict
        Arguments of `mercer.data.read_blocks`.
    quoted : tuple of bool
        Whether these bytes are inside quotes.
    """

    path: str
    format: str
    first: int | None
    last: int | None
    reader: dict[str, Any]
    quoted: tuple[bool, bool] = (False, False)


def pieces_of(path: Any, size: int, **reader: Any) -> list[FilePiece]:
    """Cut a file into pieces of about `size` bytes; only its beginning, or its end, is read.

    Pieces of a delimited text are not whole before `with_quotes` has seen how many quotes each has.

    Parameters
    ----------
    path : path
        The file.
    size : int
        Bytes.
    **reader
        Arguments of `mercer.data.read_blocks`: format, encoding, delimiter, header, parser.
    """
    path, asked = os.fspath(path), reader.pop("format", None)
    with opened(path, _NO_LIMITS) as data:
        found = format_of(data, asked)
        whole = [FilePiece(path, found, None, None, reader)]
        if path.endswith(".npy"):
            array = np.load(path, mmap_mode="r")
            sizes = [array.nbytes // max(1, len(array))] * len(array)
            return _of_groups(replace(whole[0], format="npy"), sizes, size) if sizes else whole
        if data.file is None:  # packed
            return whole
        if found == "parquet":
            sizes = parquet_groups(data)
            return _of_groups(whole[0], sizes, size) if sizes else whole
        if found in _BY_RECORDS:
            if reader.get("encoding") is not None or not data.peek(1).strip():
                return whole
            known = ("encoding", "delimiter", "header", "parser")
            given = {name: reader[name] for name in known if reader.get(name) is not None}
            text = DelimitedFile(
                data, Options(limits=_NO_LIMITS, **given), "\t" if found == "tsv" else None
            )
            dialect = text.dialect
            reader = {**reader, "delimiter": dialect.delimiter, "header": dialect.header}
        elif found not in _BY_LINES:
            return whole
    total = os.path.getsize(path)
    count = max(1, -(-total // size))
    ends = [total * k // count for k in range(count + 1)]
    pairs = itertools.pairwise(ends)
    return [FilePiece(path, found, low, high, reader) for low, high in pairs]


def quotes_in(piece: FilePiece) -> int:
    """Count the quotes of a piece; zero where they mean nothing."""
    if piece.format not in _BY_RECORDS or piece.first is None or piece.last is None:
        return 0
    count, left = 0, piece.last - piece.first
    with Path(piece.path).open("rb") as file:
        file.seek(piece.first)
        while left > 0 and (found := file.read(min(left, _LOOK << 4))):
            count, left = count + found.count(b'"'), left - len(found)
    return count


def with_quotes(pieces: list[FilePiece], counts: list[int]) -> list[FilePiece]:
    """Return pieces of one file that know whether they begin and end inside quotes."""
    before = np.concatenate([[0], np.cumsum(counts)]) % 2 == 1
    return [
        replace(piece, quoted=(bool(before[k]), bool(before[k + 1])))
        for k, piece in enumerate(pieces)
    ]


def read_piece(piece: FilePiece, schema: Schema, rows: int) -> Iterator[Table]:
    """Read the rows of a piece, as the columns of a schema, in tables of so many rows at most.

    Parameters
    ----------
    piece : FilePiece
        What to read.
    schema : Schema
        Names and kinds of the columns.
    rows : int
        Of a table, at most.
    """
    if piece.first is None or piece.last is None:
        yield from read_blocks(piece.path, schema, rows, format=piece.format, **piece.reader)
    elif piece.format == "npy":
        part = npy_part(piece.path, piece.first, piece.last)
        yield from read_blocks(part, schema, rows, format="npz", **piece.reader)
    elif piece.format == "parquet":
        groups = list(range(piece.first, piece.last))
        with opened(piece.path, _NO_LIMITS) as data:
            yield from parquet_blocks(data, schema, rows, Options(limits=_NO_LIMITS), groups)
    else:
        content = _records(piece)
        if content:
            text: Any = io.BytesIO(content)
            text.name = piece.path
            try:
                yield from read_blocks(text, schema, rows, format=piece.format, **piece.reader)
            except DataError as error:
                raise ValueError(
                    f"{error} (lines are counted from byte {piece.first} of the file)"
                ) from error


def _of_groups(whole: FilePiece, sizes: list[int], size: int) -> list[FilePiece]:
    """Put neighbouring row groups together up to a size."""
    pieces, first, held = list[FilePiece](), 0, 0
    for k, one in enumerate(sizes):
        if held and held + one > size:
            pieces.append(replace(whole, first=first, last=k))
            first, held = k, 0
        held += one
    return [*pieces, replace(whole, first=first, last=len(sizes))]


def _records(piece: FilePiece) -> bytes:
    """Return the records that begin in a range of bytes, below the names of the columns."""
    assert piece.first is not None
    assert piece.last is not None
    by_records = piece.format in _BY_RECORDS
    with Path(piece.path).open("rb") as file:
        first = _start_of_record(file, piece.first, piece.quoted[0], by_records)
        last = _start_of_record(file, piece.last, piece.quoted[1], by_records)
        file.seek(first)
        content = file.read(max(0, last - first))
        header = b""
        if content and first > 0 and by_records and piece.reader["header"]:
            file.seek(0)
            length = _start_of_record(file, 1, file.read(1) == b'"', by_records)
            file.seek(0)
            header = file.read(length)
    return header + content


def _start_of_record(file: Any, offset: int, quoted: bool, by_records: bool) -> int:
    """Return where the first record begins that does not begin before a byte."""
    if offset == 0:
        return 0
    place = offset - 1  # a line that ends just before the byte: the record begins with it
    file.seek(place)
    inside = int(quoted)
    while found := file.read(_LOOK):
        letters = np.frombuffer(found, dtype=np.uint8)
        ends = letters == _END
        if by_records:
            quotes = np.cumsum(letters == _QUOTE)
            # the byte before `offset` was counted in `quoted` already
            early = int(place == offset - 1 and letters[0] == _QUOTE)
            ends &= (quotes - early + inside) % 2 == 0
            inside = (inside + int(quotes[-1]) - early) % 2
        where = np.flatnonzero(ends)
        if len(where):
            return place + int(where[0]) + 1
        place += len(found)
    return place
