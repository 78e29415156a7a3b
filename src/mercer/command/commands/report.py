"""`mercer report`: the HTML report of a saved model."""

from __future__ import annotations

from pathlib import Path

import click

from mercer.command.models import MODEL
from mercer.command.names import refuse_overwriting
from mercer.command.results import file_row
from mercer.command.session import Session
from mercer.command.text import aligned
from mercer.command.work import Work, python


@click.command(
    cls=Work,
    examples=["report income.mercer", "report income.mercer -o report.html"],
    help="Write the HTML report of a model.\n\nOne file that needs no network: what was chosen and "
    "why, how good it is, the certificate in words, how to reproduce it. The model file does not "
    "hold the table, so pictures of its rows are in the report that `fit` writes alone.",
)
@MODEL
@click.option("--output", "-o", type=click.Path(), metavar="FILE", help="MODEL with .html, else.")
@python
@click.pass_obj
def report(session: Session, /, model: str, output: str | None, python: bool) -> None:
    """Write the file."""
    path = Path(output) if output else Path(model).with_name(f"{Path(model).stem}.html")
    refuse_overwriting([path], model)
    if python:
        session.program(
            [
                "import mercer",
                "from mercer.report import write_report",
                "",
                f"write_report(mercer.load({model!r}), {str(path)!r})",
            ]
        )
        return
    from mercer.files import load  # noqa: PLC0415  help needs none of it
    from mercer.report import write_report  # noqa: PLC0415

    write_report(load(model), path)
    session.result({"model": model, "report": path}, aligned([file_row("report", path)]))
