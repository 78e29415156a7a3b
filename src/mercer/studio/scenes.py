"""Scenes of the studio: estimator, view, and rows from points or tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind, Table, TablePreparation
from mercer.machines.correlation.cca import CCA
from mercer.plots.planes import TableColumns, ViewPlane, axis_of, directions_of, plane_of
from mercer.studio.catalog import FINEST, TASKS, Entry, entry_of
from mercer.studio.drawing import Bounds, SceneRows
from mercer.studio.frames import number
from mercer.studio.limits import RefusalError, StudioLimits

# --- scene ---------------------------------------------------------------------------------------
#
# A scene, read from a request of the page and validated field by field.

SQUARE: Bounds = (-1.5, 1.5, -1.5, 1.5)  # where points are painted
CLASSES = 8  # colors that can be told apart
_SIDE = 200  # points of a grid, if none is asked for
_FARTHEST = 1e9  # of coordinates: squares of larger ones lose all digits of small differences
_LONGEST = 2000  # characters of a kernel
_WIDTHS = {"classes": (3,), "regression": (2,), "targets": (3,), "unlabelled": (2, 3)}


@dataclass(frozen=True)
class SceneView:
    """The part of a plane that is shown, and its resolution.

    Attributes
    ----------
    bounds : Bounds or None
        None takes what holds all rows.
    nx, ny : int
        Points of the grid.
    plane : dict
        For tables: "kind" and what belongs to it.
    """

    bounds: Bounds | None = SQUARE
    nx: int = _SIDE
    ny: int = _SIDE
    plane: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TableChoice:
    """A table, its target column and the columns in use."""

    id: str
    target: str | None
    columns: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Scene:
    """The contents of a page.

    Attributes
    ----------
    task : str
        The task.
    points : array or None
        (n, 2) or (n, 3): places, and labels or targets.
    table : TableChoice or None
        A table in place of points.
    entry : Entry
        The estimator.
    parameters : dict
        Its parameters, read.
    kernel : str or None
        Text of its kernel.
    kernel_numbers : dict
        Numbers inside the kernel, in place of those in the text.
    view : View
        The view.
    """

    task: str
    points: Array | None
    table: TableChoice | None
    entry: Entry
    parameters: dict[str, Any]
    kernel: str | None
    kernel_numbers: dict[str, float]
    view: SceneView


def read_scene(raw: Any, limits: StudioLimits) -> Scene:
    """Read a scene; raise an error with a message for the page if it is invalid.

    Examples
    --------
    >>> scene = read_scene({"task": "classes", "points": [[0, 0, 0], [1, 1, 1]]}, StudioLimits())
    >>> scene.entry.name, scene.kernel
    ('SVC', 'gaussian(0.5)')
    """
    if not isinstance(raw, dict):
        raise RefusalError("the scene must be an object")
    task = raw.get("task", "classes")
    if not isinstance(task, str) or task not in TASKS:
        raise RefusalError(f"task must be one of {', '.join(TASKS)}", parameter="task")
    entry = entry_of(raw.get("machine"), task)
    table = read_table_choice(raw.get("table"))
    points = None if table is not None else read_points(raw.get("points"), task, limits)
    own, inner = _parameters(entry, raw.get("parameters"))
    kernel = _kernel(entry, raw.get("kernel"))
    return Scene(task, points, table, entry, own, kernel, inner, read_view(raw.get("view")))


def read_points(raw: Any, task: str, limits: StudioLimits) -> Array:
    """Read points: lists of two or three finite numbers."""
    widths = _WIDTHS[task]
    if raw is None:
        raw = []
    if not isinstance(raw, list) or len(raw) > limits.points:
        raise RefusalError(f"points must be a list of at most {limits.points}", parameter="points")
    if not raw:
        return np.empty((0, widths[0]))
    try:
        found = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty((0,))
    if found.ndim != 2 or found.shape[1] not in widths:
        raise RefusalError(f"each point must be a list of {widths[0]} numbers", parameter="points")
    if not (np.isfinite(found).all() and (np.abs(found) <= _FARTHEST).all()):
        raise RefusalError(
            f"points must be finite, and within {_FARTHEST:.0e} of the origin", parameter="points"
        )
    if task == "classes":
        labels = found[:, 2]
        if (labels != np.round(labels)).any() or (labels < -1).any() or (labels >= CLASSES).any():
            raise RefusalError(
                f"labels must be integers from 0 to {CLASSES - 1}, or -1 for none",
                parameter="points",
            )
    return found


def read_view(raw: Any) -> SceneView:
    """Read the view."""
    if raw is None:
        return SceneView()
    if not isinstance(raw, dict):
        raise RefusalError("view must be an object", parameter="view")
    plane = raw.get("plane") or {}
    if not isinstance(plane, dict):
        raise RefusalError("view.plane must be an object", parameter="view")
    bounds = raw.get("bounds", None if plane else SQUARE)
    return SceneView(
        None if bounds is None else read_bounds(bounds), _side(raw.get("nx", _SIDE)),
        _side(raw.get("ny", _SIDE)), plane,
    )  # fmt: skip


def read_bounds(raw: Any) -> Bounds:
    """Read four numbers, the lower ones first."""
    known = isinstance(raw, list | tuple) and len(raw) == 4
    if not known or not all(is_number(one) and abs(one) <= _FARTHEST for one in raw):
        raise RefusalError("view.bounds must be four numbers", parameter="view")
    x0, x1, y0, y1 = map(float, raw)
    if not (x0 < x1 and y0 < y1):
        raise RefusalError("view.bounds must be x0 < x1, y0 < y1", parameter="view")
    return x0, x1, y0, y1


def read_table_choice(raw: Any) -> TableChoice | None:
    """Read which table and columns are meant."""
    if raw is None:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), str):
        raise RefusalError("table must have an id", parameter="table")
    target, columns = raw.get("target"), raw.get("columns")
    if target is not None and not isinstance(target, str):
        raise RefusalError("table.target must be the name of a column", parameter="table")
    if columns is not None:
        if not isinstance(columns, list) or not all(isinstance(one, str) for one in columns):
            raise RefusalError("table.columns must be names of columns", parameter="table")
        columns = tuple(columns)
    return TableChoice(raw["id"], target, columns)


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _side(value: Any) -> int:
    if not is_number(value) or value != int(value) or not 2 <= value <= FINEST:
        raise RefusalError(f"view.nx and ny must be from 2 to {FINEST}", parameter="view")
    return int(value)


def _kernel(entry: Entry, raw: Any) -> str | None:
    if entry.kernel is None:
        return None
    if raw is None:
        return entry.kernel
    if not isinstance(raw, str) or len(raw) > _LONGEST:
        raise RefusalError(
            f"kernel must be a text of at most {_LONGEST} characters", parameter="kernel"
        )
    return raw


def _parameters(entry: Entry, raw: Any) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the parameters of the estimator, and those of its kernel."""
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise RefusalError("parameters must be an object", parameter="parameters")
    own = {**dict(entry.fixed), **{one.name: one.default for one in entry.parameters}}
    inner: dict[str, float] = {}
    for name, value in raw.items():
        known = entry.parameter(name)
        if known is not None:
            own[name] = known.read(value)
        elif name.startswith("kernel__") and entry.kernel is not None:
            found = number(value)
            if isinstance(found, bool) or not isinstance(found, int | float):
                raise RefusalError(f"{name} must be a number", parameter=name)
            inner[name.removeprefix("kernel__")] = found
        else:
            raise RefusalError(f"{entry.name} has no parameter {name[:40]!r}", parameter=name[:40])
    return own, inner


