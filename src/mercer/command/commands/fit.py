"""`mercer fit`: from a table to a certified model and its report."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mercer.command.commands.check import findings_values, shape_of
from mercer.command.ending import NotCertifiedError
from mercer.command.names import refuse_overwriting, size_of, stem_of
from mercer.command.session import Session
from mercer.command.tables import DATA, column_of, read_table, reading
from mercer.command.text import aligned, printable
from mercer.command.work import Work, python, seed, strict, time_limit

if TYPE_CHECKING:
    from mercer.fitting import TableModel


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
@click.option("--target", "-t", metavar="COLUMN", required=True, help="The column to predict.")
@click.option(
    "--output", "-o", type=click.Path(), metavar="FILE",
    help="The model file; by default the name of DATA with .mercer, here.",
)  # fmt: skip
@click.option(
    "--report", type=click.Path(), metavar="FILE",
    help="The report; by default the name of the model with .html.",
)  # fmt: skip
@click.option("--no-report", is_flag=True, help="Write no report.")
@click.option(
    "--task", type=click.Choice(["classification", "regression"]),
    help="By default what the target says.",
)  # fmt: skip
@click.option("--machine", metavar="NAME", help="svc, logistic, ridge, ...; SVC or ridge else.")
@click.option("--kernel", metavar="KERNEL", help="This kernel alone; see `mercer kernels`.")
@click.option("--test", type=click.Path(), metavar="FILE", help="Judge by this table instead.")
@click.option(
    "--held-out", type=click.FloatRange(0, 0.9), default=0.2, show_default=True,
    help="Share of the rows to judge by.",
)  # fmt: skip
@click.option("--resume/--no-resume", default=True, help="Go on from a journal, or start anew.")
@reading
@time_limit
@seed
@strict
@python
@click.pass_obj
def fit(session: Session, data: str, target: str, **options: Any) -> None:
    """Read, fit, write, tell."""
    files = _files(data, options)
    if options["python"]:
        session.program(_program(data, target, files, options))
        return
    import mercer  # noqa: PLC0415  help needs none of it

    reader = {name: options[name] for name in READER}
    table = read_table(data, **reader)
    column_of(table.columns, target, "--target")
    session.note(f"{printable(data)}: {shape_of(table)}")
    if files.journal.exists():
        _take_up(session, files.journal, options["resume"])
    model = mercer.fit(
        table,
        target=target,
        test=options["held_out"] if options["test"] is None else read_table(options["test"], **reader),
        journal=files.journal,
        **_arguments(options),
    )
    mercer.save(model, files.model)
    if files.report is not None:
        from mercer.report import write_report  # noqa: PLC0415

        write_report(model, files.report)
    shutil.rmtree(files.journal, ignore_errors=True)
    session.result(_values(model, files), _text(model, files))
    if options["strict"]:
        refuse_uncertified(model.certificate)


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
    report = None if options["no_report"] else Path(options["report"] or model.with_suffix(".html"))
    refuse_overwriting([model, report], data, *([options["test"]] if options["test"] else []))
    return Files(model, report, model.with_name(f"{model.name}.journal"))


def _take_up(session: Session, journal: Path, resume: bool) -> None:
    if resume:
        session.note(f"going on from {printable(str(journal))}; --no-resume starts anew")
    else:
        shutil.rmtree(journal)


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `mercer.fit` that are not its defaults."""
    found = {name: options[name] for name in ("task", "machine", "time_limit")}
    found["random_state"] = options["seed"] or None
    found["kernel"] = options["kernel"]
    return {name: value for name, value in found.items() if value is not None}


def refuse_uncertified(certificate: Any) -> None:
    """End with the code for it unless a certificate holds."""
    if not certificate.ok:
        raise NotCertifiedError(f"not certified: {certificate.statement}")


def _values(model: TableModel, files: Files) -> dict[str, Any]:
    settings = model.settings
    return {
        "model": files.model,
        "report": files.report,
        "target": model.target,
        "task": model.task,
        "classes": list(model.classes),
        "rows": settings.rows,
        "trained_rows": settings.trained_rows,
        "held_out_rows": settings.held_out_rows,
        "evaluation": model.evaluation.to_dict(),
        "chosen": chosen_values(model),
        "certificate": certificate_values(model.certificate),
        "findings": findings_values(model.findings),
        "notes": list(model.notes),
        "seed": settings.random_state,
        "versions": dict(settings.versions),
        "digest": settings.digest,
        "seconds": dict(settings.seconds),
    }


def chosen_values(model: TableModel) -> dict[str, Any] | None:
    """Return what was compared, for JSON."""
    choice = model.choice
    if choice is None:
        return None
    return {
        "name": choice.contenders[choice.chosen].name,
        "params": {k: str(v) for k, v in choice.contenders[choice.chosen].tuning.best_params.items()},
        "reason": choice.reason,
        "compared": [
            {
                "name": one.name,
                "score": float(one.tuning.mean[one.tuning.best]),
                "error": float(one.tuning.standard_error[one.tuning.best]),
                "seconds": one.tuning.seconds,
            }
            for one in choice.contenders
        ],
    }


def certificate_values(certificate: Any) -> dict[str, Any]:
    """Return a certificate for JSON."""
    return {"ok": bool(certificate.ok), "statement": certificate.statement}


def _text(model: TableModel, files: Files) -> str:
    settings = model.settings
    rows = [("target", f"{model.target}: {_task(model)}")]
    rows += [(one.level, one.message) for one in model.findings]
    if model.choice is not None:
        rows.append(("chosen", f"{_best(model)}. {model.choice.reason}"))
    judged = model.evaluation
    for metric in judged.metrics:
        interval = f"{metric.low:.4g} to {metric.high:.4g}"
        rows.append((metric.name, f"{metric.value:.4g} ({interval}; constant {metric.baseline:.4g})"))
    rows.append(("judged by", f"{len(judged.truth)} rows ({judged.kind}), {100 * judged.level:g} % intervals"))
    ok = model.certificate.ok
    rows.append(("certified" if ok else "NOT certified", model.certificate.statement))
    rows.append(("seconds", ", ".join(f"{k} {v:.1f}" for k, v in settings.seconds.items())))
    rows.append(("model", f"{files.model} ({size_of(files.model)})"))
    if files.report is not None:
        rows.append(("report", f"{files.report} ({size_of(files.report)})"))
    return aligned(rows)


def _best(model: TableModel) -> str:
    assert model.choice is not None
    taken = model.choice.contenders[model.choice.chosen]
    params = ", ".join(f"{name.rpartition('__')[2]}={value}" for name, value in taken.tuning.best_params.items())
    return f"{taken.name} ({params})" if params else taken.name


def _task(model: TableModel) -> str:
    if model.task == "regression":
        return "a number"
    return f"{len(model.classes)} classes ({', '.join(str(one) for one in model.classes[:6])}{', ...' if len(model.classes) > 6 else ''})"


def _program(data: str, target: str, files: Files, options: Mapping[str, Any]) -> list[str]:
    ...
