"""Read a file into a table, whole or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mercer.data.cells import MISSING
from mercer.data.kinds import kind_named
from mercer.data.limits import Limits
from mercer.data.reading.delimited import DelimitedFile, Options
from mercer.data.reading.source import opened
from mercer.data.schema import Schema
from mercer.data.table import Table

_LIMITS = Limits()


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
    """Read a file into a table."""
    options = Options(
        columns, names, {n: kind_named(k) for n, k in (kinds or {}).items()}, tuple(missing),
        limits, encoding, delimiter, header, decimal, parser,
    )  # fmt: skip
    with opened(source, limits) as data:
        return DelimitedFile(data, options).table()


def read_blocks(
    source: Any, schema: Schema, rows: int = 65536, *, limits: Limits = _LIMITS
) -> Iterator[Table]:
    """Read a file block by block."""
    options = Options(None, None, {}, schema.missing, limits, None, None, None, schema.decimal, "")
    with opened(source, limits) as data:
        for table in DelimitedFile(data, options).blocks(schema):
            for start in range(0, len(table), rows):
                yield table.rows(slice(start, start + rows))