# --- table rows ----------------------------------------------------------------------------------
#
# Rows of a table, and the plane that they are shown in.
#
# Columns become numbers as `mercer.fit` makes them (`TablePreparation`): standardized, categories
# as indicators, missing values filled. The plane is one of two columns in their own units, the
# others held at given values; or one of two directions in the space of the prepared columns,
# whose points stand for the rows of least norm with these coordinates.

USABLE = (Kind.NUMBER, Kind.CATEGORY, Kind.BINARY)  # kinds that become few numbers
_STUDIO = "studio"  # the name in error messages


@dataclass(frozen=True, eq=False)
class SceneTarget:
    """Labels as integers with their names, or numbers, and the rows that have one."""

    kept: Array
    values: Array | None
    names: tuple[str, ...] = ()


def table_rows(scene: Scene, table: Table, limits: StudioLimits) -> SceneRows:
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
    return SceneRows(
        X, y, kept, view.points, view.rows, bounds, axes=(view.xlabel, view.ylabel),
        names=target.names, columns=tuple(map(str, preparation.get_feature_names_out())),
        note=view.note, preparation=preparation,
    )  # fmt: skip


def used_columns(table: Table, scene: Scene) -> tuple[str, ...]:
    """Return the names of the columns that are learned from."""
    assert scene.table is not None
    usable = [
        name for name, kind in table.kinds.items() if kind in USABLE and name != scene.table.target
    ]
    asked = scene.table.columns
    unknown = [] if asked is None else [name for name in asked if name not in usable]
    if unknown:
        raise RefusalError(
            f"{unknown[0][:40]!r} is not a usable column; the columns are {', '.join(usable[:8])}",
            parameter="table",
        )
    found = tuple(usable if asked is None else asked)
    if len(found) < 1:
        raise RefusalError("no column is left to learn from", parameter="table")
    return found


