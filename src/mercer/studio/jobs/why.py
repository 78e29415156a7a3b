"""`why`: what decides at a point, and by how much."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer.array_types import Array
from mercer.studio.drawing import Fitted
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.fitting import Tell
from mercer.studio.limits import RefusalError
from mercer.studio.scenes import is_number


def why_job(bench: Bench, request: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Return the contributions to the prediction at a point, the largest first."""
    scene, fitted = bench.fitted(request, tell)
    reason = scene.entry.reason
    if reason is None:
        raise RefusalError(
            f"the prediction of {scene.entry.name} is neither a sum over points nor a sum of parts"
        )
    x = _row(fitted, request)
    return {**_said(fitted, x), **reason(fitted, x)}


def _row(fitted: Fitted, request: dict[str, Any]) -> Array:
    """Return the row that is asked about: a point of the plane, or a row of the table."""
    rows, place = fitted.rows, request.get("row")
    if place is not None:
        found = np.flatnonzero(rows.index == place) if is_number(place) else np.empty(0, int)
        if not len(found):
            raise RefusalError("there is no row with this index", parameter="row")
        return np.asarray(rows.X[found[:1]])
    at = request.get("at")
    if not isinstance(at, list) or len(at) != 2 or not all(map(is_number, at)):
        raise RefusalError("at must be two numbers", parameter="at")
    return np.asarray(rows.back(np.array([at], dtype=np.float64)), dtype=np.float64)


def _said(fitted: Fitted, x: Array) -> dict[str, Any]:
    """Return the estimator's own values for a row."""
    machine = fitted.machine
    found: dict[str, Any] = {"label": None, "probability": None, "pair": None}
    if is_classifier(machine):
        found["label"] = machine.predict(x)[0]
        if len(machine.classes_) == 2:
            found["pair"] = machine.classes_  # terms below zero speak for the first
        if hasattr(machine, "predict_proba"):
            found["probability"] = machine.predict_proba(x)[0]
    values = machine.decision_function if hasattr(machine, "decision_function") else machine.predict
    value = np.ravel(values(x))
    found["value"] = value[0] if len(value) == 1 else value.max()
    return found
