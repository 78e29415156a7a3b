"""A table as people look at it: a line for each column."""

from __future__ import annotations

from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from mercer.data.column import as_words, different
from mercer.data.errors import shorten

if TYPE_CHECKING:
    from mercer.data.table import Table

_MOST_COLUMNS = 60  # lines that are shown
_WIDTH = 40  # letters of a name or an example
HEAD = ("name", "kind", "missing", "distinct", "example")


def lines_of(table: Table, most: int = _MOST_COLUMNS) -> list[tuple[str, str, int, int, str]]:
    """Return name, kind, missing entries, different entries and an example of each column."""
    found = []
    for name in table.columns[:most]:
        column = table.column(name)
        gaps = column.missing
        example = as_words(column.values[~gaps][:1]).tolist()
        shown = _line(example[0]) if example else ""
        count = len(different(column.values))
        found.append((_line(name), column.kind.value, int(gaps.sum()), count, shown))
    return found


def as_text(table: Table) -> str:
    """Write a table of the columns."""
    rows: list[tuple[Any, ...]] = [HEAD, *lines_of(table)]
    widths = [max(len(str(row[k])) for row in rows) for k in range(len(HEAD))]
    lines = [title(table)]
    for row in rows:
        cells = [
            f"{cell:>{width}}" if k in (2, 3) else f"{cell:<{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *_rest(table)])


def as_html(table: Table) -> str:
    """Write a table of the columns for notebooks."""
    head = "".join(f"<th style='text-align:left'>{word}</th>" for word in HEAD)
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in row)
        + "</tr>"
        for row in lines_of(table)
    )
    rest = "".join(f"<div>{line}</div>" for line in _rest(table))
    return (
        f"<div><strong>{escape(title(table))}</strong>"
        f"<table><tr>{head}</tr>{body}</table>{rest}</div>"
    )


def title(table: Table) -> str:
    """Say how large a table is, and where it is from."""
    rows, columns = table.shape
    origin = f" of {_line(PurePath(table.source).name)}" if table.source else ""
    return f"{rows} rows, {columns} columns{origin}"


def _rest(table: Table) -> list[str]:
    more = table.shape[1] - _MOST_COLUMNS
    return [f"... and {more} columns more"] if more > 0 else []


def _line(text: str) -> str:
    """Write a text on one line, without what a terminal would obey."""
    return shorten("".join(c if c.isprintable() else " " for c in text[: _WIDTH + 1]), _WIDTH)
