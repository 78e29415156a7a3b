"""Parquet, by pyarrow or polars."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import partial
from typing import Any

from mercer.data.column import Column
from mercer.data.errors import DataError, Limits, shorten
from mercer.data.reading.cells import pyarrow
from mercer.data.reading.columns import cut, finished, inferred, known, refuse_lacking
from mercer.data.reading.source import Bytes, ReadOptions
from mercer.data.table import Schema, Table, columns_in

_HEAD = 10_000  # rows that kinds of columns are inferred from
_BUFFER = 1 << 20  # bytes of a column that are read at a time: whole row groups may be large


def read_parquet(data: Bytes, options: ReadOptions) -> Table:
    """Read all rows."""
    options.refuse_text_options("Parquet")
    if pyarrow() is None:
        return _by_polars(data.all(), data.name, options)
    file = _opened(data, options)
    columns = list(options.columns) if options.columns is not None else None
    frame = _guarded(lambda: file.read(columns=columns), data.name)
    return finished(_columns(frame, data.name, options), options, data.name, "parquet")


def parquet_blocks(
    data: Bytes, schema: Schema, rows: int, options: ReadOptions, groups: list[int] | None = None
) -> Iterator[Table]:
    """Read rows as the columns of a schema, block by block; of some row groups, or of all."""
    if pyarrow() is None:
        yield from cut(_by_polars(data.all(), data.name, options), schema, rows)
        return
    file = _opened(data, options)
    refuse_lacking(schema, file.schema_arrow.names, data.name)
    batches = file.iter_batches(batch_size=rows, columns=schema.names, row_groups=groups)
    while (batch := _guarded(lambda: next(batches, None), data.name)) is not None:
        found = _guarded(partial(columns_in, batch, None), data.name)
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
    shape = _opened(data, ReadOptions(limits=Limits(bytes=None, rows=None))).metadata
    return [shape.row_group(k).total_byte_size for k in range(shape.num_row_groups)]


def parquet_head(data: Bytes, columns: list[str] | None) -> Any:
    """Return the first rows of a file, as pyarrow or polars hold them."""
    if pyarrow() is None:
        return _by_polars(data.all(), data.name, ReadOptions())
    file = _opened(data, ReadOptions(limits=Limits(bytes=None, rows=None)))
    batches = file.iter_batches(batch_size=_HEAD, columns=columns)
    first = _guarded(lambda: next(batches, None), data.name)
    if first is None or not first.num_rows:
        raise DataError("the file has no rows", source=data.name)
    return first


def _opened(data: Bytes, options: ReadOptions) -> Any:
    """Open a file where it lies, so that row groups are read as they are asked for."""
    import pyarrow.parquet as pq  # noqa: PLC0415  optional

    source, path = data.name, data.file
    content = pyarrow().BufferReader(data.all()) if path is None else str(path)
    file = _guarded(lambda: pq.ParquetFile(content, buffer_size=_BUFFER), source)
    shape = file.metadata
    options.limits.check("rows", shape.num_rows, source)
    options.limits.check("columns", shape.num_columns, source)
    groups = [shape.row_group(k).total_byte_size for k in range(shape.num_row_groups)]
    options.limits.check("bytes", max(sum(groups), 0), source)
    return file


def _guarded(work: Any, source: str) -> Any:
    """Do something with a file that may be broken in any way."""
    broken: tuple[type[Exception], ...] = (OSError, ValueError, KeyError, OverflowError)
    if pyarrow() is not None:
        broken += (pyarrow().ArrowException,)
    try:
        return work()
    except DataError as error:
        raise error.at(source) from None
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
    try:
        frame = polars.read_parquet(io.BytesIO(content))
    except Exception as error:  # polars has no one class for what its readers raise
        raise DataError(
            f"the Parquet file is broken ({shorten(str(error), 120)})", source=source
        ) from error
    return finished(_columns(frame, source, options), options, source, "parquet")
