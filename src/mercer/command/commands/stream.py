"""`mercer stream`: classify texts line by line and learn from labels and corrections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from mercer.command.models import loaded_as
from mercer.command.results import file_row, refuse_overwriting
from mercer.command.terminal import aligned, did_you_mean, standard_input, standard_output
from mercer.command.work import CommandSession, Work, python

if TYPE_CHECKING:
    from mercer.fitting import TextFilter

_LONGEST = 10_000_000  # bytes per line
METHODS = ("naive-bayes", "perceptron")


@click.command(
    cls=Work,
    examples=[
        "stream mail.tsv --labels ham,spam --save mail.mercer",
        "stream --load mail.mercer --save mail.mercer < today.tsv > answers.tsv",
    ],
    help="Learn online from labeled lines and corrections.\n\nFor each line of LINES (default: "
    "standard input), prints the predicted label, a TAB and the margin of the prediction. A line "
    "LABEL TAB TEXT is predicted, then learned. A line TEXT is only predicted. A line !LABEL "
    "corrects the prediction of the last unlabeled TEXT. Prints the number of mistakes at the "
    "end.",
)
@click.argument("lines", type=click.Path(allow_dash=True), default="-")
@click.option("--labels", metavar="A,B,...", help="List all labels of a new filter.")
@click.option("--load", type=click.Path(), metavar="FILE", help="Load a saved filter.")
@click.option("--save", type=click.Path(), metavar="FILE", help="Save the filter at the end.")
@click.option(
    "--method", type=click.Choice(METHODS), default="naive-bayes", show_default=True,
    help="Method: naive-bayes counts all texts, perceptron learns from mistakes.",
)  # fmt: skip
@python
@click.pass_obj
def stream(session: CommandSession, /, lines: str, python: bool, **options: Any) -> None:
    """Predict and learn line by line."""
    labels, load = options["labels"], options["load"]
    if (labels is None) == (load is None):
        raise click.UsageError("pass either --labels (new filter) or --load FILE")
    refuse_overwriting([options["save"]], lines)
    if python:
        session.program(_program(lines, options))
        return
    taught = _filter(options)
    if lines == "-":
        _run(session, taught, standard_input(), "standard input")
    else:
        with open(lines, "rb") as file:
            _run(session, taught, file, lines)
    rows = [("learned", str(taught))]
    if options["save"] is not None:
        from mercer.files import save  # noqa: PLC0415  help needs none of it

        save(taught, options["save"])
        rows.append(file_row("filter", Path(options["save"])))
    if session.json:
        values = {"seen": taught.seen, "mistakes": taught.mistakes, "saved": options["save"]}
        session.result(values | {"mistakes_by_label": taught.mistakes_by_label}, "")
    else:
        session.note(aligned(rows))


def _filter(options: dict[str, Any]) -> TextFilter:
    from mercer.fitting import TextFilter  # noqa: PLC0415

    if options["load"] is not None:
        return loaded_as(options["load"], TextFilter, "a filter that `mercer stream` saved")
    labels = [label.strip() for label in options["labels"].split(",")]
    try:
        return TextFilter(labels, method=options["method"].replace("-", "_"))
    except ValueError as error:
        raise click.UsageError(str(error).replace("TextFilter: ", "--")) from error


def _run(session: CommandSession, taught: TextFilter, file: BinaryIO, name: str) -> None:
    out = None if session.json else standard_output()
    last: str | None = None
    for number, line in _lines(file, name):
        label, tab, text = line.partition("\t")
        if not tab and line.startswith("!"):
            label, text = line[1:], last if last is not None else ""
            if last is None:
                raise ValueError(
                    f"{name}, line {number}: no unlabeled text before {line!r} to correct"
                )
            taught.learn(text, _known(taught, label, name, number))
            last = None
            continue
        if tab and label:
            said = taught.learn(text, _known(taught, label, name, number))
        else:
            last = text if tab else line
            said = taught.answer(last)
        if out is not None:
            out.write(f"{said.label}\t{said.score:.4g}\n".encode())
            out.flush()


def _known(taught: TextFilter, label: str, name: str, number: int) -> str:
    if label not in taught.labels:
        hint = did_you_mean(label, taught.labels)
        raise ValueError(
            f"{name}, line {number}: unknown label {label!r} before the TAB; {hint} Start a "
            "TEXT that contains a TAB with a TAB"
        )
    return label


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers. Raise if a line is too long."""
    number = 0
    while line := file.readline(_LONGEST + 1):
        number += 1
        if len(line) > _LONGEST:
            raise ValueError(f"{name}, line {number}: longer than {_LONGEST} bytes")
        yield number, line.decode("utf-8", "replace").rstrip("\r\n")


def _program(lines: str, options: dict[str, Any]) -> list[str]:
    made = (
        f"mercer.load({options['load']!r})"
        if options["load"]
        else f"TextFilter({options['labels'].split(',')!r}, "
        f"method={options['method'].replace('-', '_')!r})"
    )
    body = [
        "import mercer",
        "from mercer.fitting import TextFilter",
        "",
        f"texts = {made}",
        f"with open({0 if lines == '-' else lines!r}, encoding='utf-8') as lines:",
        "    for line in lines:",
        "        label, _, text = line.rstrip('\\n').partition('\\t')",
        "        answer = texts.learn(text, label)",
        "        print(answer.label, f'{answer.score:.4g}', sep='\\t')",
    ]
    if options["save"]:
        body.append(f"mercer.save(texts, {options['save']!r})")
    return body
