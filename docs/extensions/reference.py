"""Add to pages of the reference a set formula, See Also, and the page of the guide.

They stand in docs/api/formulas.toml. Docstrings keep their formulas as plain text: they are read in
terminals too.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

FORMULAS = Path(__file__).parents[1] / "api" / "formulas.toml"


def read_notes() -> dict[str, dict[str, Any]]:
    """Return the notes by qualified name."""
    found: dict[str, dict[str, Any]] = {}
    _flatten(tomllib.loads(FORMULAS.read_text(encoding="utf-8")), "", found)
    return found


def _flatten(table: dict[str, Any], prefix: str, found: dict[str, dict[str, Any]]) -> None:
    if "guide" in table:
        found[prefix] = table
        return
    for name, inner in table.items():
        _flatten(inner, f"{prefix}.{name}".lstrip("."), found)


def qualified(home: str, name: str) -> str:
    """Return the full name of an entry of See Also, which may leave out the module."""
    return name if name.startswith("mercer.") else f"{home}.{name}"


def find(name: str) -> Any:
    """Return the object of a qualified name."""
    module, last = name.rsplit(".", 1)
    return getattr(importlib.import_module(module), last)


def _first_line(name: str) -> str:
    """Return what an object is, in one line, with the marks of formulas escaped."""
    line = (inspect.getdoc(find(name)) or "").strip().split("\n")[0]
    return re.sub(r"([|*`])", r"\\\1", line)


def add_notes(note: dict[str, Any], home: str, lines: list[str]) -> None:
    """Put the formula behind the summary of a docstring, and See Also at its end."""
    summary = lines.index("") if "" in lines else len(lines)
    between = [""]
    if "formula" in note:
        between += [".. math::", "", f"   {note['formula']}", ""]
    between += [f"User guide: :doc:`/guide/{note['guide']}`.", ""]
    lines[summary:summary] = between
    lines += ["", "See Also", "--------"]
    for name in note["see"]:
        whole = qualified(home, name)
        lines += [f":obj:`~{whole}` : {_first_line(whole)}"]
    lines += [""]


def setup(app: Any) -> dict[str, Any]:
    """Run after formulas of docstrings are escaped, and before numpydoc reads them."""
    notes = read_notes()

    def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
        if name in notes:
            add_notes(notes[name], name.rsplit(".", 1)[0], lines)

    app.connect("autodoc-process-docstring", process, priority=200)
    return {"parallel_read_safe": True}
