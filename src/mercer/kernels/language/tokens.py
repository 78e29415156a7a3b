"""The words of kernel texts, and the error that points at one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORDS = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<string>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<sign>\*\*|[-+*()\[\],.:=])"
)


@dataclass(frozen=True)
class Token:
    """One word: its kind ("number", "name", "string", "sign" or "end"), text and place."""

    kind: str
    text: str
    position: int


class ParseError(ValueError):
    """A text that is not a kernel; shows where.

    Attributes
    ----------
    reason : str
        What is wrong.
    text : str
        What was read.
    position : int
        Where it went wrong, counted from 0.
    """

    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(f"{reason}\n{_pointed(text, position)}")
        self.reason, self.text, self.position = reason, text, position

    def __reduce__(self) -> tuple[type[ParseError], tuple[str, str, int]]:
        return ParseError, (self.reason, self.text, self.position)


def tokens(text: str) -> Iterator[Token]:
    """Split a text into words; ends with a word of the kind "end"."""
    position = 0
    while position < len(text):
        match = _WORDS.match(text, position)
        if match is None:
            raise ParseError(f"{text[position]!r} has no meaning here", text, position)
        kind = str(match.lastgroup)
        if kind != "space":
            yield Token(kind, match[0], position)
        position = match.end()
    yield Token("end", "", len(text))


def _pointed(text: str, position: int) -> str:
    """Show the text with a mark under one character, cut to a window if it is long."""
    start, end = max(0, position - 60), position + 20
    before, after = "..." if start else "", "..." if end < len(text) else ""
    # every character that is not plain would move the mark
    shown = "".join(c if c.isprintable() else " " for c in text[start:end])
    return f"    {before}{shown}{after}\n    {' ' * (len(before) + position - start)}^"
