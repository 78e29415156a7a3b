"""Elements of a report page: sections of blocks, independent of HTML."""

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
    """A highlighted sentence; `level` is "good", "info", "warning" or "error"."""

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
    """Name-value pairs."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True)
class Name:
    """A name from the data, such as a column or a class; set apart from the page's own text."""

    text: str


@dataclass(frozen=True)
class Bits:
    """Several tags in one cell, each with a level, such as kinds of findings."""

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
        Cells by row.
    numbers : tuple of int
        Indices of numeric columns, which are right-aligned.
    marked : int or None
        A row that is set off.
    title : str
        Title of the table.
    note : str
        Caption, such as the number of omitted rows.
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
    """A drawing with a title and a caption."""

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
    """Blocks that are hidden until the reader opens them; visible in print."""

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
        Anchor: letters only.
    title : str
        Heading.
    lead : str
        Summary in one or two sentences.
    blocks : tuple of blocks
        Content.
    """

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Card:
    """A key figure of the summary.

    Attributes
    ----------
    label : str
        Name of the figure.
    value : str
        The figure.
    note : str
        Explanation.
    level : str
        "plain", "good", "warning" or "error".
    drawing : Drawing or None
        For example, a confidence interval.
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
        Title without names from the data.
    subject : str
        Name from the data that ends the title, or "".
    facts : tuple of str
        File, rows and columns of the data.
    statement : str
        Result in two sentences.
    cards : tuple of Card
        Key figures.
    notes : tuple of Note
        Warnings.
    sections : tuple of Section
        Content.
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
    """Return the first items and, if there are more, an item with their number.

    Examples
    --------
    >>> capped(["a", "b", "c"], 2, "findings")
    ('a', 'b', 'and 1 more findings')
    """
    if len(items) <= most:
        return tuple(items)
    return (*items[:most], f"and {len(items) - most:,} more {noun}")
