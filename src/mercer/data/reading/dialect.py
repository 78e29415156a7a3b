"""How a delimited text is written: delimiter, header, decimal point."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mercer.data.cells import date_of, has_decimal_comma, number_of

SAMPLE = 1 << 16  # bytes that the way of writing is told from
_RECORDS = 200  # lines of them
# in this order: a text with tabs has commas inside its fields, or as decimal points
_DELIMITERS = ("\t", ";", "|", ",", " ")


@dataclass(frozen=True)
class Dialect:
    r"""How a delimited text is written.

    Attributes
    ----------
    delimiter : str
        Between fields; a blank stands for one or more of them.
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
    """Tell from the beginning of a text how it is written; what is given is not guessed.

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
    """Cut lines into fields, up to what cannot be cut; quoted fields may have several lines."""
    records = []
    with suppress(csv.Error):  # the reader of all records says where and what
        for record in reader_of(lines, delimiter, strict=False):
            if record:
                records.append(record)
    return records


def reader_of(lines: Iterable[str], delimiter: str, *, strict: bool = True) -> Any:
    """Return a reader of quoted fields; blanks around fields are no part of them."""
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
