"""A chart: a field with axes, marks in it, and a legend above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mercer.report.svg.axes import Axis
from mercer.report.svg.elements import Drawing, element, picture, words
from mercer.report.svg.marks import Mark, Place, Points

Legend: TypeAlias = Sequence[tuple[str, int]]
"""Names of series, and their numbers."""

_WIDTH, _HEIGHT = 440.0, 300.0
_LETTER = 6.3  # width of a letter of the ticks, at 12 pixels
_SHORT = 18  # letters of a name in a legend


def chart(
    title: str,
    description: str,
    x: Axis,
    y: Axis,
    marks: Sequence[Mark],
    *,
    legend: Legend = (),
    width: float = _WIDTH,
    height: float = _HEIGHT,
    square: bool = False,
) -> Drawing:
    """Draw marks over two axes.

    Parameters
    ----------
    title, description : str
        What is seen, for people who do not.
    x, y : Axis
        The axes.
    marks : sequence of marks
        From back to front.
    legend : sequence of (str, int)
        Names of series, and their numbers.
    width, height : float
        Of the drawing, in pixels; pages shrink it where they are narrower.
    square : bool
        Whether the field is as high as wide.
    """
    top = _legend_rows(legend, width) * 20.0 + 10.0
    left = max([*(len(name) for name in y.names), 2]) * _LETTER + 12 + (16 if y.label else 0)
    below = 24.0 + (18.0 if x.label else 0.0)
    inner = width - left - 14.0
    if square:
        height = top + inner + below
    place = Place(x, y, left, top, inner, height - top - below)
    drawn = [_grid(place), *(mark.draw(place) for mark in marks), _labels(place, width, height)]
    return picture(width, height, title, description, [*drawn, _legend(legend, left, width)])


def _grid(place: Place) -> str:
    right, bottom = place.left + place.width, place.top + place.height
    lines = [
        element("line", x1=place.left, x2=right, y1=float(at), y2=float(at), class_="grid")
        for at in place.down(place.y.ticks)
    ]
    lines.append(element("line", x1=place.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    return "".join(lines)


def _labels(place: Place, width: float, height: float) -> str:
    bottom = place.top + place.height
    said = [
        words(name, place.left - 7, float(at) + 4, text_anchor="end")
        for name, at in zip(place.y.names, place.down(place.y.ticks), strict=True)
    ]
    last = float("-inf")
    for name, at in zip(place.x.names, place.across(place.x.ticks), strict=True):
        half = len(name) * _LETTER / 2
        if at - half > last + 4:  # names that would touch the one before are left out
            said.append(words(name, float(at), bottom + 17, text_anchor="middle"))
            last = float(at) + half
        said.append(
            element("line", x1=float(at), x2=float(at), y1=bottom, y2=bottom + 4, class_="axis")
        )
    if place.x.label:
        middle = place.left + place.width / 2
        said.append(words(place.x.label, middle, height - 4, "t name", text_anchor="middle"))
    if place.y.label:
        middle = place.top + place.height / 2
        turned = f"rotate(-90 11 {middle:.1f})"
        said.append(
            words(place.y.label, 11, middle, "t name", text_anchor="middle", transform=turned)
        )
    return "".join(said)


def _short(name: str) -> str:
    return name if len(name) <= _SHORT else name[: _SHORT - 1] + "…"


def _wide(name: str) -> float:
    return len(_short(name)) * _LETTER + 30


def _legend_rows(legend: Legend, width: float) -> int:
    rows, used = 0, width
    for name, _ in legend:
        if used + _wide(name) > width - 20:
            rows, used = rows + 1, 0.0
        used += _wide(name)
    return rows


def _legend(legend: Legend, left: float, width: float) -> str:
    drawn, row, used = [], -1, width
    for name, series in legend:
        if used + _wide(name) > width - 20:
            row, used = row + 1, 0.0
        x, y = left + used, 10.0 + 20.0 * row
        field = Place(_UNIT, _UNIT, x, y - 5, 10, 10)
        drawn.append(Points([0.5], [0.5], series, size=7.0).draw(field))
        drawn.append(words(_short(name), x + 15, y + 4))
        used += _wide(name)
    return "".join(drawn)


_UNIT = Axis(0.0, 1.0, (), ())
