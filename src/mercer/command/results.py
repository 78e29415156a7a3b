"""Format results as text and JSON, and name output files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mercer.command.terminal import aligned, printable
from mercer.command.work import NotCertifiedError

if TYPE_CHECKING:
    from mercer.data import Table
    from mercer.fitting import Evaluation, TableModel


# --- names of output files -----------------------------------------------------------------------

_COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}


def stem_of(data: str) -> str:
    """Return the name of a file without folder and extensions; `model` for a pipe.

    Examples
    --------
    >>> stem_of("/data/people.csv.gz"), stem_of("-")
    ('people', 'model')
    """
    if data == "-":
        return "model"
    name = Path(data)
    if name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return name.stem or "model"


def refuse_overwriting(outputs: Iterable[str | os.PathLike[str] | None], *inputs: str) -> None:
    """Raise if an output is an input, another output or a folder."""
    seen: set[str] = set()
    for output in outputs:
        if output is None:
            continue
        place = os.path.realpath(output)
        if any(name != "-" and os.path.realpath(name) == place for name in inputs):
            raise click.UsageError(f"{os.fspath(output)!r} is an input; write to another file")
        if place in seen:
            raise click.UsageError(f"{os.fspath(output)!r} would be written twice")
        if os.path.isdir(place):
            raise click.UsageError(f"{os.fspath(output)!r} is a folder; specify a file in it")
        seen.add(place)
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            raise click.UsageError(f"{os.fspath(output)!r}: folder {folder!r} does not exist")


def size_of(path: str | os.PathLike[str]) -> str:
    """Return the size of a file with a unit.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes(1500)), file.flush()
    ...     size_of(file.name)
    '1.5 kB'
    """
    size = float(os.path.getsize(path))
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


# --- results as text and JSON --------------------------------------------------------------------

_SHOWN = 6  # classes in the summary


def refuse_uncertified(certificate: Any) -> None:
    """Raise `NotCertifiedError` unless a certificate holds."""
    if not certificate.ok:
        raise NotCertifiedError(f"not certified: {certificate.statement.split(';')[0]}")


def shape_of(table: Table) -> str:
    """Return the numbers of rows and columns of a table as text."""
    kinds = Counter(kind.value for kind in table.kinds.values())
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{len(table)} rows, {len(table.columns)} columns ({shown})"


def finding_values(findings: Any) -> list[dict[str, Any]]:
    """Return findings for JSON."""
    return [
        {"level": f.level, "code": f.code, "columns": list(f.columns), "message": f.message}
        for f in findings
    ]


def certificate_values(certificate: Any) -> dict[str, Any]:
    """Return a certificate for JSON."""
    return {"ok": bool(certificate.ok), "statement": certificate.statement}


def certificate_row(certificate: Any) -> tuple[str, str]:
    """Return a certificate as a row of the summary."""
    return ("certified" if certificate.ok else "NOT certified", certificate.statement)


def origin_values(model: Any) -> dict[str, Any]:
    """Return certificate, findings and settings of a model for JSON."""
    settings = model.settings
    return {
        "certificate": certificate_values(model.certificate),
        "findings": finding_values(model.findings),
        "notes": list(model.notes),
        "seed": settings.random_state,
        "versions": dict(settings.versions),
        "digest": settings.digest,
        "seconds": dict(settings.seconds),
    }


def fit_values(model: TableModel, path: Path, report: Path | None) -> dict[str, Any]:
    """Return the result of a fit for JSON."""
    settings = model.settings
    return {
        "model": path,
        "report": report,
        "target": model.target,
        "task": model.task,
        "classes": list(model.classes),
        "rows": settings.rows,
        "trained_rows": settings.trained_rows,
        "held_out_rows": settings.held_out_rows,
        "evaluation": model.evaluation.to_dict(),
        "chosen": _chosen_values(model),
        **origin_values(model),
    }


def _chosen_values(model: TableModel) -> dict[str, Any] | None:
    choice = model.choice
    if choice is None:
        return None
    taken = choice.contenders[choice.chosen]
    return {
        "name": taken.name,
        "parameters": {name: str(value) for name, value in taken.tuning.best_params.items()},
        "reason": choice.reason,
        "compared": [
            {
                "name": one.name,
                "score": float(one.tuning.mean[one.tuning.best]),
                "error": float(one.tuning.standard_error[one.tuning.best]),
                "points": len(one.tuning.points),
                "seconds": one.tuning.seconds,
            }
            for one in choice.contenders
        ],
    }


def fit_text(model: TableModel, files: Any) -> str:
    """Return the result of a fit as text."""
    rows = [("target", f"{model.target}: {_task(model)}")]
    rows += [(one.level, one.message) for one in model.findings]
    if model.choice is not None:
        rows.append(("chosen", f"{_best(model)}. {model.choice.reason}"))
    rows += metric_rows(model.evaluation) + constant_rows(model.evaluation)
    rows.append(certificate_row(model.certificate))
    seconds = model.settings.seconds
    parts = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items() if value > 0.05)
    rows.append(("seconds", f"{sum(seconds.values()):.1f} ({parts})"))
    rows.append(file_row("model", files.model))
    if files.report is not None:
        rows.append(file_row("report", files.report))
    return aligned(rows)


def file_row(name: str, path: Path) -> tuple[str, str]:
    """Return an output file as a row of the summary."""
    return name, f"{printable(str(path))} ({size_of(path)})"


def metric_rows(judged: Evaluation) -> list[tuple[str, str]]:
    """Return scores with their intervals as rows of the summary."""
    rows = [("evaluated on", f"{len(judged.truth)} rows ({judged.kind})")]
    for one in judged.metrics:
        interval = f"{100 * judged.level:g} % interval {one.low:.4g} to {one.high:.4g}"
        constant = "" if one.baseline != one.baseline else f"; a constant: {one.baseline:.4g}"
        rows.append((one.name, f"{one.value:.4g} ({interval}{constant})"))
    return rows


def constant_rows(judged: Evaluation) -> list[tuple[str, str]]:
    """Return a warning if the first score may not exceed that of a constant prediction."""
    if not judged.metrics or judged.metrics[0].beats_constant is not False:
        return []
    name = judged.metrics[0].name
    return [("warning", f"the {name} of the model is not significantly better than a constant's")]


def _best(model: TableModel) -> str:
    assert model.choice is not None
    taken = model.choice.contenders[model.choice.chosen]
    found = {name.rpartition("__")[2]: v for name, v in taken.tuning.best_params.items()}
    params = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={_short(str(value))}"
        for name, value in found.items()
    )
    return f"{taken.name} ({params})" if params else taken.name


def _short(text: str) -> str:
    """Return a kernel expression with numbers rounded to four digits."""
    return re.sub(r"\d+\.\d{4,}(e[+-]?\d+)?", lambda found: f"{float(found[0]):.4g}", text)


def _task(model: TableModel) -> str:
    if model.task == "regression":
        return "a number"
    names = [str(one) for one in model.classes[:_SHOWN]]
    more = ", ..." if len(model.classes) > _SHOWN else ""
    return f"{len(model.classes)} classes ({', '.join(names)}{more})"
