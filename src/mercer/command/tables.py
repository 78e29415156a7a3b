"""Tables of the command line: options of the readers, columns by name, standard input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from mercer.command.terminal import did_you_mean, standard_input

if TYPE_CHECKING:
    from mercer.data import Table
    from mercer.fitting import TableModel


TARGET, GROUP = "target", "qid"  # columns that the reader of LIBSVM's text makes
FORMATS = ("csv", "tsv", "parquet", "jsonl", "arff", "libsvm", "npz")  # help imports no reader
DATA = click.argument("data", type=click.Path(allow_dash=True))

_OPTIONS = [
    click.option(
        "--format",
        type=click.Choice(FORMATS),
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


_NAMES = ("format", "kind", "missing", "drop", "delimiter", "no_header", "decimal")
_OF_THE_FILE = ("format", "delimiter", "no_header")  # kinds, gaps and decimals are the model's


def reading_rows(function: Any) -> Any:
    """Add the options that say how a file of new rows is written."""
    for option, name in zip(reversed(_OPTIONS), reversed(_NAMES), strict=True):
        function = option(function) if name in _OF_THE_FILE else function
    return function


def row_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.data.read_blocks` that are not its defaults."""
    found = {name: options[name] for name in ("format", "delimiter")}
    found["header"] = False if options["no_header"] else None
    return {name: value for name, value in found.items() if value is not None}


def reading(function: Any) -> Any:
    """Add the options of the readers; `read_arguments` picks them out."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.data.read` that are not its defaults."""
    found = {name: options[name] for name in ("format", "delimiter", "decimal")}
    found["kinds"] = kinds_of(options)
    found["header"] = False if options["no_header"] else None
    if options["missing"]:
        from mercer.data.kinds import MISSING  # noqa: PLC0415  help needs none of it

        found["missing"] = (*MISSING, *options["missing"])
    return {name: value for name, value in found.items() if value not in (None, {})}


def kinds_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the kinds of columns that are asked for; a kind that there is not is wrong use."""
    found = pairs(options["kind"], "--kind")
    if found:
        from mercer.data import Kind  # noqa: PLC0415  help needs none of it

        known = [kind.value for kind in Kind]
        for name, kind in found.items():
            if kind.lower() not in known:
                entry, hint = f"{name}={kind}", did_you_mean(kind, known)
                raise click.UsageError(f"--kind {entry!r}: there is no kind {kind!r}; {hint}")
    return found


def read_table(source: str, drop: Iterable[str] = (), **arguments: Any) -> Table:
    """Read a table; `-` is standard input."""
    from mercer.data import read  # noqa: PLC0415  help needs none of it

    try:
        table = read(standard_input() if source == "-" else source, **arguments)
    except KeyError as error:  # of a column that is not there
        kinds = arguments.get("kinds", {}).values()
        if not any(isinstance(kind, str) for kind in kinds):  # those of a model are no texts
            raise
        raise click.UsageError(f"--kind: {error.args[0]}") from error
    for name in drop:
        table = table.drop(column_of(table.columns, name, "--drop"))
    return table


def read_or_large(source: str, **arguments: Any) -> Any:
    """Read a table, or leave a file that exceeds the memory budget to be read block by block."""
    from mercer.fitting.rows import LargeFile, exceeds_memory  # noqa: PLC0415

    if source != "-" and exceeds_memory(source):
        return LargeFile(source, **arguments)
    return read_table(source, **arguments)


def read_labelled(source: str, model: TableModel, **arguments: Any) -> Table:
    """Read rows with a target as the columns that a model knows, whatever is in them."""
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
        raise ValueError(f"{source}: there are no rows")
    return reduce(lambda above, rows: above.below(rows), blocks)


def column_of(columns: Iterable[str], name: str, option: str) -> str:
    """Return a name that is one of the columns; one that is not is wrong use."""
    names = list(columns)
    if name not in names:
        raise click.UsageError(f"{option} {name!r} is no column; {did_you_mean(name, names)}")
    return name


def pairs(entries: Iterable[str], option: str) -> dict[str, str]:
    """Read `name=value` texts; the last `=` separates, so that names may have some.

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
