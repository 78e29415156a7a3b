"""Read tables for the commands: options of the readers, column names, standard input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from mercer.command.terminal import did_you_mean, standard_input

if TYPE_CHECKING:
    from mercer.data import Table
    from mercer.fitting import TableModel


TARGET, GROUP = "target", "qid"  # columns of LIBSVM data
FORMATS = (
    "csv",
    "tsv",
    "parquet",
    "jsonl",
    "arff",
    "libsvm",
    "npz",
)  # repeated here so that help imports no reader
DATA = click.argument("data", type=click.Path(allow_dash=True))

_OPTIONS = [
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        metavar="NAME",
        help=f"Input format: {', '.join(FORMATS)}; default: detected.",
    ),
    click.option(
        "--kind",
        metavar="COLUMN=KIND",
        multiple=True,
        help="Kind: number, category, binary, text, date or identifier; repeatable.",
    ),
    click.option(
        "--missing",
        metavar="TEXT",
        multiple=True,
        help="Another missing-value marker, in addition to ?, NA and blanks; repeatable.",
    ),
    click.option("--drop", metavar="COLUMN", multiple=True, help="Ignore a column; repeatable."),
    click.option("--delimiter", metavar="SIGN", help="CSV delimiter; default: detected."),
    click.option("--no-header", is_flag=True, help="Read the first line as data."),
    click.option("--decimal", type=click.Choice([".", ","]), help="Decimal separator."),
]


_NAMES = ("format", "kind", "missing", "drop", "delimiter", "no_header", "decimal")
_OF_THE_FILE = (
    "format",
    "delimiter",
    "no_header",
)  # kinds, missing values and decimals come from the model


def reading_rows(function: Any) -> Any:
    """Add the options for reading new rows."""
    for option, name in zip(reversed(_OPTIONS), reversed(_NAMES), strict=True):
        function = option(function) if name in _OF_THE_FILE else function
    return function


def row_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.data.read_blocks` that differ from the defaults."""
    found = {name: options[name] for name in ("format", "delimiter")}
    found["header"] = False if options["no_header"] else None
    return {name: value for name, value in found.items() if value is not None}


def reading(function: Any) -> Any:
    """Add the options of the readers; `read_arguments` returns their values."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.data.read` that differ from the defaults."""
    found = {name: options[name] for name in ("format", "delimiter", "decimal")}
    found["kinds"] = kinds_of(options)
    found["header"] = False if options["no_header"] else None
    if options["missing"]:
        from mercer.data.kinds import MISSING  # noqa: PLC0415  help needs none of it

        found["missing"] = (*MISSING, *options["missing"])
    return {name: value for name, value in found.items() if value not in (None, {})}


def kinds_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the requested column kinds. Raise a usage error for an unknown kind."""
    found = pairs(options["kind"], "--kind")
    if found:
        from mercer.data import Kind  # noqa: PLC0415  help needs none of it

        known = [kind.value for kind in Kind]
        for name, kind in found.items():
            if kind.lower() not in known:
                entry, hint = f"{name}={kind}", did_you_mean(kind, known)
                raise click.UsageError(f"--kind {entry!r}: unknown kind {kind!r}; {hint}")
    return found


def read_table(source: str, drop: Iterable[str] = (), **arguments: Any) -> Table:
    """Read a table; `-` is standard input."""
    from mercer.data import read  # noqa: PLC0415  help needs none of it

    try:
        table = read(standard_input() if source == "-" else source, **arguments)
    except KeyError as error:  # a column that does not exist
        kinds = arguments.get("kinds", {}).values()
        if not any(isinstance(kind, str) for kind in kinds):  # kinds of a model are not strings
            raise
        raise click.UsageError(f"--kind: {error.args[0]}") from error
    for name in drop:
        table = table.drop(column_of(table.columns, name, "--drop"))
    return table


def read_or_large(source: str, **arguments: Any) -> Any:
    """Read a table. Return a `LargeFile` if it exceeds the memory budget."""
    from mercer.fitting.rows import LargeFile, exceeds_memory  # noqa: PLC0415

    if source != "-" and exceeds_memory(source):
        return LargeFile(source, **arguments)
    return read_table(source, **arguments)


def read_labelled(source: str, model: TableModel, **arguments: Any) -> Table:
    """Read labeled rows with the column kinds of a model."""
    from mercer.data import Kind, read_blocks  # noqa: PLC0415  help needs none of it

    words = any(isinstance(label, str) for label in model.classes)
    known, kind = model.schema.without_identifiers(), Kind.CATEGORY if words else Kind.NUMBER
    schema = known.with_columns(
        known.kinds | {model.target: kind},
        known.parsed | {model.target: "word" if words else "number"},
    )
    stream = standard_input() if source == "-" else source
    blocks = list(read_blocks(stream, schema, **arguments))
    if not blocks:
        raise ValueError(f"{source}: the table has no rows")
    return reduce(lambda above, rows: above.below(rows), blocks)


def column_of(columns: Iterable[str], name: str, option: str) -> str:
    """Return a column name. Raise a usage error if the column does not exist."""
    names = list(columns)
    if name not in names:
        raise click.UsageError(f"{option}: no column {name!r}; {did_you_mean(name, names)}")
    return name


def pairs(entries: Iterable[str], option: str) -> dict[str, str]:
    """Parse `name=value` texts. The last `=` separates, so names can contain `=`.

    Examples
    --------
    >>> pairs(["zip=category", "a=b=text"], "--kind")
    {'zip': 'category', 'a=b': 'text'}
    """
    found = {}
    for entry in entries:
        name, sign, value = entry.rpartition("=")
        if not sign or not name or not value:
            raise click.UsageError(f"{option} {entry!r} must be NAME=VALUE")
        found[name] = value
    return found
