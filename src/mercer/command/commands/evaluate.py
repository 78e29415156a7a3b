"""`mercer evaluate`: evaluate a model on labeled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mercer.command.models import MODEL, table_model
from mercer.command.results import constant_rows, metric_rows
from mercer.command.tables import DATA, read_labelled, reading_rows, row_arguments
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, Work, python, seed


@click.command(
    cls=Work,
    examples=["evaluate income.mercer test.csv", "evaluate income.mercer test.csv --json"],
    help="Evaluate a model on labeled rows.\n\nDATA contains the target and was not used "
    "to fit. Scores have 95 % intervals and are compared with the best constant prediction.",
)
@MODEL
@DATA
@reading_rows
@seed
@python
@click.pass_obj
def evaluate(
    session: CommandSession, /, model: str, data: str, seed: int, python: bool, **options: Any
) -> None:
    """Print the scores."""
    if python:
        session.program(
            [
                "import mercer",
                "from mercer.data import read",
                "from mercer.fitting import evaluate",
                "",
                f"model = mercer.load({model!r})",
                f"print(evaluate(model, read({data!r}), random_state={seed}))",
            ]
        )
        return
    opened = table_model(model)
    from mercer.fitting import evaluate as judge  # noqa: PLC0415  help needs none of it

    table = read_labelled(data, opened, **row_arguments(options))
    found = judge(opened, table, random_state=seed)
    values: dict[str, Any] = {"model": model, "target": opened.target, **found.to_dict()}
    if _may_be_training(data, len(table), opened.settings):
        session.note(
            "note: this looks like the training table; scores on training rows are too "
            "optimistic. Use rows that the model was not fitted to"
        )
    rows = metric_rows(found) + constant_rows(found)
    session.result(values, aligned(rows) + _confusion(found, opened.classes))


def _may_be_training(data: str, rows: int, settings: Any) -> bool:
    """Return whether a file looks like the training table of a model."""
    return (
        bool(settings.source)
        and Path(data).name == Path(settings.source).name
        and (rows >= settings.rows)
    )


def _confusion(found: Any, classes: Any) -> str:
    if found.confusion is None:
        return ""
    head = ["true \\ predicted", *map(str, classes), ""]
    rows = [
        [str(name), *map(str, row), ""]
        for name, row in zip(classes, found.confusion.tolist(), strict=True)
    ]
    return "\n\n" + aligned(rows, head, right="l" + "r" * len(classes))
