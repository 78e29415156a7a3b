"""Parquet, by pyarrow or polars."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mercer.data.column import Column
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.reading.cells import pyarrow
from mercer.data.reading.columns import cut, finished, inferred, known, refuse_lacking
from mercer.data.reading.source import Bytes, ReadOptions
from mercer.data.table import Schema, Table, columns_in, refuse_twins, refuse_unknown

_HEAD = 10_000  # rows that kinds of columns are inferred from
_BUFFER = 1 << 20  # bytes of a column that are read at a time: whole row groups may be large
_NO_LIMITS = Limits(bytes=None, rows=None)

# --- page headers --------------------------------------------------------------------------------
#
# A reader allocates the size that a page header declares. The footer of the file declares sizes as
# well, but no reader compares the two. Limits are therefore checked against the page headers.
#
# Headers are structs of Thrift's compact protocol.

_BYTE, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 5, 6, 7, 8, 9, 10, 11, 12
_VALUES = {1: _I32}
_PAGE = {2: _I32, 3: _I32, 5: _VALUES, 7: _VALUES, 8: _VALUES}
_CHUNK = {3: {3: [_BINARY], 7: _I64, 9: _I64, 11: _I64}}
_FOOTER = {3: _I64, 4: [{1: [_CHUNK], 2: _I64, 3: _I64}]}
_MAGIC = 8  # bytes at the end of a file: the length of the footer, and PAR1
_SHORT, _LONG = 1 << 9, 1 << 24  # bytes of a page header: most, and the longest that is read
_AT_ONCE = 1 << 14  # rows that are decoded at a time
_ROOM = 64 << 20  # bytes that they may have
_CELL = 8  # bytes of a number, and of a reference to a word

ReadAt = Callable[[int, int], bytes]
"""Returns bytes of a file: from where, and how many."""


def decoded_size(read: ReadAt, chunks: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the bytes that column chunks decode to, and those of the largest page.

    No entry is longer than the largest page.

    Parameters
    ----------
    read : callable
        Reads the file.
    chunks : list of (start, length)
        Where the column chunks are.
    """
    pages = values = largest = 0
    for start, length in chunks:
        at = start if start > 0 else length  # a chunk without entries has no place
        while at < start + length:
            header, held = _page_header(read, at)
            counts = [header.get(kind, {}).get(1, 0) for kind in (5, 7, 8)]
            if min(header[2], header[3], *counts) < 0:
                raise ValueError("a page has a negative size")
            pages, largest = pages + header[2], max(largest, header[2])
            values += max(counts)
            at += held + header[3]
    return max(pages, _CELL * values), largest


def _page_header(read: ReadAt, at: int) -> tuple[dict[int, Any], int]:
    """Return sizes and counts of a page, and the length of its header."""
    size = _SHORT
    while True:
        data = read(at, size)
        try:
            return _struct(data, 0, _PAGE)
        except IndexError:
            if len(data) < size or size >= _LONG:
                raise ValueError("a page header is cut short or too long") from None
            size <<= 5
        except RecursionError:
            raise ValueError("a page header is not of Parquet") from None


def _struct(data: bytes, at: int, wanted: Any) -> tuple[dict[int, Any], int]:
    """Return the wanted fields of a struct, and where it ends."""
    found: dict[int, Any] = {}
    field = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            number, at = _varint(data, at)
            field = _signed(number, 16)
        # a truth value is in the type of its field
        if head & 15 > 2:
            value, at = _value(data, at, head & 15, wanted.get(field))
            if value is not None:  # parts of a struct that comes twice are one
                found[field] = {**found.get(field, {}), **value} if head & 15 == _STRUCT else value
    return found, at + 1


def _value(data: bytes, at: int, kind: int, wanted: Any) -> tuple[Any, int]:
    """Return a value if it is wanted and of that type, and where it ends."""
    if kind == _STRUCT:
        found, at = _struct(data, at, wanted if isinstance(wanted, dict) else {})
        return (found if isinstance(wanted, dict) else None), at
    if kind in (_LIST, _SET, _MAP):
        return _values(data, at, kind, wanted)
    if kind in (_BYTE, _DOUBLE):
        return None, at + (1 if kind == _BYTE else 8)
    if not 0 < kind < _STRUCT:
        raise ValueError("a value has an unknown type")
    number, at = _varint(data, at)
    if kind == _BINARY:
        return (data[at : at + number] if wanted == _BINARY else None), at + number
    return (_signed(number, 32 if kind == _I32 else 64) if kind == wanted else None), at


