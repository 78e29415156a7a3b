"""`mercer check`: find problems in a table before fitting a model."""

from __future__ import annotations

from typing import Any

import click

from mercer.command.results import finding_values
from mercer.command.tables import DATA, column_of, read_arguments, read_table, reading
from mercer.command.terminal import printable
from mercer.command.work import CommandSession, Work, python


@click.command(
    cls=Work,
    examples=["check people.csv --target income", "check train.csv --target y --test test.csv"],
    help="Find problems in a table.\n\nReports column kinds, missing values, constant and "
    "duplicate columns, columns that leak the target, small classes and rows shared with the test "
    "table. The exit code is 1 if a finding is an error.",
)
@DATA
@click.option("--target", "-t", metavar="COLUMN", help="Column to predict.")
@click.option("--test", type=click.Path(), metavar="FILE", help="Table of test rows.")
@reading
@python
@click.pass_obj
def check(
    session: CommandSession, /, data: str, target: str | None, test: str | None, **options: Any
) -> None:
    """Print kinds and findings."""
    reader = read_arguments(options)
    if options["python"]:
        session.program(_program(data, target, test, reader, options["drop"]))
        return
    from mercer.data import check as look  # noqa: PLC0415  help needs none of it

    table = read_table(data, options["drop"], **reader)
    if target is not None:
        column_of(table.columns, target, "--target")
    other = None if test is None else read_table(test, options["drop"], **reader)
    findings = look(table, target, test=other)
    values = {
        "source": table.source,
        "digest": table.digest,
        "rows": len(table),
        "columns": {name: kind.value for name, kind in table.kinds.items()},
        "findings": finding_values(findings),
    }
    said = [f"{one.level}: {printable(one.message)}" for one in findings]
    text = "\n".join([str(table), "", *(said or ["No problems found."])])
    session.result(values, text)
    if any(one.level == "error" for one in findings):
        raise click.exceptions.Exit(1)


def _program(
    data: str, target: str | None, test: str | None, reader: dict[str, Any], drop: Any
) -> list[str]:
    arguments = "".join(f", {name}={value!r}" for name, value in reader.items())
    less = f".drop({', '.join(map(repr, drop))})" if drop else ""
    further = f", target={target!r}" if target else ""
    further += f", test=read({test!r}{arguments}){less}" if test else ""
    return [
        "from mercer.data import check, read",
        "",
        f"table = read({data!r}{arguments}){less}",
        "print(table)",
        f"for finding in check(table{further}):",
        "    print(finding)",
    ]
