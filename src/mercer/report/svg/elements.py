"""Elements of SVG as text: every attribute and every word is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from mercer.report.text import clean

_MOST = 40  # letters of a word in a drawing: longer ones run out of it


class Drawing(str):
    """Text of an SVG element; templates put it into the page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def element(name: str, *children: str, **attributes: Any) -> str:
    """Write an element; `class_` is class, other underscores are hyphens.

    Examples
    --------
    >>> element("line", x1=0, x2=12.345, class_="grid")
    '<line x1="0" x2="12.3" class="grid"/>'
    """
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(children)
    return f"<{name}{said}>{inside}</{name}>" if inside else f"<{name}{said}/>"


def words(content: Any, x: float, y: float, class_: str = "t", **attributes: Any) -> str:
    """Write a word at a place; it is cleaned, shortened and escaped."""
    return element("text", plain(content), x=x, y=y, class_=class_, **attributes)


def plain(content: Any, most: int = _MOST) -> str:
    """Return content as escaped text of an element."""
    return escape(clean(content, most), quote=False)


def number(value: Any) -> str:
    """Write a number as short as pixels need it; other values as they are."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def picture(
    width: float, height: float, title: str, description: str, children: Iterable[str]
) -> Drawing:
    """Put elements into an SVG with a name and a description for people who do not see it."""
    head = element("title", plain(title, 120)) + element("desc", plain(description, 600))
    return Drawing(
        element(
            "svg",
            head,
            *children,
            viewBox=f"0 0 {number(float(width))} {number(float(height))}",
            width=float(width),
            height=float(height),
            role="img",
            class_="chart",
        )
    )


def small_picture(width: float, height: float, title: str, children: Iterable[str]) -> Drawing:
    """Put elements into an SVG that stands in a line of text."""
    return Drawing(
        element(
            "svg",
            element("title", plain(title, 120)),
            *children,
            viewBox=f"0 0 {number(float(width))} {number(float(height))}",
            width=float(width),
            height=float(height),
            role="img",
            class_="small",
        )
    )
