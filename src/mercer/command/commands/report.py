"""`mercer report`: the report of a saved model, as a page or as a card."""

from __future__ import annotations

from pathlib import Path

import click

from mercer.command.models import MODEL
from mercer.command.names import refuse_overwriting
from mercer.command.results import file_row
from mercer.command.session import Session
from mercer.command.tables import read_table
from mercer.command.text import aligned
from mercer.command.work import Work, python


@click.command(
    cls=Work,
    examples=["report income.mercer --data income.csv", "report income.mercer --card"],
    help="Write the HTML report of a model, or its card in Markdown.\n\nOne file that needs no "
    "network: what was chosen and why, how good it is, the certificate in words, how to reproduce "
    "it. The model file does not hold the table; with --data the report describes its columns and "
    "draws its rows, as the one that `fit` writes does.",
)
@MODEL
@click.option("--output", "-o", type=click.Path(), metavar="FILE", help="MODEL with .html, else.")
@click.option("--data", type=click.Path(), metavar="FILE", help="The table of the fit.")
@click.option("--card", is_flag=True, help="Write a card in Markdown (MODEL with .md) instead.")
@python
@click.pass_obj
def report(
    session: Session, /, model: str, output: str | None, data: str | None, card: bool, python: bool
) -> None:
    """Write the file."""
    beside = Path(model).with_suffix(".md" if card else ".html")
    path = Path(output) if output else beside
    refuse_overwriting([path], model, *([data] if data else []))
    if python:
        session.program(_program(model, path, data, card))
        return
    from mercer.files import load  # noqa: PLC0415  help needs none of it
    from mercer.files.atomic import write_file  # noqa: PLC0415
    from mercer.report import model_card, write_report  # noqa: PLC0415

    loaded, table = load(model), None if data is None else read_table(data)
    if card:
        write_file(path, [model_card(loaded, X=table).encode()])
    else:
        write_report(loaded, path, X=table)
    session.result({"model": model, "report": path}, aligned([file_row("report", path)]))


def _program(model: str, path: Path, data: str | None, card: bool) -> list[str]:
    """Write the same as Python."""
    rows = "" if data is None else f", X=mercer.data.read({data!r})"
    what = "model_card" if card else "write_report"
    lines = [f"write_report(mercer.load({model!r}), {str(path)!r}{rows})"]
    if card:
        lines = [
            f"card = model_card(mercer.load({model!r}){rows})",
            f"pathlib.Path({str(path)!r}).write_text(card, encoding='utf-8')",
        ]
    imports = ["import pathlib", ""] if card else []
    return [*imports, "import mercer", f"from mercer.report import {what}", "", *lines]
