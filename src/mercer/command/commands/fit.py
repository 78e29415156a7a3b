"""`mercer fit`: fit a certified model to a table and write its report."""

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
    click.option("--target", "-t", metavar="COLUMN", required=True, help="Column to predict."),
    click.option(
        "--output", "-o", type=click.Path(), metavar="FILE",
        help="Model file; default: name of DATA with extension .mercer.",
    ),
    click.option(
        "--report", type=click.Path(), metavar="FILE",
        help="Report file; default: the model's name with extension .html.",
    ),
    click.option("--no-report", is_flag=True, help="Skip the report."),
    click.option(
        "--task", type=click.Choice(["classification", "regression"]),
        help="Task; default: from the target column.",
    ),
    click.option(
        "--machine", type=click.Choice(list(MACHINES)), metavar="NAME",
        help=f"Estimator: {', '.join(MACHINES)}.",
    ),
    click.option(
        "--kernel", type=KERNEL, metavar="KERNEL", multiple=True,
        help="Kernel to compare; repeatable. `mercer kernels` lists them.",
    ),
    approximation,
    click.option(
        "--test", type=click.Path(), metavar="FILE", help="Evaluate on this table instead."
    ),
    click.option(
        "--held-out", type=click.FloatRange(0, 0.9), default=0.2, show_default=True,
        help="Fraction of rows held out; 0: evaluate by cross-validation.",
    ),
    click.option("--refit", is_flag=True, help="Refit the selected model on all rows."),
    click.option("--positive", metavar="LABEL", help="Positive class of a binary target."),
    click.option(
        "--costs", type=(float, float), metavar="FP FN",
        help="Costs of a false positive and a false negative.",
    ),
    click.option(
        "--scoring", type=SCORE, metavar="NAME", help="scikit-learn score to select by."
    ),
    click.option(
        "--folds", type=click.IntRange(min=2), help="Number of cross-validation folds; default: 5."
    ),
    click.option(
        "--scheduler", metavar="ADDRESS",
        help="Address of a Dask cluster to run on: tcp://HOST:8786.",
    ),
    click.option(
        "--resume/--no-resume", default=True, show_default=True,
        help="Resume an interrupted run, or start over.",
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
    help="Fit a certified model to a table.\n\nChecks the table, holds out rows, "
    "preprocesses the columns by kind, compares and tunes kernels on the same folds, fits, "
    "calibrates, certifies and evaluates the model on the held-out rows. Writes the model (-o) "
    "and an HTML report in the same folder.\n\nAn interrupted run leaves the journal "
    "MODEL.journal. Run the same command again to resume; it removes the journal once the model "
    "is written.\n\nWith --scheduler, the workers of a Dask cluster run the comparison. They read "
    "a file that exceeds the memory budget of this computer from a shared disk.",
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
    """Fit a model, write the files and print the result."""
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
        raise ValueError(f"{error}; --no-resume removes it and starts over") from error
    except BaseException:  # Ctrl-C as well
        if not _has_results(files.journal):
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
    """Connect to a cluster, if one is named."""
    if scheduler is None:
        return nullcontext()
    from mercer.rows.dask.cluster import on_cluster  # noqa: PLC0415  help needs none of it

    return on_cluster(scheduler)


@dataclass(frozen=True)
class Files:
    """Output files: model, report, and the journal until both are written."""

    model: Path
    report: Path | None
    journal: Path


def _files(data: str, options: Mapping[str, Any]) -> Files:
    if options["report"] and options["no_report"]:
        raise click.UsageError("--report and --no-report exclude each other")
    model = Path(options["output"] or f"{stem_of(data)}.mercer")
    default = model.with_name(f"{model.stem}.html")
    report = None if options["no_report"] else Path(options["report"] or default)
    refuse_overwriting([model, report], data, *([options["test"]] if options["test"] else []))
    return Files(model, report, model.with_name(f"{model.name}.journal"))


def _take_up(session: CommandSession, journal: Path, resume: bool) -> None:
    """Note that the run resumes from a journal, or remove the journal."""
    if resume and _has_results(journal):
        session.note(f"resuming from {printable(str(journal))}; use --no-resume to start over")
    elif journal.exists() and not resume:
        shutil.rmtree(journal)


def _has_results(journal: Path) -> bool:
    """Return whether a journal holds results after the header lines of its files."""
    if not journal.is_dir():
        return journal.exists()
    for file in journal.iterdir():
        with file.open("rb") as lines:
            if len(list(islice(lines, 2))) == 2:
                return True
    return False


def _arguments(options: Mapping[str, Any], test: Any) -> dict[str, Any]:
    """Return the arguments of `mercer.fit` that differ from the defaults."""
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
    """Write the call of `mercer.fit` as Python."""
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
