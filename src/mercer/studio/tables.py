"""Tables that pages have uploaded: kept in memory, under ids that cannot act as paths."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from mercer.data import Column, Kind, Table
from mercer.studio.catalog import entry_of
from mercer.studio.limits import StudioLimits
from mercer.studio.scenes import CLASSES, USABLE, numeric

_NAME = 100  # characters of the name of a file
_LEVELS = 50  # different values that are told


class Tables:
    """Uploaded files and their contents.

    Parameters
    ----------
    limits : StudioLimits
        Limits on the number of tables.
    """

    def __init__(self, limits: StudioLimits) -> None:
        self.limits = limits
        self.files: dict[str, tuple[str, bytes]] = {}

    def add(self, name: str, content: bytes, found: Mapping[str, Any]) -> dict[str, Any]:
        """Store a file; return its description for the page.

        Parameters
        ----------
        name, content : str, bytes
            The file.
        found : mapping
            Its columns and a scene, from the process that read it.
        """
        # of the content: an address with it never shows another file, in whatever studio
        key = "t" + hashlib.sha256(content).hexdigest()[:16]
        self.files.pop(key, None)  # the newest is the last that goes
        self.files[key] = (name[:_NAME], content)
        while len(self.files) > self.limits.tables:
            del self.files[next(iter(self.files))]
        scene = {**found["scene"], "table": {**found["scene"]["table"], "id": key}}
        return {**found, "id": key, "name": name[:_NAME], "scene": scene}

    def contents(self) -> dict[str, tuple[str, bytes]]:
        """Return names and current contents of all files by their ids."""
        return dict(self.files)


def described(table: Table) -> dict[str, Any]:
    """Return columns and their kinds, and a scene to begin with.

    Examples
    --------
    >>> table = Table.of({"x": [1.0, 2.0, 4.0], "z": [0.1, 0.5, 0.2], "y": ["a", "b", "a"]})
    >>> found = described(table)
    >>> found["target"], found["task"]
    ('y', 'classes')
    """
    target, task = suggested(table)
    plane = "columns" if len(set(numeric(table)) - {target}) >= 2 else "components"
    scene = {
        "task": task,
        "table": {"id": "", "target": target, "columns": None},
        "machine": entry_of(None, task).name,
        "parameters": {},
        "kernel": "gaussian",
        "view": {"bounds": None, "nx": 200, "ny": 200, "plane": {"kind": plane}},
    }
    columns = [_column(name, table.column(name)) for name in table.columns]
    return {
        "rows": len(table), "columns": columns, "target": target, "task": task, "scene": scene,
    }  # fmt: skip


def suggested(table: Table) -> tuple[str | None, str]:
    """Return the column that is probably to be predicted, and the task."""
    for name in reversed(table.columns):
        column = table.column(name)
        count = len(set(_present(column)))
        if column.kind in (Kind.CATEGORY, Kind.BINARY) and 2 <= count <= CLASSES:
            return name, "classes"
    return None, "unlabelled"


def _column(name: str, column: Column) -> dict[str, Any]:
    numbers = column.values.dtype.kind == "f"
    present = _present(column)
    levels = [] if numbers and column.kind is Kind.NUMBER else sorted({str(one) for one in present})
    return {
        "name": name,
        "kind": column.kind.value,
        "missing": int(np.sum(column.missing)),
        "low": min(present) if numbers and present else None,
        "high": max(present) if numbers and present else None,
        "levels": levels[:_LEVELS] or None,
        "usable": column.kind in USABLE,
    }


def _present(column: Column) -> list[Any]:
    return list(np.asarray(column.values)[~column.missing].tolist())
