"""Read a file into a table, whole or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mercer.data.errors import Limits
from mercer.data.kinds import MISSING, kind_named
from mercer.data.reading.arff import arff_blocks, read_arff
from mercer.data.reading.columns import cut
from mercer.data.reading.delimited import DelimitedFile
from mercer.data.reading.json_lines import json_line_blocks, read_json_lines
from mercer.data.reading.libsvm import libsvm_blocks, read_libsvm
from mercer.data.reading.npz import read_npz
from mercer.data.reading.parquet import parquet_blocks, read_parquet
from mercer.data.reading.source import ReadOptions, format_of, opened
from mercer.data.table import Schema, Table

_LIMITS = Limits()
_NO_LIMITS = Limits(bytes=None, rows=None)  # a block is in memory at a time
_READERS = {
    "parquet": read_parquet,
    "jsonl": read_json_lines,
    "arff": read_arff,
    "libsvm": read_libsvm,
    "npz": read_npz,
}


def read(
    source: Any,
    *,
    format: str | None = None,
    kinds: Mapping[str, Any] | None = None,
    columns: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    missing: Sequence[str] = MISSING,
    limits: Limits = _LIMITS,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    decimal: str = ".",
    parser: str = "auto",
) -> Table:
    r"""Read a file into a table.

    Parameters
    ----------
    source : path, "-" or binary stream
        CSV, TSV, Parquet, JSON lines, ARFF, LIBSVM text or npz; "-" is standard input. Compression
        by gzip, bzip2, xz or zstd is detected.
    format : str, optional
        "csv", "tsv", "parquet", "jsonl", "arff", "libsvm" or "npz". If None, determined from the
        file name or content.
    kinds : mapping of str to Kind or str, optional
        Kinds of some columns. Replaces the inferred kinds. Categories, texts and identifiers then
        keep the words of the file: "007" is not 7.
    columns : sequence of str, optional
        Columns to keep.
    names : sequence of str, optional
        Names of all columns of a delimited text. Replaces the names in the file.
    missing : sequence of str
        Markers of missing values.
    limits : Limits
        Maximum sizes of the file.
    encoding : str, optional
        Text encoding. If None, UTF-8.
    delimiter : str, optional
        Delimiter of a text. If None, tab, semicolon, bar, comma or blanks, whichever divides all
        lines into the same number of fields.
    header : bool, optional
        Whether the first line contains names. If None, True unless a field is a number or a date.
    decimal : {".", ","}
        Decimal separator.
    parser : {"auto", "mercer", "pyarrow"}
        Parser of delimited text. "auto" uses pyarrow if installed. The result is the same.

    Returns
    -------
    Table
        The table. Print it for names, kinds and missing values.

    Raises
    ------
    DataError
        If the file is invalid; names file, line and column.

    Examples
    --------
    >>> import io
    >>> from mercer.data import read
    >>> print(read(io.BytesIO(b"age,town\n31,Ulm\n?,Bern\n52,Ulm\n")))
    3 rows, 2 columns
    name  kind    missing  distinct  example
    age   number        1         2  31
    town  binary        0         2  Ulm
    """
    asked = {name: kind_named(kind) for name, kind in (kinds or {}).items()}
    options = ReadOptions(
        columns, names, asked, tuple(missing), limits, encoding, delimiter, header, decimal, parser
    )
    with opened(source, limits) as data:
        found = format_of(data, format)
        if found in _READERS:
            return _READERS[found](data, options)
        return DelimitedFile(data, options, "\t" if found == "tsv" else None).table()


def read_blocks(
    source: Any,
    schema: Schema,
    rows: int = 65536,
    *,
    format: str | None = None,
    limits: Limits = _NO_LIMITS,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    parser: str = "auto",
) -> Iterator[Table]:
    r"""Read a file block by block with the columns of a schema.

    For predictions on files of any size. Names, kinds, markers of missing values and the decimal
    separator are those of the training table. Other columns are ignored.

    Parameters
    ----------
    source : path, "-" or binary stream
        See `read`. All formats are streamed except npz, whose directory is at the end of the file.
    schema : Schema
        Schema of the training table without the target: ``table.drop("y").schema``.
    rows : int
        Maximum number of rows per block.
    format, limits, encoding, delimiter, header, parser
        See `read`. By default, bytes and rows are unlimited.

    Yields
    ------
    Table

    Examples
    --------
    >>> import io
    >>> from mercer.data import read, read_blocks
    >>> text = b"age,town\n31,Ulm\n40,Bern\n52,Ulm\n"
    >>> schema = read(io.BytesIO(text)).schema
    >>> [len(block) for block in read_blocks(io.BytesIO(text), schema, rows=2)]
    [2, 1]
    """
    if not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows={rows!r} must be an integer of at least 1")
    options = ReadOptions(
        missing=schema.missing, limits=limits, encoding=encoding, delimiter=delimiter,
        header=header, decimal=schema.decimal, parser=parser,
    )  # fmt: skip
    with opened(source, limits) as data:
        found = format_of(data, format)
        plain = replace(options, decimal=".")
        if found == "parquet":
            yield from parquet_blocks(data, schema, rows, plain)
        elif found == "jsonl":
            yield from json_line_blocks(data, schema, rows, plain)
        elif found == "arff":
            yield from arff_blocks(data, schema, rows, plain)
        elif found == "libsvm":
            yield from libsvm_blocks(data, schema, rows, plain)
        elif found == "npz":
            yield from cut(read_npz(data, plain), schema, rows)
        else:
            file = DelimitedFile(data, options, "\t" if found == "tsv" else None)
            for table in file.blocks(schema):
                for start in range(0, len(table), rows):
                    yield table.rows(slice(start, start + rows))
