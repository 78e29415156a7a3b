"""Rows of a request: JSON, JSON lines or CSV, read by the schema of the training table."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

from mercer.data import DataError, Limits, Schema, Table, read_blocks
from mercer.data.reading.source import MAGIC
from mercer.serve.limits import ServeLimits

_FORMATS = {"application/json": "jsonl", "application/x-ndjson": "jsonl", "text/csv": "csv"}


class TooManyRowsError(ValueError):
    """More rows than a request may have."""


def tables_of(body: bytes, kind: str, schema: Schema, limits: ServeLimits) -> Iterator[Table]:
    """Yield the rows of a request, block by block.

    Parameters
    ----------
    body : bytes
        What was sent.
    kind : str
        Its type: "application/json", "application/x-ndjson" or "text/csv".
    schema : Schema
        Of the training table, without the target.
    limits : ServeLimits
        How many rows are taken.

    Yields
    ------
    Table
        Rows with the columns of the schema.
    """
    if body.startswith(tuple(MAGIC)):
        raise DataError("compressed requests are not taken")
    if kind == "application/json":
        body = _lines(body, limits.rows)
    read = Limits(bytes=len(body) + 1, rows=limits.rows, line=len(body) + 1)
    count = 0
    blocks = read_blocks(io.BytesIO(body), schema, format=_FORMATS[kind], limits=read)
    for table in blocks:
        count += len(table)
        if count > limits.rows:
            raise TooManyRowsError(f"a request may have {limits.rows} rows at most")
        yield table


def _lines(body: bytes, most: int) -> bytes:
    """Write ``{"rows": [{...}, ...]}``, or the list alone, as a line for each row."""
    try:
        found: Any = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the request is no JSON: {str(error)[:200]}") from error
    if isinstance(found, dict):
        if found.keys() != {"rows"}:
            raise DataError('the request must be {"rows": [{"column": value, ...}, ...]}')
        found = found["rows"]
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise DataError('the request must be {"rows": [{"column": value, ...}, ...]}')
    if len(found) > most:
        raise TooManyRowsError(f"a request may have {most} rows at most")
    if not found:
        raise DataError("the request has no rows")
    return "\n".join(json.dumps(row) for row in found).encode()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number; write null where a value is missing")
