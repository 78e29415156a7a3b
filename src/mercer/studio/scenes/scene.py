"""A scene, read from what a page sends: nothing of it is believed before it is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.studio.catalog.entry import FINEST, Entry
from mercer.studio.catalog.table import TASKS, entry_of
from mercer.studio.drawing.fitted import Bounds
from mercer.studio.frames import number
from mercer.studio.limits import StudioLimits
from mercer.studio.refusal import RefusalError

SQUARE: Bounds = (-1.5, 1.5, -1.5, 1.5)  # where points are painted
CLASSES = 8  # colours that can be told apart
_SIDE = 200  # points of a grid, if none is asked for
_FARTHEST = 1e9  # of coordinates: squares of more lose all digits of what is near
_LONGEST = 2000  # characters of a kernel
_WIDTHS = {"classes": (3,), "regression": (2,), "targets": (3,), "unlabelled": (2, 3)}


@dataclass(frozen=True)
class View:
    """What part of which plane is shown, and how finely.

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
    """Which table, which column is the target, which columns are used."""

    id: str
    target: str | None
    columns: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Scene:
    """What a page shows.

    Attributes
    ----------
    task : str
        What is asked of the points.
    points : array or None
        (n, 2) or (n, 3): places, and labels or targets.
    table : TableChoice or None
        A table in place of points.
    entry : Entry
        The machine.
    parameters : dict
        Its parameters, read.
    kernel : str or None
        Text of its kernel.
    kernel_numbers : dict
        Numbers inside the kernel, in place of those in the text.
    view : View
        What is shown.
    """

    task: str
    points: Array | None
    table: TableChoice | None
    entry: Entry
    parameters: dict[str, Any]
    kernel: str | None
    kernel_numbers: dict[str, float]
    view: View


def read_scene(raw: Any, limits: StudioLimits) -> Scene:
    """Read a scene; what it cannot have is refused in words.

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
                f"labels must be whole numbers from 0 to {CLASSES - 1}, or -1 for none",
                parameter="points",
            )
    return found


def read_view(raw: Any) -> View:
    """Read what is shown."""
    if raw is None:
        return View()
    if not isinstance(raw, dict):
        raise RefusalError("view must be an object", parameter="view")
    plane = raw.get("plane") or {}
    if not isinstance(plane, dict):
        raise RefusalError("view.plane must be an object", parameter="view")
    bounds = raw.get("bounds", None if plane else SQUARE)
    return View(
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
    """Return the parameters of the machine, and those inside its kernel."""
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