def target_of(table: Table, name: str | None, task: str) -> SceneTarget:
    """Return the labels or targets of a table."""
    if task == "unlabelled" or name is None:
        if task != "unlabelled":
            raise RefusalError("choose the column that is to be predicted", parameter="target")
        return SceneTarget(np.arange(len(table)), None)
    if name not in table:
        raise RefusalError(f"the table has no column {name[:40]!r}", parameter="target")
    column = table.column(name)
    kept = np.flatnonzero(~column.missing)
    if task == "classes":
        return _table_rows_classes(name, np.asarray(column.values), kept)
    if column.kind is not Kind.NUMBER and column.values.dtype.kind != "f":
        raise RefusalError(f"{name!r} holds no numbers; take it for classes", parameter="target")
    values = np.asarray(column.values, dtype=np.float64)
    if task == "regression":
        raise RefusalError(
            "a curve is of one column; numbers on a plane are the task 'targets'", parameter="task"
        )
    return SceneTarget(kept[np.isfinite(values[kept])], values)


def _table_rows_classes(name: str, values: Array, kept: Array) -> SceneTarget:
    # numbers in their own order, as estimators sort them: 2 comes before 10
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
    return SceneTarget(kept, labels, tuple(names))


def _plane(
    scene: Scene, chosen: Table, preparation: TablePreparation, X: Array, y: Array | None
) -> ViewPlane:
    plane, two = scene.view.plane, len(numeric(chosen)) >= 2
    kind = plane.get("kind", "columns")
    if X.shape[1] == 1:
        return _of_one(X, str(preparation.get_feature_names_out()[0]))
    if kind == "columns" and two:
        return _of_columns(plane, chosen, preparation)
    if kind == "columns":  # a table of words, or of one number next to the target
        kind = "components"
    if kind not in _DIRECTIONS:
        raise RefusalError(
            f"unknown plane {str(kind)[:40]!r}; choose columns, {', '.join(_DIRECTIONS)}",
            parameter="view",
        )
    weights, names = _DIRECTIONS[kind](X, y)
    found = plane_of(_STUDIO, X, y, plane=weights.T)
    note = "the plane goes through the mean of the rows"
    return ViewPlane(found.points, *names, note, found.rows, found.columns)


