"""Job `fit` of the studio, and its response."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.studio.catalog import Entry
from mercer.studio.drawing import Fitted, PlaneGrid, SceneRows, Surface, drawn, plain_curve
from mercer.studio.frames import packed
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell, how_it_ended
from mercer.studio.scenes import Scene

# --- responses -----------------------------------------------------------------------------------
#
# The response to a fit: its status, and what the page draws.


def answer_of(scene: Scene, fitted: Fitted) -> dict[str, Any]:
    """Return all fields of the response to a fit."""
    pictures = _curve(scene, fitted) if scene.task == "regression" else _plane(scene, fitted)
    return {
        **how_it_ended(fitted),
        **kernel_words(fitted),
        **pictures,
        "layers": {**layers_of(scene.entry, fitted), **_of_table(scene, fitted.rows)},
    }


def kernel_words(fitted: Fitted) -> dict[str, Any]:
    """Return the kernel that was used, as text."""
    kernel = getattr(fitted.machine, "kernel_", getattr(fitted.machine, "kernel_x_", None))
    return {"kernel": None if kernel is None else repr(kernel)}


def layers_of(entry: Entry, fitted: Fitted) -> dict[str, Any]:
    """Return the elements on top of the surface; fields of the same name are joined."""
    found: dict[str, Any] = {}
    for layer in entry.layers:
        for name, value in layer(fitted).items():
            known = found.get(name)
            found[name] = {**known, **value} if isinstance(known, dict) else value
    return found


def _plane(scene: Scene, fitted: Fitted) -> dict[str, Any]:
    view = scene.view
    grid = PlaneGrid(fitted.rows.bounds, view.nx, view.ny).at_most(scene.entry.finest)
    with np.errstate(all="ignore"):
        surface: Surface = scene.entry.surface(fitted, grid.points())
    return {**drawn(surface, grid), "curve": None}


def _curve(scene: Scene, fitted: Fitted) -> dict[str, Any]:
    x0, x1, *_ = fitted.rows.bounds
    found = (scene.entry.curve or plain_curve)(fitted, np.linspace(x0, x1, scene.view.nx))
    curve = {
        "x": found.x, "y": found.y, "low": found.low, "high": found.high, "band": found.band,
        "more_x": found.more_x, "more": found.more,
    }  # fmt: skip
    return {"surface": None, "regions": None, "curve": curve}


def _of_table(scene: Scene, rows: SceneRows) -> dict[str, Any]:
    """Return where the rows of a table lie; painted points are known to the page."""
    if scene.table is None:
        return {}
    found: dict[str, Any] = {
        "rows": packed(rows.places),
        "index": packed(rows.index),
        "names": rows.names,
        "axes": rows.axes,
        "note": rows.note,
        "bounds": rows.bounds,
    }
    if rows.y is not None:
        found["label" if scene.task == "classes" else "target"] = packed(rows.y)
    return found


# --- fit job -------------------------------------------------------------------------------------
#
# `fit`: fit the estimator of a scene and draw it.


def fit_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Fit; return the status and the drawing."""
    scene, fitted = bench.fitted(request, tell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = answer_of(scene, fitted)
    said = [*fitted.warnings, *(str(one.message) for one in caught)]
    return {**found, "warnings": list(dict.fromkeys(said))}
