"""`mercer project`: project rows to few dimensions."""

from __future__ import annotations

from typing import Any

import click

from mercer.command.tables import DATA, kinds_of, read_arguments, read_table
from mercer.command.unsupervised import call_program, finish, refuse_files, unsupervised
from mercer.command.work import KERNEL, CommandSession, Work, approximation


@click.command(
    cls=Work,
    examples=[
        "project people.csv --drop income -o points.csv",
        "project people.csv --components 3 --kernel gaussian --report points.html",
    ],
    help="Project rows to few dimensions.\n\nComputes linear or kernel principal components, the "
    "coordinates that preserve the most variance.",
)
@DATA
@click.option("--components", "-k", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--kernel", type=KERNEL, metavar="KERNEL", default="linear", show_default=True)
@approximation
@unsupervised
@click.pass_obj
def project(session: CommandSession, /, data: str, **options: Any) -> None:
    """Project a table, write the files and print the result."""
    refuse_files(data, options)
    reader, given = read_arguments(options), _arguments(options)
    if options["python"]:
        session.program(call_program("project", data, reader, given, options))
        return
    from mercer.deadline import within  # noqa: PLC0415  help needs none of it
    from mercer.fitting import project as draw  # noqa: PLC0415

    with within(options["time_limit"], "project"):
        model = draw(read_table(data, **reader), **given)
    shares = model.explained.tolist()
    values = {
        "rows": len(model.coordinates),
        "components": len(shares),
        "explained": shares,
        "loadings": [[list(one) for one in part] for part in model.loadings],
    }
    rows = [("rows", str(len(model.coordinates)))]
    for number, share in enumerate(shares):
        weights = model.loadings[number][:5] if number < len(model.loadings) else ()
        said = ", ".join(f"{name} {weight:+.2f}" for name, weight in weights)
        rows.append((f"component {number + 1}", f"{100 * share:.1f} % of the variance  {said}"))
    columns = {f"component {j + 1}": model.coordinates[:, j] for j in range(len(shares))}
    finish(session, model, options, columns, (values, rows))


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    found = {
        "components": None if options["components"] == 2 else options["components"],
        "kernel": None if options["kernel"] == "linear" else options["kernel"],
        "approximation": None if options["approximation"] == "auto" else options["approximation"],
        "kinds": kinds_of(options) or None,
        "drop": options["drop"] or None,
        "random_state": options["seed"] or None,
    }
    return {name: value for name, value in found.items() if value is not None}
