"""Tables of the command line: options of the readers, columns by name, standard input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from mercer.command.streams import standard_input
from mercer.command.text import did_you_mean
from mercer.command.values import pairs

if TYPE_CHECKING:
    from mercer.data import Table

DATA = click.argument("data", type=click.Path(allow_dash=True))

_OPTIONS = [
    click.option(
        "--format",
        metavar="NAME",
        help="csv, tsv, parquet, jsonl, arff, libsvm or npz; by default what name and content say.",
    ),
    click.option(
        "--kind",
        metavar="COLUMN=KIND",
        multiple=True,
        help="number, category, binary, text, date or identifier; may be repeated.",
    ),
    click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="An entry that means there is none, beside ?, NA and blanks; may be repeated.",
    ),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Leave a column out; repeatable."),
]


def reading(function: Any) -> Any:
    """Add the options of the readers: pass them on to `read_table` as they come."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_table(
    source: str,
    *,
    format: str | None = None,
    kind: Iterable[str] = (),
    missing: Iterable[str] = (),
    drop: Iterable[str] = (),
) -> Table:
    """Read a table as the options say; `-` is standard input."""
    from mercer.data import read  # noqa: PLC0415  imported by commands that run

    table = read(
        standard_input() if source == "-" else source,
        format=format,
        kinds=pairs(kind, "--kind") or None,
        **missing_option(missing),
    )
    for name in drop:
        table = table.drop(column_of(table.columns, name, "--drop"))
    return table


def missing_option(missing: Iterable[str]) -> dict[str, Any]:
    """Return the argument `missing` of the readers, where texts were named."""
    from mercer.data import MISSING  # noqa: PLC0415

    more = tuple(missing)
    return {"missing": (*MISSING, *more)} if more else {}


def column_of(columns: Iterable[str], name: str, option: str) -> str:
    """Return a name that is one of the columns; one that is not is wrong use."""
    names = list(columns)
    if name not in names:
        raise click.UsageError(f"{option} {name!r} is no column; {did_you_mean(name, names)}")
    return name
