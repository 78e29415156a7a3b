"""`mercer topics`: find topics in texts."""

from __future__ import annotations

from typing import Any

import click

from mercer.command.tables import DATA, column_of, read_arguments, read_table
from mercer.command.unsupervised import call_program, finish, refuse_files, unsupervised
from mercer.command.work import CommandSession, Work

_WORDS = 10  # shown per topic


@click.command(
    cls=Work,
    examples=[
        "topics reviews.csv --column text",
        "topics reviews.jsonl --topics 12 -o weights.csv --report topics.html",
    ],
    help="Find topics in texts.\n\nA topic is a distribution over words that occur together. DATA "
    "is a table with a text column. Without --topics, the number of topics is chosen from the "
    "data.",
)
@DATA
@click.option(
    "--column", "-c", metavar="COLUMN", help="Text column; default: the column of kind text."
)
@click.option("--topics", "-k", type=click.IntRange(min=1), help="Number of topics.")
@click.option(
    "--stop-words", type=click.Choice(["common", "english", "none"]), default="common",
    show_default=True, help="Ignore frequent words (common), English stop words, or none.",
)  # fmt: skip
@unsupervised
@click.pass_obj
def topics(session: CommandSession, /, data: str, **options: Any) -> None:
    """Find topics, write the files and print the result."""
    refuse_files(data, options)
    reader, given = read_arguments(options), _arguments(options)
    if options["python"]:
        session.program(call_program("topics", data, reader, given, options))
        return
    from mercer.deadline import within  # noqa: PLC0415  help needs none of it
    from mercer.fitting import topics as find  # noqa: PLC0415

    table = read_table(data, options["drop"], **reader)
    if options["column"] is not None:
        column_of(table.columns, options["column"], "--column")
    with within(options["time_limit"], "topics"):
        model = find(table, **given)
    shares = model.shares.tolist()
    values = {
        "rows": len(model.weights),
        "topics": [
            {"share": share, "words": [list(word) for word in words]}
            for share, words in zip(shares, model.topics, strict=True)
        ],
        "candidates": [list(one) for one in model.candidates],
    }
    rows = [("topics", f"{len(shares)} of {len(model.weights)} texts")]
    for number, (share, words) in enumerate(zip(shares, model.topics, strict=True)):
        said = " ".join(word for word, _ in words[:_WORDS])
        rows.append((f"topic {number + 1}", f"{100 * share:.1f} %  {said}"))
    columns = {f"topic {j + 1}": model.weights[:, j] for j in range(len(shares))}
    finish(session, model, options, columns, (values, rows))


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "column": options["column"],
        "topics": options["topics"],
        "random_state": options["seed"] or None,
    }
    found = {name: value for name, value in found.items() if value is not None}
    if options["stop_words"] != "common":
        found["stop_words"] = None if options["stop_words"] == "none" else options["stop_words"]
    return found
