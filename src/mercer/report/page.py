"""What a page is made of: sections of blocks. Nothing here knows HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from mercer.report.svg import Drawing


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Note:
    """A sentence that must not be missed; `level` is "good", "info", "warning" or "error"."""

    kind: ClassVar[str] = "note"
    level: str
    text: str


@dataclass(frozen=True)
class BulletList:
    """A list of sentences."""

    kind: ClassVar[str] = "points"
    items: tuple[str, ...]


@dataclass(frozen=True)
class Facts:
    """Names with values."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True)
class Name:
    """A name out of the data: a column, a class, a word; shown apart from the page's own words."""

    text: str


@dataclass(frozen=True)
class Bits:
    """Several small words in one cell, each with a level, such as kinds of findings."""

    items: tuple[tuple[str, str], ...]


Cell: TypeAlias = str | Name | Bits | Drawing


@dataclass(frozen=True)
class PageTable:
    """Rows of cells.

    Attributes
    ----------
    head : tuple of str
        Names of the columns.
    rows : tuple of tuple of cells
        What they hold.
    numbers : tuple of int
        Columns that are numbers, to be aligned at the right.
    marked : int or None
        A row that is set off.
    title : str
        What the table shows.
    note : str
        What stands below it, such as how many rows were left out.
    """

    kind: ClassVar[str] = "table"
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: tuple[int, ...] = ()
    marked: int | None = None
    title: str = ""
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A drawing with its title and what it says."""

    kind: ClassVar[str] = "figure"
    title: str
    drawing: Drawing
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Figures:
    """Drawings side by side."""

    kind: ClassVar[str] = "figures"
    items: tuple[Figure, ...]


@dataclass(frozen=True)
class CodeBlock:
    """A program or a command."""

    kind: ClassVar[str] = "code"
    text: str
    title: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are hidden until somebody asks for them; shown in print."""

    kind: ClassVar[str] = "folded"
    title: str
    blocks: tuple[Block, ...]


Block: TypeAlias = (
    Paragraph | Note | BulletList | Facts | PageTable | Figure | Figures | CodeBlock | Folded
)


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading.

    Attributes
    ----------
    id : str
        Its anchor: letters only.
    title : str
        Its heading.
    lead : str
        What it says in a sentence or two.
    blocks : tuple of blocks
        The rest.
    """

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Card:
    """A figure of the summary.

    Attributes
    ----------
    label : str
        What it is.
    value : str
        The figure.
    note : str
        What must be known beside it.
    level : str
        "plain", "good", "warning" or "error".
    drawing : Drawing or None
        Such as the interval around it.
    """

    label: str
    value: str
    note: str = ""
    level: str = "plain"
    drawing: Drawing | None = None


@dataclass(frozen=True)
class Page:
    """A whole report.

    Attributes
    ----------
    title : str
        What was asked, in a few words.
    subject : str
        The name out of the data that the title ends with, or "".
    facts : tuple of str
        What it was asked about: file, rows, columns.
    statement : str
        The answer in two sentences.
    cards : tuple of Card
        The figures to see first.
    notes : tuple of Note
        What must not be missed.
    sections : tuple of Section
        The rest.
    foot : str
        Version and date.
    """

    title: str
    subject: str
    facts: tuple[str, ...]
    statement: str
    cards: tuple[Card, ...]
    notes: tuple[Note, ...]
    sections: tuple[Section, ...]
    foot: str = ""


def capped(items: Sequence[str], most: int, noun: str) -> tuple[str, ...]:
    """Return the first items, and a last one that says how many there are beside.

    Examples
    --------
    >>> capped(["a", "b", "c"], 2, "findings")
    ('a', 'b', 'and 1 more findings')
    """
    if len(items) <= most:
        return tuple(items)
    return (*items[:most], f"and {len(items) - most:,} more {noun}")
