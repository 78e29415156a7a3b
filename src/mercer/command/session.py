"""What the options that all commands share say, and where results and notes go."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any

from mercer.command.streams import standard_output

_NATURAL = ("numpy",)  # modules whose scalars and arrays know how to become plain values


@dataclass
class Session:
    """One run of the command.

    Attributes
    ----------
    json : bool
        Results are one JSON object on standard output.
    quiet : bool
        No notes, no progress, no summary.
    debug : bool
        Errors show where they happened.
    settings : dict
        For `mercer.config`: memory, threads.
    line : str
        The command line, as a shell takes it.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    line: str = "mercer"

    def note(self, text: str) -> None:
        """Say something on standard error, unless the user wants quiet."""
        if self.quiet:
            return
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:  # whoever read it has gone; the work goes on
            self.quiet = True

    def result(self, values: dict[str, Any], text: str) -> None:
        """Give the result: one JSON object, or text for people."""
        if self.json:
            write_out(json.dumps(plain(values), allow_nan=False).encode("ascii") + b"\n")
        elif not self.quiet:
            write_out(text.rstrip("\n").encode("utf-8", "backslashreplace") + b"\n")

    def program(self, lines: list[str]) -> None:
        """Print an equivalent Python program: what `--python` asks for."""
        text = "\n".join(lines).rstrip("\n") + "\n"
        if self.json:
            self.result({"python": text}, "")
        else:
            write_out(text.encode("utf-8", "backslashreplace"))


def write_out(data: bytes) -> None:
    """Write bytes to standard output, if it is open."""
    out = standard_output()
    if out is not None:
        out.write(data)
        out.flush()


def plain(value: Any) -> Any:
    """Return a value that JSON can write: numbers that are not finite become null.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.float64("nan"), "b": np.arange(2), 3: None})
    {'a': None, 'b': [0, 1], '3': None}
    """
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(plain(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, PurePath):
        return os.fspath(value)
    if isinstance(value, Enum):
        return plain(value.value)
    if type(value).__module__.split(".")[0] in _NATURAL and hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
