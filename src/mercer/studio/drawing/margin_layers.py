"""Support vectors by zone, with their slacks and multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.margin.zones import Zones
from mercer.studio.drawing.fitted import Fitted

_WORST_FIRST = ("inside", "on", "beyond", "")  # zones of a row in the machines of several pairs


def support(fitted: Fitted) -> dict[str, Any]:
    """Return the support vectors of a classifier or of regression, and the zones of all rows."""
    rows = fitted.rows
    return _layers(fitted, fitted.machine.zones(rows.X, rows.y))


def border(fitted: Fitted) -> dict[str, Any]:
    """Return the support vectors of a detector of novelty, and the zones of all rows."""
    found = _layers(fitted, fitted.machine.zones(fitted.rows.X))
    radius = getattr(fitted.machine, "radius_", None)
    return found if radius is None else {**found, "radius": float(radius)}


def _layers(fitted: Fitted, zones: Zones) -> dict[str, Any]:
    machine, rows = fitted.machine, fitted.rows
    zone, slack = _of_rows(zones)
    chosen = np.asarray(machine.support_)
    coefficient = np.asarray(machine.dual_coef_)
    if coefficient.ndim > 1:
        coefficient = np.abs(coefficient).sum(axis=1)
    return {
        "support": {
            "index": rows.index[chosen],
            "coefficient": coefficient,
            "zone": zone[chosen],
            "slack": slack[chosen],
        },
        "points": {"index": rows.index, "zone": zone, "slack": slack},
    }


def _of_rows(zones: Zones) -> tuple[Array, Array]:
    """Return one zone and slack for each row: with several pairs of classes the worst."""
    if zones.zone.ndim == 1:
        return zones.zone, zones.slack
    rank = np.select([zones.zone == word for word in _WORST_FIRST], range(len(_WORST_FIRST)))
    worst = rank.min(axis=1)
    return np.array(_WORST_FIRST)[worst], zones.slack.max(axis=1)
