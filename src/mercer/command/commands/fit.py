"""`mercer fit`: from a table to a certified model and its report."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click

from mercer.command.results import (
    fit_text,
    fit_values,
    refuse_overwriting,
    refuse_uncertified,
    stem_of,
)
from mercer.command.tables import (
    DATA,
    column_of,
    kinds_of,
    read_arguments,
    read_or_large,
    read_table,
    reading,
)
from mercer.command.terminal import printable
from mercer.command.work import (
    KERNEL,
    SCORE,
    CommandSession,
    Work,
    approximation,
    python,
    seed,
    strict,
    time_limit,
)

MACHINES = {
    "svc": "SVC",
    "logistic": "LogisticRegression",
    "fisher": "FisherDiscriminant",
    "nearest-neighbors": "NearestNeighbors",
    "nearest-mean": "NearestMean",
    "naive-bayes": "NaiveBayes",
    "gaussian": "GaussianClassifier",
    "ridge": "KernelRidge",
    "svr": "SVR",
}

_OPTIONS: list[Any] = [
    click.option("--target", "-t", metavar="COLUMN", required=True, help="The column to predict."),
    click.option(
        "--output", "-o", type=click.Path(), metavar="FILE",
        help="The model file; by default the name of DATA with .mercer, here.",
    ),
    click.option(
        "--report", type=click.Path(), metavar="FILE",
        help="The report; by default the name of the model with .html.",
    ),
    click.option("--no-report", is_flag=True, help="Write no report."),
    click.option(
        "--task", type=click.Choice(["classification", "regression"]),
        help="By default what the target says.",
    ),
    click.option(
        "--machine", type=click.Choice(list(MACHINES)), metavar="NAME",
        help=f"{', '.join(MACHINES)}; by default svc for classes, ridge or svr for numbers.",
    ),
    click.option(
        "--kernel", type=KERNEL, metavar="KERNEL", multiple=True,
        help="Compare these alone; see `mercer kernels`. May be repeated.",
    ),
    approximation,
    click.option("--test", type=click.Path(), metavar="FILE", help="Judge by this table instead."),
    click.option(
        "--held-out", type=click.FloatRange(0, 0.9), default=0.2, show_default=True,
        help="Share of the rows to judge by; 0: judge by cross-validation.",
    ),
    click.option("--refit", is_flag=True, help="Fit the settings found to all rows in the end."),
    click.option("--positive", metavar="LABEL", help="Of two classes the one scores speak of."),
    click.option(
        "--costs", type=(float, float), metavar="FP FN",
        help="Costs of a false positive and a false negative.",
    ),
    click.option(
        "--scoring", type=SCORE, metavar="NAME", help="What to compare by, as in scikit-learn."
    ),
    click.option("--folds", type=click.IntRange(min=2), help="Folds of the comparison, 5."),
    click.option(
        "--scheduler", metavar="ADDRESS",
        help=(
            "Spread the comparison over the workers of a Dask cluster: tcp://HOST:8786. A file "
            "past the memory budget of this machine is read by the workers, from a disk they share."
        ),
    ),
    click.option(
        "--resume/--no-resume", default=True, show_default=True,
        help="Go on from a journal, or start anew.",
    ),
]  # fmt: skip


def _options(function: Any) -> Any:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.command(
    cls=Work,
    examples=[
        "fit people.csv --target income",
        "fit train.csv -t y --test test.csv -o y.mercer --time-limit 10m --strict",
        "fit prices.parquet -t price --kind zip=category --drop id --json",
    ],
    help="Make a certified model of a column of a table.\n\nChecks the table, holds rows out, "
    "prepares the columns by their kinds, compares kernels on the same folds, tunes, trains, "
    "calibrates, certifies, and measures on the rows held out. Writes the model (-o) and its "
    "report (an HTML file beside it).\n\nAn interrupted run leaves a journal beside the model "
    "(MODEL.journal); the same command goes on from there, and removes it when the model is "
    "written.",
)
@DATA
@_options
@reading
@time_limit
@seed
@strict
@python
@click.pass_obj
def fit(session: CommandSession, /, data: str, **options: Any) -> None:
    """Read, fit, write, tell."""
    files = _files(data, options)
    if options["python"]:
        session.program(_program(data, files, options))
        return
    from mercer.files import save  # noqa: PLC0415  help needs none of it
    from mercer.fitting import fit as fit_table  # noqa: PLC0415
    from mercer.selection import JournalError  # noqa: PLC0415

    reader = read_arguments(options)
    table = read_or_large(data, **reader)
    column_of(table.columns, options["target"], "--target")
    for name in options["drop"]:
        column_of(table.columns, name, "--drop")
    test = None if options["test"] is None else read_table(options["test"], **reader)
    _take_up(session, files.journal, options["resume"])
    try:
        with _cluster(options["scheduler"]):
            model = fit_table(table, **_arguments(options, test), journal=files.journal)
    except JournalError as error:
        raise ValueError(f"{error}; --no-resume removes the journal and starts anew") from error
    except BaseException:  # Ctrl-C as well
        if not _has_results(files.journal):  # there is nothing to go on from
            shutil.rmtree(files.journal, ignore_errors=True)
        raise
    save(model, files.model)
    if files.report is not None:
        from mercer.report import write_report  # noqa: PLC0415

        write_report(model, files.report, command=session.line)
    shutil.rmtree(files.journal, ignore_errors=True)
    session.result(fit_values(model, files.model, files.report), fit_text(model, files))
    if options["strict"]:
        refuse_uncertified(model.certificate)


def _cluster(scheduler: str | None) -> AbstractContextManager[Any]:
    """Connect to a cluster for the time of the work, if one is named."""
    if scheduler is None:
        return nullcontext()
    from mercer.rows.dask.cluster import on_cluster  # noqa: PLC0415  help needs none of it

    return on_cluster(scheduler)


@dataclass(frozen=True)
class Files:
    """What is written: model, report, and the journal until both are there."""

    model: Path
    report: Path | None
    journal: Path


def _files(data: str, options: Mapping[str, Any]) -> Files:
    if options["report"] and options["no_report"]:
        raise click.UsageError("--report and --no-report exclude one another")
    model = Path(options["output"] or f"{stem_of(data)}.mercer")
    beside = model.with_name(f"{model.stem}.html")
    report = None if options["no_report"] else Path(options["report"] or beside)
    refuse_overwriting([model, report], data, *([options["test"]] if options["test"] else []))
    return Files(model, report, model.with_name(f"{model.name}.journal"))


def _take_up(session: CommandSession, journal: Path, resume: bool) -> None:
    """Say that a journal is there, or remove it."""
    if resume and _has_results(journal):
        session.note(f"going on from {printable(str(journal))}; --no-resume starts anew")
    elif journal.exists() and not resume:
        shutil.rmtree(journal)


def _has_results(journal: Path) -> bool:
    """Return whether a journal holds more than the first lines of its files."""
    if not journal.is_dir():
        return journal.exists()
    for file in journal.iterdir():
        with file.open("rb") as lines:
            if len(list(islice(lines, 2))) == 2:
                return True
    return False


def _arguments(options: Mapping[str, Any], test: Any) -> dict[str, Any]:
    """Return the arguments of `mercer.fit` that are not its defaults."""
    from mercer import machines  # noqa: PLC0415  help needs none of it

    found = {
        name: options[name]
        for name in ("target", "task", "positive", "costs", "scoring", "time_limit")
    }
    machine = options["machine"]
    found |= {
        "machine": machine and getattr(machines, MACHINES[machine])(),
        "kernels": list(options["kernel"]) or None,
        "kinds": kinds_of(options) or None,
        "drop": options["drop"] or None,
        "cv": options["folds"],
        "refit": options["refit"] or None,
        "random_state": options["seed"] or None,
    }
    if options["approximation"] != "auto":
        found["approximation"] = options["approximation"]
    if test is not None:
        found["test"] = test
    elif options["held_out"] != 0.2:
        found["test"] = options["held_out"] or None
    return {n: v for n, v in found.items() if v is not None or (n == "test" and test is None)}


def _program(data: str, files: Files, options: Mapping[str, Any]) -> list[str]:
    """Write the call of `mercer.fit`; what it decides is in the report, as Python too."""
    reader = "".join(f", {name}={value!r}" for name, value in read_arguments(options).items())
    given = _arguments({**options, "machine": None}, None)
    target = given.pop("target")
    arguments = [f"{name}={value!r}" for name, value in given.items()]
    imports = ["import mercer", "from mercer.data import read"]
    if options["machine"]:
        arguments.append(f"machine=mercer.{MACHINES[options['machine']]}()")
    if options["test"]:
        arguments = [one for one in arguments if not one.startswith("test=")]
        arguments.append(f"test=read({options['test']!r}{reader})")
    call = "".join(f", {one}" for one in arguments)
    made = f"model = mercer.fit(read({data!r}{reader}), {target!r}{call})"
    fitted = [made]
    if options["scheduler"]:
        imports.append("from mercer.distributed import on_cluster")
        fitted = [f"with on_cluster({options['scheduler']!r}):", f"    {made}"]
    lines = [
        *fitted,
        "print(model)",
        f"mercer.save(model, {str(files.model)!r})",
    ]
    if files.report is not None:
        imports.append("from mercer.report import write_report")
        lines.append(f"write_report(model, {str(files.report)!r})")
    return [*imports, "", *lines]
