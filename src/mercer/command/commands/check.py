"""`mercer check`: look for trouble in a table before a model is made of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from mercer.command.session import Session
from mercer.command.tables import DATA, column_of, read_table, reading
from mercer.command.text import aligned, printable
from mercer.command.work import Work, python

if TYPE_CHECKING:
    from mercer.data import Findings, Table


@click.command(
    cls=Work,
    examples=["check people.csv --target income", "check train.csv --target y --test test.csv"],
    help="Look for trouble in a table.\n\nKinds of the columns, gaps, constants, duplicates, "
    "columns that give the target away, classes that are too small, rows in both tables. Exits "
    "with 1 if something is an error.",
)
@DATA
@click.option("--target", "-t", metavar="COLUMN", help="The column to predict.")
@click.option("--test", type=click.Path(), metavar="FILE", help="Another table, of test rows.")
@reading
@python
@click.pass_obj
def check(
    session: Session, data: str, target: str | None, test: str | None, python: bool, **reader: Any
) -> None:
    """Print kinds and findings."""
    if python:
        session.program(_program(data, target, test))
        return
    from mercer.data import check as check_table  # noqa: PLC0415

    table = read_table(data, **reader)
    if target is not None:
        column_of(table.columns, target, "--target")
    other = None if test is None else read_table(test, **reader)
    found = check_table(table, target=target, test=other)
    session.result(_values(table, found), _text(table, found))
    if any(one.level == "error" for one in found):
        raise click.exceptions.Exit(1)


def _values(table: Table, findings: Findings) -> dict[str, Any]:
    return {
        "source": table.source,
        "digest": table.digest,
        "rows": len(table),
        "columns": {name: kind.value for name, kind in table.kinds.items()},
        "findings": findings_values(findings),
    }


def findings_values(findings: Any) -> list[dict[str, Any]]:
    """Return findings for JSON."""
    return [
        {"level": f.level, "code": f.code, "columns": list(f.columns), "message": f.message}
        for f in findings
    ]


def _text(table: Table, findings: Findings) -> str:
    from mercer.command.columns import column_rows  # noqa: PLC0415

    lines = [aligned(column_rows(table), ("column", "kind", "missing", "entries"), right="llrl")]
    lines += ["", shape_of(table)]
    if not findings:
        lines.append("Nothing to complain about.")
    lines += [f"{one.level}: {printable(one.message)}" for one in findings]
    return "\n".join(lines)


def shape_of(table: Table) -> str:
    """Return rows and columns of a table in words."""
    kinds = Counter(kind.value for kind in table.kinds.values())
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{len(table)} rows, {len(table.columns)} columns ({shown})"


def _program(data: str, target: str | None, test: str | None) -> list[str]:
    arguments = "".join(
        [f", target={target!r}" if target else "", f", test=read({test!r})" if test else ""]
    )
    return [
        "from mercer.data import check, read",
        "",
        f"for finding in check(read({data!r}){arguments}):",
        "    print(finding.level, finding.message)",
    ]
