"""`report`: the report of `mercer fit`, or of `mercer cluster` and `mercer project`, in one go."""

from __future__ import annotations

import base64
import warnings
from typing import Any

from mercer.data import Table
from mercer.fitting import cluster, fit, project
from mercer.fitting.phases import FitProgress
from mercer.report import render
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell
from mercer.studio.scenes import Scene, rows_of, used_columns

_TASKS = {"classes": "classification", "regression": "regression", "targets": "regression"}
_PAINTED = "y"  # name of the target of points


def report_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Make a model of the table, or of the points, as the command does, and return its report."""
    scene = bench.scene(request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report has them
        model = (
            _unlabelled(bench, scene) if scene.task == "unlabelled" else _fit(bench, scene, tell)
        )
        page = render(model)
    content = base64.b64encode(page.encode()).decode("ascii")
    return {"name": "report.html", "type": "text/html", "base64": content}


def _fit(bench: Bench, scene: Scene, tell: Tell) -> Any:
    table, target = _table(bench, scene)

    def told(progress: FitProgress) -> None:
        tell({"words": f"{progress.phase}: {progress.text}"})

    limit = bench.limits.long_seconds
    return fit(
        table, target, task=_TASKS[scene.task], time_limit=limit, callback=told, max_rows=2000
    )


def _unlabelled(bench: Bench, scene: Scene) -> Any:
    """Return a plot of the clusters if the estimator clusters, and of projections otherwise."""
    table, _ = _table(bench, scene)
    count = scene.parameters.get("n_clusters")
    return project(table) if count is None else cluster(table, clusters=count)


def _table(bench: Bench, scene: Scene) -> tuple[Table, str]:
    if scene.table is not None:
        table = bench.table(scene.table.id)
        target = scene.table.target
        kept = [*used_columns(table, scene), *([] if target is None else [target])]
        return table[kept], str(target)
    rows = rows_of(scene, bench.table, bench.limits)
    columns = {name: rows.X[:, k] for k, name in enumerate(rows.columns)}
    if rows.y is not None and scene.task == "classes":
        columns[_PAINTED] = [f"class {one + 1}" for one in rows.y.tolist()]  # type: ignore[assignment]
    elif rows.y is not None:
        columns[_PAINTED] = rows.y
    return Table.of(columns), _PAINTED
