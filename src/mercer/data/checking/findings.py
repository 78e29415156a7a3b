"""What a check found: each with its columns, a sentence, and how grave it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, overload

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    level : {"error", "warning", "note"}
        "error": no fit can be trusted; "warning": look at it; "note": good to know.
    code : str
        A word for programs, such as "constant" or "leak".
    columns : tuple of str
        Which columns.
    message : str
        A sentence, with what to do.

    Examples
    --------
    >>> print(Finding("warning", "constant", ("a",), "Column 'a' has one value only."))
    warning: Column 'a' has one value only.
    """

    level: Level
    code: str
    columns: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.message}"


class Findings(Sequence[Finding]):
    """What a check found, the gravest first; print it.

    Parameters
    ----------
    found : iterable of Finding
        In any order.

    Examples
    --------
    >>> from mercer.data import Table, check
    >>> findings = check(Table.of({"a": [1, 1, 1], "b": [1, 2, 3]}))
    >>> print(findings)
    warning: Column 'a' has the same value in every row; it tells nothing.
    >>> findings.codes
    ['constant']
    """

    def __init__(self, found: Iterable[Finding] = ()) -> None:
        self._found = tuple(sorted(found, key=lambda one: LEVELS.index(one.level)))

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Finding]: ...

    def __getitem__(self, index: int | slice) -> Finding | Sequence[Finding]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings) and self._found == other._found

    def __hash__(self) -> int:
        return hash(self._found)

    def __repr__(self) -> str:
        counts = Counter(one.level for one in self._found)
        return "<Findings: " + ", ".join(f"{counts[level]} {level}s" for level in LEVELS) + ">"

    def __str__(self) -> str:
        return "\n".join(map(str, self._found)) or "Nothing was found."

    def _repr_html_(self) -> str:
        return "".join(f"<div>{escape(str(one))}</div>" for one in self._found) or str(self)

    @property
    def codes(self) -> list[str]:
        """The codes of all findings, in order."""
        return [one.code for one in self._found]

    @property
    def errors(self) -> list[Finding]:
        """The findings after which no fit can be trusted."""
        return [one for one in self._found if one.level == "error"]
