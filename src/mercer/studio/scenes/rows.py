"""The rows of a scene: of the points that were painted, or of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Table
from mercer.studio.drawing.fitted import Rows
from mercer.studio.limits import StudioLimits
from mercer.studio.scenes.scene import SQUARE, Scene
from mercer.studio.scenes.table_rows import table_rows


def rows_of(scene: Scene, tables: Callable[[str], Table], limits: StudioLimits) -> Rows:
    """Return the rows that the machine of a scene learns from.

    Points without a label are left out, unless the machine learns from them, too.

    Parameters
    ----------
    scene : Scene
        What is shown.
    tables : callable
        Returns the table of an id.
    limits : StudioLimits
        How many rows are used.
    """
    if scene.table is not None:
        found = table_rows(scene, tables(scene.table.id), limits)
    else:
        assert scene.points is not None  # a scene has one or the other
        found = _OF_POINTS[scene.task](scene.points, scene.view.bounds or SQUARE)
    if scene.task == "classes" and not scene.entry.partly and found.y is not None:
        found = found.take(np.flatnonzero(found.y >= 0))
    return found


def _classes(points: Array, bounds: Any) -> Rows:
    labels = points[:, 2].astype(int)
    names = tuple(str(one + 1) for one in np.unique(labels[labels >= 0]).tolist())  # as on keys
    return _in_the_plane(points[:, :2], labels, bounds, names)


def _targets(points: Array, bounds: Any) -> Rows:
    return _in_the_plane(points[:, :2], points[:, 2], bounds)


def _unlabelled(points: Array, bounds: Any) -> Rows:
    return _in_the_plane(points[:, :2], None, bounds)


def _curve(points: Array, bounds: Any) -> Rows:
    index = np.arange(len(points))
    return Rows(
        points[:, :1], points[:, 1], index, points[:, :2], lambda at: at[:, :1], bounds,
        axes=("x", "y"), columns=("x",),
    )  # fmt: skip


def _in_the_plane(places: Array, y: Array | None, bounds: Any, names: tuple[str, ...] = ()) -> Rows:
    index = np.arange(len(places))
    return Rows(places, y, index, places, lambda at: at, bounds, names=names)


_OF_POINTS: dict[str, Callable[[Array, Any], Rows]] = {
    "classes": _classes,
    "regression": _curve,
    "targets": _targets,
    "unlabelled": _unlabelled,
}
