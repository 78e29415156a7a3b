"""Tables of the command line: options of the readers, columns by name, standard input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from mercer.command.streams import standard_input
from mercer.command.text import did_you_mean
from mercer.command.values import pairs

if TYPE_CHECKING:
    from mercer.data import Schema, Table

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
        help="number, category, binary, text, date or identifier. May be repeated.",
    ),
    click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="A further entry that means none, beside ?, NA and blanks. May be repeated.",
    ),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Leave a column out; repeatable."),
    click.option("--delimiter", metavar="SIGN", help="Of CSV; by default what the lines say."),
    click.option("--no-header", is_flag=True, help="The first line has no names."),
    click.option("--decimal", type=click.Choice([".", ","]), help="The decimal point."),
]


def reading(function: Any) -> Any:
    """Add the options of the readers; `read_arguments` picks them out."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.data.read` that are not its defaults."""
    found = {name: options[name] for name in ("format", "delimiter", "decimal")}
    found["kinds"] = pairs(options["kind"], "--kind")
    found["header"] = False if options["no_header"] else None
    if options["missing"]:
        from mercer.data.cells import MISSING  # noqa: PLC0415  help needs none of it

        found["missing"] = (*MISSING, *options["missing"])
    return {name: value for name, value in found.items() if value not in (None, {})}


def read_table(source: str, drop: Iterable[str] = (), **arguments: Any) -> Table:
    """Read a table; `-` is standard input."""
    from mercer.data import read  # noqa: PLC0415  help needs none of it

    table = read(standard_input() if source == "-" else source, **arguments)
    for name in drop:
        table = table.drop(column_of(table.columns, name, "--drop"))
    return table


def read_like(source: str, schema: Schema, target: str) -> Table:
    """Read rows of the kinds that a model knows, and its target."""
    kinds = {name: kind for name, kind in schema.kinds.items() if name != target}
    stream = standard_input() if source == "-" else source
    from mercer.data import read  # noqa: PLC0415  help needs none of it

    table = read(stream, missing=schema.missing, decimal=schema.decimal)
    lacking = [name for name in kinds if name not in table.columns]
    if lacking:
        raise ValueError(
            f"{source}: there is no column {lacking[0]!r}, which the model needs; "
            f"{did_you_mean(lacking[0], table.columns)}"
        )
    names = [*kinds, *([target] if target in table.columns else [])]
    found: Table = table[names].with_kinds(kinds)
    return found


def column_of(columns: Iterable[str], name: str, option: str) -> str:
    """Return a name that is one of the columns; one that is not is wrong use."""
    names = list(columns)
    if name not in names:
        raise click.UsageError(f"{option} {name!r} is no column; {did_you_mean(name, names)}")
    return name
