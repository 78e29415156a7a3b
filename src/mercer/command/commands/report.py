"""`mercer report`: write the HTML report of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.command.models import MODEL, training_table
from mercer.command.results import file_row, refuse_overwriting
from mercer.command.tables import read_arguments, reading
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, Work, python


@click.command(
    cls=Work,
    examples=[
        "report income.mercer",
        "report income.mercer --data people.csv -o report.html",
        "report income.mercer --card -o card.md",
    ],
    help="Write the HTML report of a model.\n\nThe report is one file that needs no network. It "
    "shows model selection, performance, the certificate and how to reproduce the model. The "
    "model file does not contain the training table: pass it with --data to plot its rows.",
)
@MODEL
@click.option("--data", type=click.Path(allow_dash=True), metavar="FILE", help="Training table.")
@click.option(
    "--output",
    "-o",
    type=click.Path(),
    metavar="FILE",
    help="Output file; default: MODEL with extension .html.",
)
@click.option("--card", is_flag=True, help="Write a short model card in Markdown instead.")
@reading
@python
@click.pass_obj
def report(session: CommandSession, /, model: str, output: str | None, **options: Any) -> None:
    """Write the report or the model card."""
    data, card = options["data"], options["card"]
    ending = "md" if card else "html"
    path = Path(output) if output else Path(model).with_name(f"{Path(model).stem}.{ending}")
    refuse_overwriting([path], model, *([data] if data else []))
    if options["python"]:
        session.program(_program(model, data, path, card))
        return
    from mercer.files import load  # noqa: PLC0415  help needs none of it

    loaded, X = load(model), None
    notes: list[str] = []
    if data is not None:
        if not hasattr(loaded, "schema"):
            raise click.UsageError("--data is for table models; this file contains an estimator")
        X, notes = training_table(loaded, data, **read_arguments(options))
        X = X.drop(*options["drop"]) if options["drop"] else X
    for note in notes:
        session.note(f"note: {note}")
    _write(loaded, X, path, card, session.line)
    row = file_row("card" if card else "report", path)
    session.result({"model": model, "report": path, "notes": notes}, aligned([row]))


def _write(model: Any, X: Any, path: Path, card: bool, line: str) -> None:
    from mercer.report import model_card, write_report  # noqa: PLC0415

    if not card:
        write_report(model, path, X=X, command=line)
        return
    from mercer.files.container import write_file  # noqa: PLC0415

    write_file(path, [model_card(model, X=X, command=line).encode("utf-8", "backslashreplace")])


def _program(model: str, data: str | None, path: Path, card: bool) -> list[str]:
    rows = f", X=read({data!r})" if data else ""
    imports = ["from pathlib import Path", ""] if card else []
    imports += ["import mercer", *(["from mercer.data import read"] if data else [])]
    imports.append(f"from mercer.report import {'model_card' if card else 'write_report'}")
    call = f"write_report(model, {str(path)!r}{rows})"
    if card:
        call = f"Path({str(path)!r}).write_text(model_card(model{rows}), encoding='utf-8')"
    return [*imports, "", f"model = mercer.load({model!r})", call]