def _values(data: bytes, at: int, kind: int, wanted: Any) -> tuple[Any, int]:
    """Return the entries of a list if they are wanted, and where it ends."""
    if kind == _MAP:
        count, at = _varint(data, at)
        kinds = [data[at] >> 4, data[at] & 15] if count else []
        at += bool(count)
    else:
        count, kinds = data[at] >> 4, [data[at] & 15]
        at += 1
        if count == 15:
            count, at = _varint(data, at)
    inner = wanted[0] if kind == _LIST and isinstance(wanted, list) else None
    found = []
    for _ in range(count):
        for one in kinds:
            value, at = _value(data, at, _BYTE if one <= 2 else one, inner)
            if inner is not None:
                found.append(value)
        data[at - 1]  # a count may be anything: end with the data
    return (None if inner is None else found), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
        if shift > 63:
            raise ValueError("an integer is too long")


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return (value >> 1) ^ -(value & 1)


@dataclass(frozen=True)
class RowGroup:
    """Rows of a row group, its bytes, and name, start and length of its column chunks."""

    rows: int
    size: int
    chunks: list[tuple[str, int, int]]


def row_groups(read: ReadAt, size: int) -> list[RowGroup]:
    """Return the row groups that the footer of a file of so many bytes declares.

    The footer is read here because pyarrow ends the process for some broken ones.
    """
    length = int.from_bytes(read(max(0, size - _MAGIC), 4), "little")
    if not 0 < length <= size - _MAGIC:
        raise ValueError("the footer is cut short")
    try:
        footer, _ = _struct(read(size - _MAGIC - length, length), 0, _FOOTER)
        found = [
            RowGroup(group[3], group[2], [_placed(chunk[3]) for chunk in group[1]])
            for group in footer.get(4, [])
        ]
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError("the footer is not of Parquet") from error
    chunks = [chunk for group in found for chunk in group.chunks]
    inside = all(min(start, length) >= 0 for _, start, length in chunks)
    if not inside or sum(length for _, _, length in chunks) > size:
        raise ValueError("column chunks overlap or lie outside the file")
    return found


def _placed(chunk: dict[int, Any]) -> tuple[str, int, int]:
    """Return where a column chunk is: from its dictionary on, if it has one."""
    start = min(chunk[9], chunk.get(11) or chunk[9])
    return b".".join(chunk[3]).decode(errors="replace"), start, chunk[7]


# --- reading -------------------------------------------------------------------------------------
#
# Rows are decoded in small batches and counted, so that repeated words, which take no space in the
# file, end at a limit before they take memory.


def read_parquet(data: Bytes, options: ReadOptions) -> Table:
    """Read all rows."""
    options.refuse_text_options("Parquet")
    if pyarrow() is None:
        return _by_polars(data.all(), data.name, options)
    tables = list(OpenParquet(data, options.limits).tables(options.columns))
    if not tables:
        raise DataError("the file has no rows", source=data.name)
    frame = pyarrow().concat_tables(tables)
    return finished(_columns(frame, data.name, options), options, data.name, "parquet")


def parquet_blocks(
    data: Bytes, schema: Schema, rows: int, options: ReadOptions, groups: list[int] | None = None
) -> Iterator[Table]:
    """Read rows as the columns of a schema, block by block; of some row groups, or of all.

    Blocks have fewer rows if their entries are long.
    """
    if pyarrow() is None:
        yield from cut(_by_polars(data.all(), data.name, options), schema, rows)
        return
    file = OpenParquet(data, options.limits)
    refuse_lacking(schema, file.names, data.name)
    for block in file.tables(schema.names, groups, rows):
        found = _guarded(partial(columns_in, block, None), data.name)
        arrays = {name: found[name][0] for name in schema.names}
        yield Table(
            {name: known(name, arrays[name], schema, data.name, ()) for name in schema.names},
            source=data.name,
            schema=schema,
        )


def parquet_groups(data: Bytes) -> list[int]:
    """Return the bytes of each row group; none where pyarrow is missing, which reads them apart."""
    if pyarrow() is None:
        return []
    return [group.size for group in OpenParquet(data, _NO_LIMITS).groups]


