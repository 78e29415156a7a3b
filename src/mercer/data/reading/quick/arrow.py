"""The quick way through a piece of delimited text: pyarrow, where it is installed.

It reads the easy cases, which are nearly all: no quotes, no number in an odd spelling. Whatever it
refuses, and whatever it might see differently, goes the way of `chunks` and `convert`, so that a
file is the same table with and without pyarrow.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data.column import Parsed
from mercer.data.limits import Limits
from mercer.data.reading.chunks import Chunk
from mercer.data.reading.convert import Cells

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
    if chunk.quoted or not cells.plain or _has_long_line(chunk.data, limits.field):
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


def _has_long_line(data: bytes, most: int) -> bool:
    start = 0
    while start + most < len(data):
        end = data.rfind(b"\n", start, start + most + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def arrow_columns(
    chunk: Chunk, names: Sequence[str], parsed: Mapping[str, Parsed], cells: Cells, delimiter: str
) -> dict[str, Array] | None:
    """Return columns of a piece as numbers or words; nothing if it is none of the easy cases.

    Parameters
    ----------
    chunk : Chunk
        Whole records.
    names : sequence of str
        Of all columns.
    parsed : mapping
        The columns that are wanted, and what they are read as.
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
                delimiter=delimiter, quote_char=False, newlines_in_values=False
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
        values = _numbers(column) if what == "number" else _words(column, cells)
        if values is None:
            return None
        found[name] = values
    return found


def _numbers(column: Any) -> Array | None:
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
