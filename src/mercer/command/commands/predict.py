"""`mercer predict`: predict new rows with a model."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from mercer.command.models import MODEL
from mercer.command.results import refuse_overwriting
from mercer.command.tables import DATA, reading_rows, row_arguments
from mercer.command.terminal import printable, standard_output
from mercer.command.work import CommandSession, Work, python

if TYPE_CHECKING:
    from mercer.command.answers import Opened
    from mercer.data import Table


@click.command(
    cls=Work,
    examples=[
        "predict income.mercer new.csv > predicted.csv",
        "predict income.mercer new.csv --proba -o predicted.csv",
        "predict income.mercer - < new.csv | head",
    ],
    help="Predict new rows with a model.\n\nReads rows block by block, so DATA can be of any size "
    "or a pipe (-). Writes CSV: the prediction and, with --proba, the probability of each class. "
    "Columns are matched by name. A target column is ignored.",
)
@MODEL
@DATA
@click.option(
    "--output", "-o", type=click.Path(), metavar="FILE", help="Write the CSV to this file."
)
@click.option("--proba", is_flag=True, help="Add class probabilities.")
@click.option(
    "--spreadsheet/--no-spreadsheet",
    default=True,
    help="Escape labels that a spreadsheet would run, such as =1+1.",
)
@reading_rows
@python
@click.pass_obj
def predict(
    session: CommandSession,
    /,
    model: str,
    data: str,
    output: str | None,
    proba: bool,
    spreadsheet: bool,
    python: bool,
    **options: Any,
) -> None:
    """Write the predictions."""
    if python:
        session.program(_program(model, data, output, proba))
        return
    if data == "-" and model == "-":
        raise click.UsageError("MODEL must be a file; only DATA can be -")
    refuse_overwriting([output], model, data)
    from mercer.command.answers import open_model  # noqa: PLC0415  help needs none of it
    from mercer.progress import shown  # noqa: PLC0415

    opened, reader = open_model(model), row_arguments(options)

    # a progress bar and predictions on the same terminal would overwrite each other
    apart = output is not None or sys.stdout is None or not sys.stdout.isatty()
    with shown("predict", solvers=False) if apart else nullcontext():
        if output is None and session.json:
            session.result(_collected(opened, opened.blocks(data, **reader), proba), "")
            return
        counted = Counted(spreadsheet)
        parts = counted.parts(opened, opened.blocks(data, **reader), proba)
        if output is None:
            _print(parts)
            return
        from mercer.files.container import write_file  # noqa: PLC0415

        write_file(output, parts)
    values = {"output": output, "rows": counted.rows, "seconds": counted.seconds}
    session.result(values, f"{counted.rows} rows predicted: {printable(output)}")


class Counted:
    """Write predictions as parts of a CSV file, and count them."""

    def __init__(self, spreadsheet: bool) -> None:
        self.spreadsheet = spreadsheet
        self.rows, self.seconds = 0, 0.0

    def parts(self, opened: Opened, blocks: Iterator[Table], proba: bool) -> Iterator[bytes]:
        """Yield the header with the first block of rows, then one part per block."""
        from mercer.command.answers import csv_block, csv_header  # noqa: PLC0415
        from mercer.progress import show  # noqa: PLC0415

        begun = time.perf_counter()
        # yielded with the first block, so that an invalid file produces no output
        head = csv_header(opened.names(proba), self.spreadsheet)
        for rows in blocks:
            yield head + csv_block(opened.answers(rows, proba), self.spreadsheet)
            head = b""
            self.rows += len(rows)
            self.seconds = time.perf_counter() - begun
            show(f"{self.rows} rows, {self.rows / max(self.seconds, 1e-9):.0f} per second")
        if head:
            yield head


def _print(parts: Iterator[bytes]) -> None:
    out = standard_output()
    if out is None:
        raise OSError("standard output is closed; write to a file with -o")
    for part in parts:
        out.write(part)
    out.flush()


def _collected(opened: Opened, blocks: Iterator[Table], proba: bool) -> dict[str, Any]:
    """Return all predictions as lists for one JSON object."""
    names = opened.names(proba)
    found: list[list[Any]] = [[] for _ in names]
    for rows in blocks:
        for column, values in zip(found, opened.answers(rows, proba), strict=True):
            column.extend(values.tolist())
    return {"rows": len(found[0]), "predictions": dict(zip(names, found, strict=True))}


def _program(model: str, data: str, output: str | None, proba: bool) -> list[str]:
    call = "predict_proba" if proba else "predict"
    lines = [
        "import mercer",
        "from mercer.data import read_blocks",
        "",
        f"model = mercer.load({model!r})",
        f"for rows in read_blocks({data!r}, model.schema):",
        f"    print(model.{call}(rows))",
    ]
    return lines
