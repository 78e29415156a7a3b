"""Blocks of rows read from files: pieces of a file, and any format that can be read."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.array_types import Array
from mercer.data.errors import DataError, Limits
from mercer.data.preparation import TablePreparation
from mercer.data.reading.delimited import DelimitedFile
from mercer.data.reading.parquet import parquet_blocks, parquet_groups, parquet_head
from mercer.data.reading.read import read, read_blocks
from mercer.data.reading.source import ReadOptions, format_of, opened
from mercer.data.table import Schema, Table
from mercer.resources import memory_budget
from mercer.rows.blocks import LocalBlocks, checked_rows

# --- file pieces ---------------------------------------------------------------------------------
#
# Pieces of a file that can be read apart: byte ranges of a text, row groups of a Parquet file.

_FILE_PIECES_NO_LIMITS = Limits(bytes=None, rows=None)
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
    with opened(path, _FILE_PIECES_NO_LIMITS) as data:
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
                data,
                ReadOptions(limits=_FILE_PIECES_NO_LIMITS, **given),
                "\t" if found == "tsv" else None,
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
        with opened(piece.path, _FILE_PIECES_NO_LIMITS) as data:
            yield from parquet_blocks(
                data, schema, rows, ReadOptions(limits=_FILE_PIECES_NO_LIMITS), groups
            )
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


# --- files ---------------------------------------------------------------------------------------
#
# Rows of files, of any format that `mercer.data` reads, block by block.

_FILES_NO_LIMITS = Limits(bytes=None, rows=None)
_HEAD = 1 << 25  # bytes of a text that kinds of columns are inferred from ...
_NPY_HEAD = 1000  # rows of an array
_HEAD_SHARE = 64  # ... and no more than one in so many of the budget: cells are larger than letters
SAMPLED = 50_000  # rows that the preparation is learnt from


class FileBlocks(LocalBlocks):
    r"""Blocks of the rows of files: CSV, Parquet, JSON lines, ARFF, LIBSVM text, npz.

    What the columns hold is inferred from the beginning of the first file; an entry further on that
    is none of that kind is refused with file, line and column, and `kinds` says it better. npz
    archives are read whole, as what they hold stands at their end.

    Parameters
    ----------
    files : path or list of paths
        Read one after the other; all have the columns of the first.
    target : str, optional
        The column to predict.
    weights : str, optional
        The column that says how often each row counts.
    prepare : TablePreparation, True or None, default=None
        Turns words, dates and gaps into numbers, fitted already, or to be fitted to 50,000 rows
        drawn from all files in a pass of its own; True is ``TablePreparation()``. With None all
        columns must be numbers without gaps.
    kinds : mapping of str to Kind or str, optional
        Kinds of some columns, in place of those inferred.
    columns : list of str, optional
        The columns to keep, beside target and weights.
    format : str, optional
        As in `mercer.data.read`.
    rows : int, optional
        Rows of a block; by default as the memory budget allows.
    random_state : int
        Draws the rows for `prepare`.

    Attributes
    ----------
    prepare : TablePreparation or None
        The fitted preparation.
    schema : Schema
        Names and kinds of the columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.blocks import FileBlocks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "towns.csv"
    >>> _ = path.write_text("age,town,y\n31,Ulm,1.5\n40,Bern,2.5\n52,Ulm,3.5\n")
    >>> blocks = FileBlocks(path, target="y", prepare=True, rows=2)
    >>> [block.y.tolist() for block in blocks]
    [[1.5, 2.5], [3.5]]
    """

    def __init__(
        self,
        files: Any,
        *,
        target: str | None = None,
        weights: str | None = None,
        prepare: Any = None,
        kinds: Mapping[str, Any] | None = None,
        columns: list[str] | None = None,
        format: str | None = None,
        rows: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.files = listed(files)
        self.target, self.weights, self.format = target, weights, format
        self._beside = [name for name in (target, weights) if name is not None]
        kept = None if columns is None else [*columns, *self._beside]
        head = read_head(self.files[0], format, kinds, kept)
        for name in self._beside:
            if name not in head:
                raise KeyError(f"{self.files[0]} has no column {name!r}")
        self.schema = head.schema
        self.n_rows = None
        self.rows = checked_rows(rows, head.shape[1])
        self.prepare = self._fitted(prepare, random_state)
        some = self._three(head.rows(slice(0, 100)))[0]
        self.n_columns, self.dtype = int(some.shape[1]), np.dtype(np.float64)
        if self.prepare is None:
            self.names = tuple(head.drop(*self._beside).columns)
        self.rows = checked_rows(rows, max(head.shape[1], self.n_columns))

    def tables(self) -> Iterator[Table]:
        """Begin a pass over the rows as they are in the files."""
        for file in self.files:
            yield from read_blocks(file, self.schema, self.rows, format=self.format)

    def parts(self) -> Iterator[tuple[Any, Any, Any]]:
        """Read, and make numbers."""
        return map(self._three, self.tables())

    def _three(self, table: Table) -> tuple[Any, Any, Any]:
        return TableRows(self.prepare, self.target, self.weights)(table)

    def _fitted(self, prepare: Any, random_state: int) -> TablePreparation | None:
        made = preparation_of(prepare)
        if made is None or hasattr(made, "plan_"):
            return made
        sample = sampled_table(self.tables(), SAMPLED, random_state)
        learnt: TablePreparation = clone(made).fit(sample.drop(*self._beside))
        return learnt


@dataclass(frozen=True, eq=False)
class TableRows:
    """Makes rows, targets and weights of a table.

    Attributes
    ----------
    prepare : TablePreparation or None
        Fitted; None where all columns are numbers.
    target, weights : str or None
        Names of columns.
    """

    prepare: TablePreparation | None
    target: str | None
    weights: str | None

    def __call__(self, table: Table) -> tuple[Any, Any, Any]:
        """Take targets and weights off, and make numbers of the rest."""
        y = None if self.target is None else table[self.target]
        weights = None if self.weights is None else table[self.weights]
        rows = table.drop(*(name for name in (self.target, self.weights) if name is not None))
        return (rows.matrix() if self.prepare is None else self.prepare.transform(rows)), y, weights


def preparation_of(prepare: Any) -> TablePreparation | None:
    """Return the preparation that is asked for, fitted or not; None for none."""
    if prepare is None or prepare is False:
        return None
    made = TablePreparation() if prepare is True else prepare
    if not isinstance(made, TablePreparation):
        raise TypeError(f"prepare={prepare!r} must be a TablePreparation, True or None")
    return made


def listed(files: Any) -> list[Any]:
    """Return paths as a list; what can be read only once is refused."""
    if isinstance(files, str | os.PathLike):
        files = [files]
    if hasattr(files, "read") or not isinstance(files, Iterable):
        raise TypeError("FileBlocks reads files again and again: give paths, not streams")
    found: list[Any] = list(files)
    if not found:
        raise ValueError("FileBlocks: no files")
    for file in found:
        if not isinstance(file, str | os.PathLike) or file == "-":
            raise TypeError(f"FileBlocks reads files again and again: {file!r:.60} is no path")
    return found


def read_head(
    file: Any,
    format: str | None,
    kinds: Mapping[str, Any] | None,
    columns: list[str] | None,
    **reader: Any,
) -> Table:
    """Return the first rows of a file as a table, for what the columns hold."""
    most = min(_HEAD, max(1 << 16, memory_budget() // _HEAD_SHARE))
    with opened(file, _FILES_NO_LIMITS) as data:
        found = format_of(data, format)
        if found == "parquet":
            return Table.of(parquet_head(data, columns), kinds=kinds, columns=columns)
        if os.fspath(file).endswith(".npy"):
            return read(npy_part(file, 0, _NPY_HEAD), format=found, kinds=kinds, columns=columns)
        if found == "npz":
            return read(file, format=found, kinds=kinds, columns=columns)
        pieces, size = [], 0
        while size < most and (piece := data.take()):
            pieces.append(piece)
            size += len(piece)
        content, rest = b"".join(pieces), data.take()
    if rest:  # the last line is not whole
        content = content[: content.rfind(b"\n") + 1] or content
    beginning: Any = io.BytesIO(content)
    beginning.name = os.fspath(file)  # for errors
    return read(beginning, format=found, kinds=kinds, columns=columns, **reader)


def npy_part(file: Any, first: int, last: int) -> Any:
    """Return some rows of an array in a file, as a file of their own in memory."""
    content: Any = io.BytesIO()
    np.save(content, np.load(file, mmap_mode="r")[first:last])
    content.seek(0)
    content.name = os.fspath(file)  # for errors
    return content


def sampled_table(tables: Iterable[Table], count: int, random_state: int) -> Table:
    """Return rows drawn at random in one pass, without replacement, in their order.

    Every row draws a number; those of the smallest numbers are kept.
    """
    rng = np.random.default_rng(random_state)
    kept: Table | None = None
    numbers: Array = np.empty(0)
    for table in tables:
        drawn = rng.random(len(table))
        near = drawn < (numbers.max() if len(numbers) >= count else 1.0)
        part, drawn = table.rows(near), drawn[near]
        kept = part if kept is None else kept.below(part)
        numbers = np.concatenate([numbers, drawn])
        if len(numbers) > count:
            chosen = np.sort(np.argpartition(numbers, count)[:count])
            kept, numbers = kept.rows(chosen), numbers[chosen]
    if kept is None:
        raise ValueError("the files have no rows")
    return kept
