"""What the caller says about a file, beside its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mercer.data.cells import MISSING
from mercer.data.kinds import Kind
from mercer.data.limits import Limits


@dataclass(frozen=True, eq=False)
class Options:
    """What the caller says about a file, beside its name; see `read`."""

    columns: Sequence[str] | None = None
    names: Sequence[str] | None = None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    limits: Limits = field(default_factory=Limits)
    encoding: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "."
    parser: str = "auto"

    def refuse_text_options(self, kind: str) -> None:
        """Raise if an option is given that only delimited texts have."""
        given = {
            "names": self.names,
            "delimiter": self.delimiter,
            "header": self.header,
            "decimal": None if self.decimal == "." else self.decimal,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}={value!r} is for delimited text; this file is {kind}")
