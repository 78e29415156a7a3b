"""State of the process behind a page: its tables, and the last fit."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mercer.data import Limits, Table, read
from mercer.studio.drawing import Fitted
from mercer.studio.jobs.fitting import Tell, fit
from mercer.studio.limits import RefusalError, StudioLimits
from mercer.studio.scenes import Scene, read_scene, rows_of

_ASKED = ("task", "points", "table", "machine", "parameters", "kernel")  # a fit depends on these


@dataclass(eq=False)
class Bench:
    """Tables by their ids, and the fit that was asked for last.

    Attributes
    ----------
    limits : StudioLimits
        Resource limits.
    tables : dict of str to Table
        Uploaded tables.
    files : dict of str to str
        Names of the files they came in.
    last : tuple or None
        The last fit: the fields it depended on, and the fitted estimator.
    """

    limits: StudioLimits = field(default_factory=StudioLimits)
    tables: dict[str, Table] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    last: tuple[str, Fitted] | None = None

    def keep(self, name: str, file: str, content: bytes) -> None:
        """Read a table and keep it."""
        self.tables[name], self.files[name] = read_table(content, self.limits), file

    def table(self, name: str) -> Table:
        """Return a table by its id."""
        if name not in self.tables:
            raise RefusalError("this table is not here any more; open it again", parameter="table")
        return self.tables[name]

    def scene(self, request: dict[str, Any]) -> Scene:
        """Read the scene of a request."""
        return read_scene(request.get("scene"), self.limits)

    def seconds(self, request: dict[str, Any]) -> float:
        """Return the time that a fit may take."""
        asked = request.get("seconds", self.limits.seconds)
        known = isinstance(asked, int | float) and not isinstance(asked, bool) and asked > 0
        if not known:
            raise RefusalError("seconds must be a positive number", parameter="seconds")
        return min(float(asked), self.limits.long_seconds)

    def fitted(self, request: dict[str, Any], tell: Tell) -> tuple[Scene, Fitted]:
        """Return the scene of a request and its fitted estimator, reusing the last fit."""
        scene = self.scene(request)
        key = self._key(request["scene"])
        rows = rows_of(scene, self.table, self.limits)
        if self.last is not None and self.last[0] == key:
            known = self.last[1]
            return scene, Fitted(known.machine, rows, known.warnings, known.seconds)
        found = fit(scene, rows, tell, self.seconds(request))
        self.last = (key, found)
        return scene, found

    @staticmethod
    def _key(raw: dict[str, Any]) -> str:
        return json.dumps([raw.get(name) for name in _ASKED], sort_keys=True)


def read_table(content: bytes, limits: StudioLimits) -> Table:
    r"""Read an uploaded file, within the limits.

    Examples
    --------
    >>> read_table(b"a,b\n1,2\n3,4\n", StudioLimits()).columns
    ['a', 'b']
    """
    read_limits = Limits(bytes=limits.upload * 4, columns=limits.columns, line=limits.upload)
    return read(io.BytesIO(content), limits=read_limits)


Job = Callable[[Bench, dict[str, Any], Tell], dict[str, Any]]
"""Handles a request: takes the state, the request and a function for progress."""
