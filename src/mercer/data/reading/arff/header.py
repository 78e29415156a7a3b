"""Header of an ARFF file: the attributes it declares, and words as the format quotes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mercer.data.errors import DataError, shorten
from mercer.data.frames import refuse_twins
from mercer.data.kinds import Kind
from mercer.data.reading.options import Options

QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
# `*+` and `++` never give back what they took: no text takes longer than its length
_FIELD = re.compile(rf"\s*+(?:({QUOTED})|([^,'\"\s][^,]*+|))\s*+(,|$)")
_NUMERIC = ("numeric", "real", "integer")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# letters of Java's date patterns, for Python's strptime
_JAVA = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}
_LONGEST_PATTERN = 200  # characters; strptime compiles it, and recurses
_ISO = "yyyy-MM-dd'T'HH:mm:ss"


@dataclass(frozen=True)
class Attribute:
    """A declared column.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"number", "nominal", "string", "date"}
        What was declared.
    levels : tuple of str
        The values of a nominal one.
    pattern : str
        How dates are written, for `strptime`.
    """

    name: str
    kind: str
    levels: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def column_kind(self) -> Kind | None:
        """The kind of a nominal column; that of others follows from the entries."""
        if self.kind != "nominal":
            return None
        return Kind.BINARY if len(self.levels) == 2 else Kind.CATEGORY


def read_header(lines: Iterator[tuple[int, str]], source: str, options: Options) -> list[Attribute]:
    """Read the lines up to "@data"."""
    attributes: list[Attribute] = []
    for number, text in lines:
        word = text.split(maxsplit=1)[0].lower()
        if word == "@data":
            break
        if word == "@attribute":
            attributes.append(_attribute(text, source, number))
            options.limits.check("columns", len(attributes), source, number)
        elif word != "@relation":
            raise DataError(
                f"{shorten(text)!r}: before @data come @relation and @attribute lines",
                source=source,
                line=number,
            )
    if not attributes:
        raise DataError("the file declares no @attribute", source=source)
    refuse_twins([attribute.name for attribute in attributes], source)
    return attributes


def _attribute(text: str, source: str, line: int) -> Attribute:
    found = _ATTRIBUTE.fullmatch(text)
    if found is None:
        raise DataError(f"{shorten(text)!r} declares no attribute", source=source, line=line)
    name, declared = plain(found[1]), found[2].strip()
    word = declared.split(maxsplit=1)[0].lower() if declared else ""
    if word in _NUMERIC:
        return Attribute(name, "number")
    if word == "string":
        return Attribute(name, "string")
    if word == "date":
        return Attribute(name, "date", pattern=_pattern(declared[4:].strip(), source, line, name))
    if declared.startswith("{") and declared.endswith("}"):
        levels = fields_of(declared[1:-1].strip())
        if levels is None or len(set(levels)) < len(levels):
            raise DataError(
                "its values cannot be told apart", source=source, line=line, column=name
            )
        return Attribute(name, "nominal", tuple(levels))
    raise DataError(
        f"type {shorten(declared)!r} is not taken; numeric, string, date and {{a, b}} are",
        source=source,
        line=line,
        column=name,
    )


def _pattern(java: str, source: str, line: int, name: str) -> str:
    """Translate a date pattern of Java."""
    java = plain(java) if java else _ISO
    if len(java) > _LONGEST_PATTERN:
        raise DataError(
            f"date pattern {shorten(java)!r} is longer than {_LONGEST_PATTERN} characters",
            source=source,
            line=line,
            column=name,
        )
    made, rest = "", java
    while rest:
        known = next((letters for letters in _JAVA if rest.startswith(letters)), None)
        if known is not None:
            made, rest = made + _JAVA[known], rest[len(known) :]
        elif rest.startswith("'"):
            literal, _, rest = rest[1:].partition("'")
            made += literal.replace("%", "%%")
        elif rest[0].isalpha():
            raise DataError(
                f"date pattern {shorten(java)!r} is not taken; yyyy, MM, dd, HH, mm and ss are",
                source=source,
                line=line,
                column=name,
            )
        else:
            made, rest = made + rest[0].replace("%", "%%"), rest[1:]
    if any(made.count(letter) > 1 for letter in _JAVA.values()):
        raise DataError(
            f"date pattern {shorten(java)!r} names a part twice",
            source=source,
            line=line,
            column=name,
        )
    return made


def plain(word: str) -> str:
    """Take quotes and backslashes off a word."""
    word = word.strip()
    if len(word) < 2 or word[0] != word[-1] or word[0] not in "'\"":
        return word
    return re.sub(
        r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), word[1:-1], flags=re.DOTALL
    )


def fields_of(text: str) -> list[str] | None:
    """Cut a row at its commas; nothing if quotes are not closed."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    found, place = [], 0
    while True:
        match = _FIELD.match(text, place)
        if match is None:
            return None
        found.append(plain(match[1] or match[2]))
        place = match.end()
        if not match[3]:
            return found
