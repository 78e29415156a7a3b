"""Options and output shared by `cluster`, `project` and `topics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mercer.command.results import (
    certificate_row,
    file_row,
    origin_values,
    refuse_overwriting,
    refuse_uncertified,
)
from mercer.command.tables import reading
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, python, seed, strict, time_limit

if TYPE_CHECKING:
    from mercer.array_types import Array

_OPTIONS = [
    click.option(
        "--output",
        "-o",
        type=click.Path(),
        metavar="FILE",
        help="Write a CSV file, a line per row.",
    ),
    click.option("--model", type=click.Path(), metavar="FILE", help="Save the model to this file."),
    click.option(
        "--report", type=click.Path(), metavar="FILE", help="Write an HTML report to this file."
    ),
]


def unsupervised(function: Any) -> Any:
    """Add the shared options of commands without a target."""
    function = reading(time_limit(seed(strict(python(function)))))
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def refuse_files(data: str, options: Mapping[str, Any]) -> None:
    """Raise if an output would overwrite the data."""
    refuse_overwriting([options[name] for name in ("output", "model", "report")], data)


def finish(
    session: CommandSession,
    model: Any,
    options: Mapping[str, Any],
    columns: Mapping[str, Array],
    found: tuple[dict[str, Any], Sequence[tuple[str, str]]],
) -> None:
    """Write the requested files and print the result.

    Parameters
    ----------
    session : Session
        Receives the result.
    model : ClusterModel, ProjectionModel or TopicModel
        Fitted model.
    options : mapping
        Options of the command line.
    columns : mapping of str to array
        Columns of the CSV file.
    found : tuple
        Result for JSON and as rows of the summary.
    """
    values, rows = dict(found[0]), [*found[1], certificate_row(model.certificate)]
    if options["output"] is not None:
        from mercer.command.answers import csv_block, csv_header  # noqa: PLC0415
        from mercer.files.container import write_file  # noqa: PLC0415

        parts = [csv_header(list(columns), True), csv_block(list(columns.values()), True)]
        write_file(options["output"], parts)
        rows.append(file_row("rows", Path(options["output"])))
    if options["model"] is not None:
        from mercer.files import save  # noqa: PLC0415

        save(model, options["model"])
        rows.append(file_row("model", Path(options["model"])))
    if options["report"] is not None:
        from mercer.report import write_report  # noqa: PLC0415

        write_report(model, options["report"], command=session.line)
        rows.append(file_row("report", Path(options["report"])))
    values |= {name: options[name] for name in ("output", "model", "report")}
    session.result({**values, **origin_values(model)}, aligned(rows))
    if options["strict"]:
        refuse_uncertified(model.certificate)


def call_program(
    name: str,
    data: str,
    reader: Mapping[str, Any],
    given: Mapping[str, Any],
    files: Mapping[str, Any],
) -> list[str]:
    """Write the call of the function `name` as Python."""
    arguments = "".join(f", {key}={value!r}" for key, value in reader.items())
    call = "".join(f", {key}={value!r}" for key, value in given.items())
    lines = ["import mercer", "from mercer.data import read"]
    body = [f"model = mercer.{name}(read({data!r}{arguments}){call})", "print(model)"]
    if files["model"] is not None:
        body.append(f"mercer.save(model, {files['model']!r})")
    if files["report"] is not None:
        lines.append("from mercer.report import write_report")
        body.append(f"write_report(model, {files['report']!r})")
    return [*lines, "", *body]
