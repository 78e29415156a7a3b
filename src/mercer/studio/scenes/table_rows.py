"""Rows of a table, and the plane that they are shown in.

Columns become numbers as `mercer.fit` makes them (`TablePreparation`): standardized, categories as
indicators, gaps filled. The plane is one of two columns in their own units, the others held at
values that the page says; or one of two directions in the space of the prepared columns, whose
points stand for the rows of least norm with these coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation
from mercer.machines import CCA
from mercer.plots.directions import directions_of
from mercer.plots.planes import Columns, Plane, axis_of, plane_of
from mercer.studio.drawing.fitted import Bounds, Rows
from mercer.studio.limits import StudioLimits
from mercer.studio.refusal import RefusalError
from mercer.studio.scenes.scene import CLASSES, Scene

USABLE = (Kind.NUMBER, Kind.CATEGORY, Kind.BINARY)  # kinds that become few numbers
_STUDIO = "studio"  # who refuses, in messages


@dataclass(frozen=True, eq=False)
class Target:
    """Labels as whole numbers with their names, or numbers, and the rows that have one."""

    kept: Array
    values: Array | None
    names: tuple[str, ...] = ()


def table_rows(scene: Scene, table: Table, limits: StudioLimits) -> Rows:
    """Return rows of a table, at most as many as the limit, drawn at random."""
    assert scene.table is not None  # asked for with one
    target = target_of(table, scene.table.target, scene.task)
    kept = target.kept
    if not len(kept):
        raise RefusalError(
            f"{scene.table.target!r} is missing, or not finite, in every row", parameter="target"
        )
    if len(kept) > limits.rows:
        kept = np.sort(np.random.default_rng(0).choice(kept, limits.rows, replace=False))
    columns = used_columns(table, scene)
    chosen = table[list(columns)].rows(kept)
    preparation = TablePreparation()
    X = np.asarray(_dense(preparation.fit_transform(chosen)), dtype=np.float64)
    y = None if target.values is None else target.values[kept]
    view = _plane(scene, chosen, preparation, X, y)
    bounds = scene.view.bounds or bounds_of(view.points)
    return Rows(
        X, y, kept, view.points, view.rows, bounds, axes=(view.xlabel, view.ylabel),
        names=target.names, columns=tuple(map(str, preparation.get_feature_names_out())),
        note=view.note, preparation=preparation,
    )  # fmt: skip


def used_columns(table: Table, scene: Scene) -> tuple[str, ...]:
    """Return the names of the columns that are learnt from."""
    assert scene.table is not None
    usable = [
        name for name, kind in table.kinds.items() if kind in USABLE and name != scene.table.target
    ]
    asked = scene.table.columns
    unknown = [] if asked is None else [name for name in asked if name not in usable]
    if unknown:
        raise RefusalError(
            f"{unknown[0][:40]!r} is no column that can be learnt from; there are "
            f"{', '.join(usable[:8])}",
            parameter="table",
        )
    found = tuple(usable if asked is None else asked)
    if len(found) < 1:
        raise RefusalError("no column is left to learn from", parameter="table")
    return found


def target_of(table: Table, name: str | None, task: str) -> Target:
    """Return the labels or targets of a table."""
    if task == "unlabelled" or name is None:
        if task != "unlabelled":
            raise RefusalError("choose the column that is to be predicted", parameter="target")
        return Target(np.arange(len(table)), None)
    if name not in table:
        raise RefusalError(f"the table has no column {name[:40]!r}", parameter="target")
    column = table.column(name)
    kept = np.flatnonzero(~column.missing)
    if task == "classes":
        return _classes(name, np.asarray(column.values), kept)
    if column.kind is not Kind.NUMBER and column.values.dtype.kind != "f":
        raise RefusalError(f"{name!r} holds no numbers; take it for classes", parameter="target")
    values = np.asarray(column.values, dtype=np.float64)
    if task == "regression":
        raise RefusalError(
            "a curve is of one column; numbers on a plane are the task 'targets'", parameter="task"
        )
    return Target(kept[np.isfinite(values[kept])], values)


def _classes(name: str, values: Array, kept: Array) -> Target:
    # numbers in their own order, as machines sort them: 2 comes before 10
    known = values[kept] if values.dtype.kind in "iufb" else np.array(values[kept].tolist(), str)
    found, codes = np.unique(known, return_inverse=True)
    names = [str(value).removesuffix(".0") for value in found.tolist()]
    if len(names) > CLASSES:
        raise RefusalError(
            f"{name!r} has {len(names)} different values; at most {CLASSES} classes can be told "
            "apart here",
            parameter="target",
        )
    if len(names) == 1:
        raise RefusalError(
            f"{name!r} is {names[0][:40]!r} in every row; two classes are needed",
            parameter="target",
        )
    labels = np.full(len(values), -1)
    labels[kept] = codes
    return Target(kept, labels, tuple(names))


def _plane(
    scene: Scene, chosen: Table, preparation: TablePreparation, X: Array, y: Array | None
) -> Plane:
    plane, two = scene.view.plane, len(numeric(chosen)) >= 2
    kind = plane.get("kind", "columns")
    if X.shape[1] == 1:
        return _of_one(X, str(preparation.get_feature_names_out()[0]))
    if kind == "columns" and two:
        return _of_columns(plane, chosen, preparation)
    if kind == "columns":  # a table of words, or of one number beside the target
        kind = "components"
    if kind not in _DIRECTIONS:
        raise RefusalError(
            f"there is no plane {str(kind)[:40]!r}; take columns, {', '.join(_DIRECTIONS)}",
            parameter="view",
        )
    weights, names = _DIRECTIONS[kind](X, y)
    found = plane_of(_STUDIO, X, y, plane=weights.T)
    note = "the plane goes through the mean of the rows"
    return Plane(found.points, *names, note, found.rows, found.columns)


def _of_one(X: Array, name: str) -> Plane:
    """Return the plane of a single column: it goes to the right, and upwards there is nothing."""
    places = np.column_stack([X[:, 0], np.zeros(len(X))])
    return Plane(places, name, "", "there is one column to learn from", lambda at: at[:, :1], 1)


def _of_columns(plane: dict[str, Any], chosen: Table, preparation: TablePreparation) -> Plane:
    names = numeric(chosen)
    axes = [plane.get("x", names[0]), plane.get("y", names[1])]
    held = plane.get("others") or {}
    if not isinstance(held, dict) or any(name not in names for name in axes):
        raise RefusalError("x and y must be columns of numbers", parameter="view")
    columns = Columns(_STUDIO, chosen)
    values = columns.held("median")
    for name in set(held) & set(chosen.columns):
        values[columns.names.index(name)] = held[name]
    found = plane_of(_STUDIO, chosen, None, features=tuple(axes))
    places = (columns.place(axes[0]), columns.place(axes[1]))

    def back(at: Array) -> Any:
        return _dense(preparation.transform(columns.rows(places, values, at)))

    note = columns.note(places, values if held else "median")
    return Plane(found.points, found.xlabel, found.ylabel, note, back, found.columns)


def numeric(table: Table) -> list[str]:
    """Return the columns that an axis can be of.

    Examples
    --------
    >>> numeric(Table.of({"age": [1.0, 2.0, 3.0], "town": ["a", "b", "c"]}))
    ['age']
    """
    return [name for name in table.columns if table.column(name).values.dtype.kind == "f"]


def _components(X: Array, y: Array | None) -> tuple[Array, tuple[str, str]]:
    if len(X) < 2 or (X[1:] == X[0]).all():  # no spread, no directions of it
        return np.eye(X.shape[1])[:, :2], ("first column", "second column")
    found = directions_of(_STUDIO, X, y, "principal", count=2)
    return found.weights, (found.names[0], found.names[1])


def _discriminant(X: Array, y: Array | None) -> tuple[Array, tuple[str, str]]:
    if y is None or y.dtype.kind != "i":
        raise RefusalError("discriminant directions need classes", parameter="view")
    return _two(X, directions_of(_STUDIO, X, y, "discriminant", count=1), X, y)


def _two(X: Array, first: Any, rows: Array, y: Array) -> tuple[Array, tuple[str, str]]:
    """Return two discriminant directions, or one and the widest spread across it."""
    if len(np.unique(y)) > 2:
        found = directions_of(_STUDIO, X, y, "discriminant", count=2)
        return found.weights, (found.names[0], found.names[1])
    return _with_the_widest(X, first.weights[:, :1], "discriminant direction")


def _correlation(X: Array, y: Array | None) -> tuple[Array, tuple[str, str]]:
    if y is None:
        raise RefusalError("canonical directions need a target", parameter="view")
    second = (y[:, None] == np.unique(y)).astype(float) if y.dtype.kind == "i" else y[:, None]
    count = 2 if second.shape[1] > 2 else 1
    machine = CCA(count, penalty=1e-3).fit(X, second)
    centred = X - X.mean(axis=0)
    scores = np.asarray(machine.transform(X))
    weights = np.linalg.lstsq(centred, scores - scores.mean(axis=0), rcond=None)[0]
    said = [f"canonical direction {k + 1} ({r:.2f})" for k, r in enumerate(machine.correlations_)]
    if count == 2:
        return weights[:, :2], (said[0], said[1])
    return _with_the_widest(X, weights[:, :1], said[0])


def _with_the_widest(X: Array, weight: Array, name: str) -> tuple[Array, tuple[str, str]]:
    """Return a direction, and the one of the widest spread across it."""
    unit = weight / max(float(np.linalg.norm(weight)), np.finfo(float).tiny)
    centred = X - X.mean(axis=0)
    across = centred - (centred @ unit) @ unit.T
    second = np.linalg.svd(across, full_matrices=False)[2][:1].T
    return np.hstack([unit, second]), (name, "widest spread across it")


_DIRECTIONS: dict[str, Callable[[Array, Array | None], tuple[Array, tuple[str, str]]]] = {
    "components": _components,
    "discriminant": _discriminant,
    "correlation": _correlation,
}


def bounds_of(points: Array) -> Bounds:
    """Return bounds around all points, with a little border."""
    across, up = axis_of(points[:, 0], 2), axis_of(points[:, 1], 2)
    return float(across[0]), float(across[-1]), float(up[0]), float(up[-1])


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows
