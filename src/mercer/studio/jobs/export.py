"""`export`: the model as a file, the program that makes it, the points as data."""

from __future__ import annotations

import base64
import csv
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from mercer.files import save
from mercer.files.libsvm import write_libsvm_data
from mercer.fitting.model import (
    expression_of,
    imports_of,
    pipeline_lines,
    table_imports,
    table_lines,
)
from mercer.studio.catalog import with_indicators, with_targets
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell, machine_of
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import Scene, rows_of, target_of, used_columns

_BYTES, _TEXT = "application/octet-stream", "text/plain"
_MOST = 32 << 20  # bytes of a file that goes through the socket


def export_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Return a file for the user to keep."""
    what = request.get("what")
    if not isinstance(what, str) or what not in _EXPORTS:
        raise RefusalError(f"what must be one of {', '.join(_EXPORTS)}", parameter="what")
    name, kind, content = _EXPORTS[what](bench, request, tell)
    if len(content) > _MOST:
        raise RefusalError(
            f"{name} would have {len(content) >> 20} MB; the page takes {_MOST >> 20} MB. Choose "
            "fewer columns, or run the Python code"
        )
    return {"name": name, "type": kind, "base64": base64.b64encode(content).decode("ascii")}


def _model(bench: Bench, request: dict[str, Any], tell: Tell) -> tuple[str, str, bytes]:
    """Write a model file; for a table it takes the columns of the table."""
    scene, fitted = bench.fitted(request, tell)
    model, rows = fitted.machine, fitted.rows
    if rows.preparation is not None:
        if scene.task == "classes" and scene.entry.fit is with_targets:
            model = clone(model).fit(rows.X, np.array(rows.names)[rows.y])  # it predicts names
        model = Pipeline([("prepare", rows.preparation), ("machine", model)])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "studio.mercer"
        save(model, path)
        return path.name, _BYTES, path.read_bytes()


def _python(bench: Bench, request: dict[str, Any], tell: Tell) -> tuple[str, str, bytes]:
    """Write a Python script that fits the same estimator."""
    scene = bench.scene(request)
    rows = rows_of(scene, bench.table, bench.limits)
    machine = machine_of(scene, rows)
    lines = _of_table(bench, scene, machine) if scene.table else _of_points(scene, rows, machine)
    return "studio.py", "text/x-python", ("\n".join(lines) + "\n").encode()


def _of_points(scene: Scene, rows: Any, machine: Any) -> list[str]:
    targets = (
        [] if rows.y is None or scene.task == "unlabelled" else [f"y = np.array({rows.y.tolist()})"]
    )
    second = ", y" if targets else ""
    if scene.entry.name == "CCA":
        second = ", (y[:, None] == np.unique(y)).astype(float)"
    return [
        "import numpy as np",
        *imports_of(machine),
        "",
        f"X = np.array({rows.X.tolist()})",
        *targets,
        f"machine = {expression_of(machine)}.fit(X{second})",
        *(["print(machine.certificate_)"] if certified(machine) else []),
    ]


def certified(machine: Any) -> bool:
    """Return whether an estimator has a certificate after its fit.

    Examples
    --------
    >>> from mercer import SVC
    >>> certified(SVC())
    True
    """
    return hasattr(type(machine), "certificate_")


def _of_table(bench: Bench, scene: Scene, machine: Any) -> list[str]:
    assert scene.table is not None
    table = bench.table(scene.table.id)
    target = scene.table.target
    used = {*used_columns(table, scene), *([] if target is None else [target])}
    drop = [name for name in table.columns if name not in used]
    source = bench.files.get(scene.table.id, "table.csv")
    rows = "table" if target is None else f"table.drop({target!r})"
    second = "" if target is None else f", table[{target!r}]"
    if scene.entry.fit is with_indicators:
        second = f", (np.array(table[{target!r}])[:, None] == np.unique(table[{target!r}])) * 1.0"
    chosen = _chosen_rows(bench, scene)
    return [
        *(["import numpy as np"] if chosen or "np." in second else []),
        "from sklearn.pipeline import Pipeline",
        *imports_of(machine),
        *table_imports(source),
        "",
        *table_lines(source, {}, drop),
        *chosen,
        *pipeline_lines(machine),
        f"model.fit({rows}{second})",
        *(['print(model["machine"].certificate_)'] if certified(machine) else []),
    ]


def _chosen_rows(bench: Bench, scene: Scene) -> list[str]:
    """Write the selection of training rows, if not all are used, for `table_rows`."""
    assert scene.table is not None
    table, most = bench.table(scene.table.id), bench.limits.rows
    kept = len(target_of(table, scene.table.target, scene.task).kept)
    lines = []
    if kept < len(table):
        column = f"table.column({scene.table.target!r})"
        has = f"~{column}.missing" if scene.task == "classes" else f"np.isfinite({column}.values)"
        lines.append(f"table = table.rows(np.flatnonzero({has}))")
    if kept > most:
        some = f"np.random.default_rng(0).choice(len(table), {most}, replace=False)"
        lines.append(f"table = table.rows(np.sort({some}))")
    return lines


def _libsvm(bench: Bench, request: dict[str, Any], tell: Tell) -> tuple[str, str, bytes]:
    """Write the rows in LIBSVM's format."""
    rows = rows_of(bench.scene(request), bench.table, bench.limits)
    targets = None if rows.y is None else rows.y
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "studio.libsvm"
        write_libsvm_data(rows.X, targets, path)
        return path.name, _TEXT, path.read_bytes()


def _csv(bench: Bench, request: dict[str, Any], tell: Tell) -> tuple[str, str, bytes]:
    """Write the training rows in CSV."""
    rows = rows_of(bench.scene(request), bench.table, bench.limits)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*rows.columns, *([] if rows.y is None else ["y"])])
    table = rows.X if rows.y is None else np.column_stack([rows.X, rows.y])
    writer.writerows(table.tolist())
    return "studio.csv", "text/csv", text.getvalue().encode()


_EXPORTS: dict[str, Callable[[Bench, dict[str, Any], Tell], tuple[str, str, bytes]]] = {
    "model": _model,
    "python": _python,
    "libsvm": _libsvm,
    "csv": _csv,
}
