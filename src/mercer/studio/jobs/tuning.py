"""`curve` and `tune`: scores on points that were left out, along one parameter or over a grid."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.array_types import Array
from mercer.selection import tune
from mercer.studio.catalog import Integer, Number, numbers_of
from mercer.studio.drawing import SceneRows
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell, machine_of
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import Scene, is_number, rows_of

_FOLDS = 5
_ONE_OUT = "leave-one-out"
_ALONE = 60  # points that are left out one at a time; of more, a fifth at a time
_STEPS = 15  # places of a curve
_SIDE = 9  # places of a side of a grid
_LARGEST = 21
_AROUND = 30.0  # a slider of a kernel is searched within this factor of its value


def curve_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Evaluate values of one parameter by cross-validation."""
    scene = bench.scene(request)
    rows = judged_rows(bench, scene)
    name = request.get("parameter")
    values = values_of(scene, rows, name, _STEPS)
    cv, how = folds_of(rows, scene)
    score, error = np.full(len(values), np.nan), np.full(len(values), np.nan)
    for k, value in enumerate(values):
        found = _judged(scene, rows, {str(name): [value]}, cv)
        score[k], error[k] = found.mean[0], found.standard_error[0]
        tell({"at": value, "score": score[k], "error": error[k], "done": k + 1, "of": len(values)})
    return {
        "parameter": name,
        "x": values,
        "score": _known(score),
        "error": None if how == _ONE_OUT else _known(error),
        "name": _score_name(scene, how),
        "how": how,
        "best": None if np.isnan(score).all() else values[int(np.nanargmax(score))],
    }


def tune_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Evaluate a grid of two parameters, one row at a time; the fits of a row share work."""
    scene = bench.scene(request)
    rows = judged_rows(bench, scene)
    names = [request.get("rows"), request.get("columns")]
    defaults = _axes(scene, rows)
    if None in names and len(defaults) < 2:
        raise RefusalError(f"{scene.entry.name} has no two parameters to tune here")
    first, second = (name or default for name, default in zip(names, defaults, strict=True))
    sides = [
        {"name": name, "values": values_of(scene, rows, name, count)}
        for name, count in zip((first, second), _counts(request), strict=True)
    ]
    cv, how = folds_of(rows, scene)
    tell({"rows": sides[0], "columns": sides[1]})
    score = _grid(scene, rows, sides, cv, tell)
    best = None
    if not np.isnan(score).all():
        i, j = np.unravel_index(int(np.nanargmax(score)), score.shape)
        best = {
            "parameters": {first: sides[0]["values"][i], second: sides[1]["values"][j]},
            "score": score[i, j],
            "cell": [i, j],
        }
    return {
        "rows": sides[0],
        "columns": sides[1],
        "score": [_known(row) for row in score],
        "best": best,
        "name": _score_name(scene, how),
        "how": how,
    }


def _grid(scene: Scene, rows: SceneRows, sides: list[dict[str, Any]], cv: Any, tell: Tell) -> Array:
    """Evaluate all cells, those of one column together."""
    across, down = sides[1]["values"], sides[0]["values"]
    score, done = np.full((len(down), len(across)), np.nan), 0
    for j, value in enumerate(across):
        found = _judged(scene, rows, {sides[0]["name"]: down, sides[1]["name"]: [value]}, cv)
        for point, mean in zip(found.points, found.mean, strict=True):
            i = down.index(point[sides[0]["name"]])
            score[i, j], done = mean, done + 1
            cell = {"cell": [i, j], "score": None if np.isnan(mean) else mean}
            tell({**cell, "done": done, "of": score.size})
    return score


def judged_rows(bench: Bench, scene: Scene) -> SceneRows:
    """Return the rows used for evaluation: those with a label."""
    rows = rows_of(scene, bench.table, bench.limits)
    if rows.y is None or scene.entry.partly:
        raise RefusalError(f"{scene.entry.name} has no cross-validation score")
    if len(rows.X) < 4:
        raise RefusalError("there are too few points to leave some of them out")
    return rows


def folds_of(rows: SceneRows, scene: Scene) -> tuple[Any, str]:
    """Return which points are left out: one at a time of few, a fifth at a time of many."""
    if len(rows.X) <= _ALONE:
        return "loo", _ONE_OUT
    if scene.task != "classes":
        return KFold(_FOLDS, shuffle=True, random_state=0), f"{_FOLDS}-fold"
    return StratifiedKFold(_FOLDS, shuffle=True, random_state=0), f"{_FOLDS}-fold"


def values_of(scene: Scene, rows: SceneRows, name: Any, count: int) -> list[Any]:
    """Return values of a parameter, along its slider."""
    known = scene.entry.parameter(name) if isinstance(name, str) else None
    if isinstance(known, Number | Integer):
        whole = isinstance(known, Integer)
        return _spaced(known.low, known.high, count, known.scale == "log", whole)
    kernel = getattr(machine_of(scene, rows), scene.entry.kernel_name, None)
    numbers = [] if kernel is None else numbers_of(kernel)
    found = next((one for one in numbers if one["name"] == name), None)
    if found is None:
        raise RefusalError(
            f"{str(name)[:40]!r} is not a parameter with a slider", parameter=str(name)
        )
    low, high, log = found["low"], found["high"], found["scale"] == "log"
    if log:
        low, high = max(low, found["value"] / _AROUND), min(high, found["value"] * _AROUND)
    return _spaced(low, high, count, log, found["kind"] == "integer")


def _spaced(low: float, high: float, count: int, log: bool, whole: bool) -> list[Any]:
    values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    if whole:
        return sorted({round(value) for value in values.tolist()})
    return [float(f"{value:.4g}") for value in values.tolist()]


def _judged(scene: Scene, rows: SceneRows, grid: dict[str, Any], cv: Any) -> Any:
    machine = machine_of(scene, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # single places of a grid may go wrong: they have no score
        return tune(machine, rows.X, rows.y, grid=_named(scene, grid), cv=cv)


def _named(scene: Scene, grid: dict[str, Any]) -> dict[str, Any]:
    """Return a grid by the parameter names of the estimator."""
    own = scene.entry.kernel_name
    return {
        f"{own}__{name.removeprefix('kernel__')}" if name.startswith("kernel__") else name: values
        for name, values in grid.items()
    }


def _axes(scene: Scene, rows: SceneRows) -> list[str]:
    """Return the two grid parameters that the estimator and its kernel have."""
    kernel = getattr(machine_of(scene, rows), scene.entry.kernel_name, None)
    inner = [] if kernel is None else [one["name"] for one in numbers_of(kernel)]
    own = [one.name for one in scene.entry.parameters if getattr(one, "curve", False)]
    asked = [name for name in scene.entry.tune if name in inner or name in own]
    others = [name for name in [*own, *inner] if name not in asked]
    return [*asked, *others][:2]


def _counts(request: dict[str, Any]) -> tuple[int, int]:
    found = request.get("count", [_SIDE, _SIDE])
    if not isinstance(found, list) or len(found) != 2 or not all(map(is_number, found)):
        raise RefusalError("count must be two numbers", parameter="count")
    if not all(2 <= one <= _LARGEST for one in found):
        raise RefusalError(f"count must be from 2 to {_LARGEST}", parameter="count")
    return int(found[0]), int(found[1])


def _score_name(scene: Scene, how: str) -> str:
    if is_classifier(scene.entry.kind()):
        return "accuracy"
    return "minus the mean squared error" if how == _ONE_OUT else "R2"


def _known(values: Array) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