def _of_one(X: Array, name: str) -> ViewPlane:
    """Return the plane of a single column: it goes to the right, and upwards there is nothing."""
    places = np.column_stack([X[:, 0], np.zeros(len(X))])
    return ViewPlane(places, name, "", "there is one column to learn from", lambda at: at[:, :1], 1)


def _of_columns(plane: dict[str, Any], chosen: Table, preparation: TablePreparation) -> ViewPlane:
    names = numeric(chosen)
    axes = [plane.get("x", names[0]), plane.get("y", names[1])]
    held = plane.get("others") or {}
    if not isinstance(held, dict) or any(name not in names for name in axes):
        raise RefusalError("x and y must be columns of numbers", parameter="view")
    columns = TableColumns(_STUDIO, chosen)
    values = columns.held("median")
    for name in set(held) & set(chosen.columns):
        values[columns.names.index(name)] = held[name]
    found = plane_of(_STUDIO, chosen, None, features=tuple(axes))
    places = (columns.place(axes[0]), columns.place(axes[1]))

    def back(at: Array) -> Any:
        return _dense(preparation.transform(columns.rows(places, values, at)))

    note = columns.note(places, values if held else "median")
    return ViewPlane(found.points, found.xlabel, found.ylabel, note, back, found.columns)


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
    """Return bounds around all points, with a small margin."""
    across, up = axis_of(points[:, 0], 2), axis_of(points[:, 1], 2)
    return float(across[0]), float(across[-1]), float(up[0]), float(up[-1])


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else rows


# --- rows ----------------------------------------------------------------------------------------
#
# The rows of a scene: of the points that were painted, or of a table.


def rows_of(scene: Scene, tables: Callable[[str], Table], limits: StudioLimits) -> SceneRows:
    """Return the training rows of a scene.

    Points without a label are left out, unless the estimator uses them.

    Parameters
    ----------
    scene : Scene
        The contents of the page.
    tables : callable
        Returns the table of an id.
    limits : StudioLimits
        The largest number of rows.
    """
    if scene.table is not None:
        found = table_rows(scene, tables(scene.table.id), limits)
    else:
        assert scene.points is not None  # a scene has one or the other
        found = _OF_POINTS[scene.task](scene.points, scene.view.bounds or SQUARE)
    if scene.task == "classes" and not scene.entry.partly and found.y is not None:
        found = found.take(np.flatnonzero(found.y >= 0))
    return found


def _rows_classes(points: Array, bounds: Any) -> SceneRows:
    labels = points[:, 2].astype(int)
    names = tuple(str(one + 1) for one in np.unique(labels[labels >= 0]).tolist())  # as on keys
    return _in_the_plane(points[:, :2], labels, bounds, names)


def _targets(points: Array, bounds: Any) -> SceneRows:
    return _in_the_plane(points[:, :2], points[:, 2], bounds)


def _unlabelled(points: Array, bounds: Any) -> SceneRows:
    return _in_the_plane(points[:, :2], None, bounds)


def _curve(points: Array, bounds: Any) -> SceneRows:
    index = np.arange(len(points))
    return SceneRows(
        points[:, :1], points[:, 1], index, points[:, :2], lambda at: at[:, :1], bounds,
        axes=("x", "y"), columns=("x",),
    )  # fmt: skip


def _in_the_plane(
    places: Array, y: Array | None, bounds: Any, names: tuple[str, ...] = ()
) -> SceneRows:
    index = np.arange(len(places))
    return SceneRows(places, y, index, places, lambda at: at, bounds, names=names)


_OF_POINTS: dict[str, Callable[[Array, Any], SceneRows]] = {
    "classes": _rows_classes,
    "regression": _curve,
    "targets": _targets,
    "unlabelled": _unlabelled,
}