def parquet_head(data: Bytes, columns: list[str] | None) -> Any:
    """Return the first rows of a file, as pyarrow or polars hold them."""
    if pyarrow() is None:
        return _by_polars(data.all(), data.name, ReadOptions())
    file = OpenParquet(data, _NO_LIMITS)
    rows = np.cumsum([group.rows for group in file.groups])
    groups = range(min(len(rows), 1 + int(np.searchsorted(rows, _HEAD))))
    first = next(file.tables(columns, list(groups), _HEAD), None)
    if first is None or not first.num_rows:
        raise DataError("the file has no rows", source=data.name)
    return first


class OpenParquet:
    """A Parquet file that pyarrow reads where it lies, row group by row group.

    Parameters
    ----------
    data : Bytes
        The file.
    limits : Limits
        Sizes beyond which reading stops.
    """

    def __init__(self, data: Bytes, limits: Limits) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415  optional

        self.source, self.limits = data.name, limits
        self._content = data.file or data.all()
        self.groups = _guarded(self._groups, self.source)
        held = isinstance(self._content, bytes)
        content = pyarrow().BufferReader(self._content) if held else str(self._content)
        self._file = _guarded(lambda: pq.ParquetFile(content, buffer_size=_BUFFER), self.source)
        limits.check("rows", self._file.metadata.num_rows, self.source)
        limits.check("columns", self._file.metadata.num_columns, self.source)
        self.schema = _guarded(lambda: self._file.schema_arrow, self.source)
        self.names: list[str] = self.schema.names
        self._count = 0

    def tables(
        self, columns: Any = None, groups: list[int] | None = None, most: int = _AT_ONCE
    ) -> Iterator[Any]:
        """Yield rows of some columns and row groups, or of all, as pyarrow tables.

        Tables have fewer rows than `most` if these take much memory.
        """
        refuse_twins(self.names, self.source)
        names = self.names if columns is None else list(columns)
        refuse_unknown(names, self.names)
        groups = list(range(len(self.groups))) if groups is None else groups
        at_once = _guarded(partial(self._at_once, names, groups, most), self.source)
        streams = {name: _ColumnStream(self._arrays(name, groups, at_once[name])) for name in names}
        while True:
            for stream in streams.values():
                stream.fill(most, _ROOM // len(names))
            lengths = {stream.rows for stream in streams.values()}
            if len(lengths) > 1 and 0 in lengths:
                raise DataError("columns differ in length", source=self.source)
            if not any(lengths):
                return
            count = min(lengths)
            yield pyarrow().table({name: one.take(count) for name, one in streams.items()})

    def _arrays(self, name: str, groups: list[int], at_once: int) -> Iterator[Any]:
        """Yield the entries of a column, and count their bytes."""
        batches = self._file.iter_batches(
            at_once, row_groups=groups, columns=[name], use_threads=False
        )
        while (batch := _guarded(lambda: next(batches, None), self.source)) is not None:
            array = batch.column(name)
            self._count += _guarded(partial(bytes_of, array), self.source)
            self.limits.check("bytes", self._count, self.source)
            yield array

    def _at_once(self, names: list[str], groups: list[int], most: int) -> dict[str, int]:
        """Return how many rows of each column are decoded at a time."""
        widths = {name: self._width(name) for name in names}
        rows = sum(self.groups[group].rows for group in groups)
        self.limits.check("bytes", sum(max(w, _CELL) for w in widths.values()) * rows, self.source)
        chunks = self._chunks(names, groups)
        with self._opened() as file:
            read = partial(_read_at, file)
            sizes = {name: decoded_size(read, column) for name, column in chunks.items()}
        self.limits.check("bytes", sum(total for total, _ in sizes.values()), self.source)
        room = min(_ROOM, self.limits.bytes or _ROOM)
        longest = {name: max(_CELL, widths[name] or sizes[name][1]) for name in names}
        return {name: max(1, min(_AT_ONCE, most, room // longest[name])) for name in names}

    def _width(self, name: str) -> int:
        """Return the bytes of an entry, or 0 if entries differ in length."""
        types, kind = pyarrow().types, self.schema.field(name).type
        stored = (
            kind.value_type if types.is_dictionary(kind) else getattr(kind, "storage_type", kind)
        )
        if types.is_nested(stored):
            raise DataError(f"holds {kind}; a column holds numbers, words or dates", column=name)
        try:
            bits = int(stored.bit_width)
        except ValueError:
            return 0
        return max(1, bits // 8)

    def _chunks(self, names: list[str], groups: list[int]) -> dict[str, list[tuple[int, int]]]:
        """Return where the column chunks of each column are."""
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
        for group in groups:
            for path, start, length in self.groups[group].chunks:
                parts = path.split(".")
                # pyarrow reads the columns a.b as well if a is asked for
                for end in range(1, len(parts) + 1):
                    found.get(".".join(parts[:end]), []).append((start, length))
        return found

    def _opened(self) -> Any:
        known = self._content
        return io.BytesIO(known) if isinstance(known, bytes) else known.open("rb", buffering=0)

    def _groups(self) -> list[RowGroup]:
        with self._opened() as file:
            return row_groups(partial(_read_at, file), file.seek(0, io.SEEK_END))


class _ColumnStream:
    """Entries of a column that were decoded and not taken yet."""

    def __init__(self, arrays: Iterator[Any]) -> None:
        self.arrays, self.held = arrays, list[Any]()
        self.rows = self.size = 0

    def fill(self, rows: int, room: int) -> None:
        """Decode more, up to so many rows or about so many bytes."""
        while self.rows < rows and self.size < room:
            array = next(self.arrays, None)
            if array is None:
                return
            self.held.append(array)
            self.rows, self.size = self.rows + len(array), self.size + bytes_of(array)

    def take(self, count: int) -> Any:
        """Return the first entries."""
        column = pyarrow().chunked_array(self.held)
        found, rest = column.slice(0, count), column.slice(count)
        self.held = rest.chunks
        self.rows, self.size = len(rest), sum(map(bytes_of, rest.chunks))
        return found


def _read_at(file: Any, at: int, size: int) -> bytes:
    file.seek(at)
    found: bytes = file.read(size)
    return found


def bytes_of(column: Any) -> int:
    """Return the bytes of entries, each word as often as it comes."""
    if pyarrow().types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return max(int(column.nbytes), _CELL * len(column))


def _guarded(work: Any, source: str) -> Any:
    """Do something with a file that may be broken in any way."""
    broken: tuple[type[Exception], ...] = (OSError, ValueError, KeyError, OverflowError)
    if pyarrow() is not None:
        broken += (pyarrow().ArrowException,)
    try:
        return work()
    except DataError as error:
        raise error.at(source) from None
    except MemoryError:  # pyarrow's is one of its own errors as well
        raise
    except broken as error:
        raise DataError(
            f"the Parquet file is broken, or of an unknown kind ({shorten(str(error), 120)})",
            source=source,
        ) from error


def _columns(frame: Any, source: str, options: ReadOptions) -> dict[str, Column]:
    found = _guarded(lambda: columns_in(frame, None), source)
    return {
        name: inferred(name, values, options.kinds.get(name, kind), source, decimal="")
        for name, (values, kind) in found.items()
    }


def _by_polars(content: bytes, source: str, options: ReadOptions) -> Table:
    try:
        import polars  # noqa: PLC0415  optional
    except ImportError as missing:
        raise DataError(
            'Parquet needs pyarrow: pip install "mercer[tables]"', source=source
        ) from missing
    read_at = partial(_read_at, io.BytesIO(content))
    groups = _guarded(lambda: row_groups(read_at, len(content)), source)
    options.limits.check("rows", sum(group.rows for group in groups), source)
    chunks = [chunk[1:] for group in groups for chunk in group.chunks]
    size = _guarded(lambda: decoded_size(read_at, chunks), source)[0]
    options.limits.check("bytes", size, source)
    try:
        frame = polars.read_parquet(io.BytesIO(content))
        words = frame.select(polars.col(polars.String, polars.Categorical, polars.Enum))
        lengths = words.select(polars.all().cast(polars.String).str.len_bytes().sum())
    except Exception as error:  # polars has no one class for what its readers raise
        raise DataError(
            f"the Parquet file is broken ({shorten(str(error), 120)})", source=source
        ) from error
    options.limits.check("bytes", sum(map(sum, lengths.rows())), source)
    return finished(_columns(frame, source, options), options, source, "parquet")
