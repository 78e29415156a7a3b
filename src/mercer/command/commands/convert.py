"""`mercer convert`: data and models between Mercer, LIBSVM, ONNX and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mercer.command.models import is_libsvm_model, is_mercer_model, table_model
from mercer.command.results import file_row, refuse_overwriting
from mercer.command.tables import column_of, read_arguments, read_labelled, read_table, reading
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, Work, python

if TYPE_CHECKING:
    from mercer.data import Table

FORMATS = ("mercer", "libsvm", "onnx", "csv")
_ENDINGS = {".mercer": "mercer", ".onnx": "onnx", ".csv": "csv"}
_ROWS = 65536  # per block of CSV


@click.command(
    cls=Work,
    examples=[
        "convert income.mercer income.onnx",
        "convert heart.model heart.mercer",
        "convert income.mercer income.model",
        "convert people.csv people.libsvm --target income",
        "convert people.csv people.libsvm --prepare income.mercer",
        "convert heart_scale heart.csv --format libsvm",
    ],
    help="Convert data and models to or from LIBSVM, ONNX, CSV.\n\nThe content of INPUT determines "
    "whether it is a model or data. The extension of OUTPUT (or --to) determines the result: "
    ".mercer, .onnx or a LIBSVM model for models; .csv or LIBSVM text for data. LIBSVM models "
    "have no table columns: convert their data with --prepare.",
)
@click.argument("input", type=click.Path(allow_dash=True))
@click.argument("output", type=click.Path())
@click.option(
    "--to", type=click.Choice(FORMATS), help="Output format; default: from the extension."
)
@click.option("--target", "-t", metavar="COLUMN", help="Target column, for data.")
@click.option(
    "--prepare",
    type=click.Path(),
    metavar="MODEL",
    help="Convert columns to numbers like this model.",
)
@click.option(
    "--without-probabilities", is_flag=True, help="Omit calibration that LIBSVM cannot store."
)
@reading
@python
@click.pass_obj
def convert(session: CommandSession, /, input: str, output: str, **options: Any) -> None:
    """Convert one file."""
    to = options["to"] or _ENDINGS.get(Path(output).suffix.lower(), "libsvm")
    refuse_overwriting([output], input)
    model = input != "-" and (is_libsvm_model(input) or is_mercer_model(input))
    if options["python"]:
        session.program(_program(input, output, to, model, options))
        return
    notes: dict[str, Any] = {}
    if model:
        if to == "csv":
            raise click.UsageError(
                "cannot convert a model to csv; use .mercer, .onnx or --to libsvm"
            )
        _model(input, output, to, options["without_probabilities"])
    else:
        if to in {"mercer", "onnx"}:
            raise click.UsageError(f"{input!r} is not a model; use .csv or --to libsvm for data")
        notes = _data(session, input, output, to, options)
    row = file_row("model" if model else "data", Path(output))
    session.result({"output": output, "format": to, "model": model, **notes}, aligned([row]))


def _model(path: str, output: str, to: str, without_probabilities: bool) -> None:
    from mercer.files import load, save  # noqa: PLC0415  help needs none of it
    from mercer.files.libsvm import machine_of, read_libsvm_model, write_libsvm_model  # noqa: PLC0415

    loaded: Any
    if is_libsvm_model(path):
        loaded = machine_of(read_libsvm_model(path), without_probabilities=without_probabilities)
    else:
        loaded = load(path)
    if to == "mercer":
        save(loaded, output)
    elif to == "onnx":
        from mercer.files import to_onnx  # noqa: PLC0415

        to_onnx(loaded, output)
    else:
        machine = loaded.machine if hasattr(loaded, "schema") else loaded
        write_libsvm_model(machine, output, without_probabilities=without_probabilities)


def _data(
    session: CommandSession, path: str, output: str, to: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Write data. Return the number of rows and the label codes."""
    target, prepare = options["target"], options["prepare"]
    if target is not None and prepare is not None:
        raise click.UsageError("--prepare determines the target; remove --target")
    rows: Any
    if prepare is not None:
        model = table_model(prepare)
        table, target = read_labelled(path, model), model.target
        rows = model.preparation.transform(table.drop(target))
        names = model.preparation.get_feature_names_out()
    else:
        table = read_table(path, options["drop"], **read_arguments(options))
        rows, names = None, None
    if target is not None:
        column_of(table.columns, target, "--target")
    if to == "csv":
        _write_csv(output, table if rows is None else _numbers(rows, names, table, target))
        return {"rows": len(table)}
    features = table.drop(target) if target is not None else table
    return _write_libsvm(
        session, output, features.matrix() if rows is None else rows, table, target
    )


def _numbers(rows: Any, names: Any, table: Table, target: str | None) -> Table:
    from mercer.data import Table as Tables  # noqa: PLC0415

    made = Tables.of(rows, names=list(names))
    return made if target is None else made.with_column(target, table[target])


def _write_csv(output: str, table: Table) -> None:
    from mercer.command.answers import csv_block, csv_header  # noqa: PLC0415
    from mercer.files.container import write_file  # noqa: PLC0415

    def parts() -> Iterator[bytes]:
        yield csv_header(table.columns)
        for first in range(0, len(table), _ROWS):
            block = table.rows(slice(first, first + _ROWS))
            yield csv_block([block[name] for name in block.columns])

    write_file(output, parts())


def _write_libsvm(
    session: CommandSession, output: str, rows: Any, table: Table, target: str | None
) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415

    from mercer.files.libsvm import write_libsvm_data  # noqa: PLC0415

    values = None if target is None else table[target]
    found: dict[str, Any] = {"rows": len(table)}
    if values is not None and values.dtype.kind == "O":  # LIBSVM's labels are numbers
        if any(one is None for one in values.tolist()):
            raise ValueError(f"column {target!r} has missing values; remove those rows")
        classes, values = np.unique(values, return_inverse=True)
        found["labels"] = {str(name): code for code, name in enumerate(classes.tolist())}
        session.note(f"labels: {', '.join(f'{v} is {k}' for k, v in found['labels'].items())}")
    write_libsvm_data(rows, values, output)
    return found


def _program(path: str, output: str, to: str, model: bool, options: dict[str, Any]) -> list[str]:
    if not model:
        target = options["target"]
        if to == "csv":
            return [
                "from mercer.data import read",
                "",
                f"read({path!r}).to_pandas().to_csv({output!r}, index=False)",
            ]
        rows = "table" if target is None else f"table.drop({target!r})"
        return [
            "from mercer.data import read",
            "from mercer.files.libsvm import write_libsvm_data",
            "",
            f"table = read({path!r})",
            f"write_libsvm_data({rows}.matrix(), {f'table[{target!r}]' if target else None}, "
            f"{output!r})",
        ]
    libsvm = is_libsvm_model(path)
    read = f"machine_of(read_libsvm_model({path!r}))" if libsvm else f"mercer.load({path!r})"
    home, call = {
        "mercer": ("mercer", "mercer.save"),
        "onnx": ("mercer.files", "to_onnx"),
        "libsvm": ("mercer.files", "write_libsvm_model"),
    }[to]
    lines = ["import mercer"]
    if libsvm:
        lines.append("from mercer.files.libsvm import machine_of, read_libsvm_model")
    if to != "mercer":
        lines.append(f"from {home} import {call}")
    return [*lines, "", f"{call}({read}, {output!r})"]
