"""`mercer cluster`: group similar rows."""

from __future__ import annotations

from typing import Any

import click

from mercer.command.tables import DATA, kinds_of, read_arguments, read_table
from mercer.command.unsupervised import call_program, finish, refuse_files, unsupervised
from mercer.command.work import KERNEL, CommandSession, Work, approximation

METHODS = ("kmeans", "spectral", "mixture")


@click.command(
    cls=Work,
    examples=[
        "cluster people.csv --drop income -o groups.csv",
        "cluster people.csv --clusters 4 --method spectral --report groups.html",
    ],
    help="Group similar rows.\n\nWithout --clusters, the number of clusters is chosen by "
    "the mean silhouette (kmeans), the eigenvalue gap (spectral) or the BIC (mixture).",
)
@DATA
@click.option("--clusters", "-k", type=click.IntRange(min=1), help="Number of clusters.")
@click.option("--method", type=click.Choice(METHODS), default="kmeans", show_default=True)
@click.option("--kernel", type=KERNEL, metavar="KERNEL", help="Kernel for kmeans and spectral.")
@click.option(
    "--max-clusters",
    type=click.IntRange(min=2),
    help="Largest number of clusters to try; default: 10.",
)
@approximation
@unsupervised
@click.pass_obj
def cluster(session: CommandSession, /, data: str, **options: Any) -> None:
    """Cluster a table, write the files and print the result."""
    refuse_files(data, options)
    reader, given = read_arguments(options), _arguments(options)
    if options["python"]:
        session.program(call_program("cluster", data, reader, given, options))
        return
    from mercer.deadline import within  # noqa: PLC0415  help needs none of it
    from mercer.fitting import cluster as group  # noqa: PLC0415

    with within(options["time_limit"], "cluster"):
        model = group(read_table(data, **reader), **given)
    sizes = model.sizes.tolist()
    values = {
        "rows": len(model.labels),
        "clusters": len(sizes),
        "sizes": sizes,
        "criterion": model.criterion,
        "candidates": [list(one) for one in model.candidates],
        "profiles": [list(one) for one in model.profiles],
    }
    rows = [("clusters", f"{len(sizes)} of {len(model.labels)} rows; {model.criterion}")]
    for number, (size, said) in enumerate(zip(sizes, model.profiles, strict=True)):
        rows.append((f"cluster {number}", f"{size} rows. {'; '.join(said)}".rstrip()))
    finish(session, model, options, {"cluster": model.labels}, (values, rows))


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    found = {
        "clusters": options["clusters"],
        "method": None if options["method"] == "kmeans" else options["method"],
        "kernel": options["kernel"],
        "approximation": None if options["approximation"] == "auto" else options["approximation"],
        "kinds": kinds_of(options) or None,
        "drop": options["drop"] or None,
        "max_clusters": options["max_clusters"],
        "random_state": options["seed"] or None,
    }
    return {name: value for name, value in found.items() if value is not None}
