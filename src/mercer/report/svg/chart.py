"""Charts in SVG: elements, axes, marks, and legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol, TypeAlias

import numpy as np

from mercer.array_types import Array
from mercer.report.text import clean

# --- elements ------------------------------------------------------------------------------------
#
# Elements of SVG as text: every attribute and every word is escaped here, and nowhere else.

_MOST = 40  # letters of a word in a drawing: longer ones run out of it


class Drawing(str):
    """Text of an SVG element, inserted by templates without escaping."""

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
    """Write a text element; the text is cleaned, shortened and escaped."""
    return element("text", plain(content), x=x, y=y, class_=class_, **attributes)


def plain(content: Any, most: int = _MOST) -> str:
    """Return content as escaped text of an element."""
    return escape(clean(content, most), quote=False)


def number(value: Any) -> str:
    """Write a number with the precision of pixels; other values unchanged."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


def picture(
    width: float, height: float, title: str, description: str, children: Iterable[str]
) -> Drawing:
    """Put elements into an SVG with a title and a description for screen readers."""
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
    """Put elements into an inline SVG."""
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


# --- axes ----------------------------------------------------------------------------------------
#
# Axes: where values lie between the ends, and round numbers to read them by.

_ALIKE, _NOTHING = 1e-12, 1e-290  # ends so close, relatively or at all, are one value
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # steps of ticks, times a power of ten


@dataclass(frozen=True)
class Axis:
    """A range of values with ticks.

    Attributes
    ----------
    low, high : float
        The ends.
    ticks : tuple of float
        Positions of the ticks.
    names : tuple of str
        Labels of the ticks.
    label : str
        Label of the axis.
    log : bool
        Whether the scale is logarithmic.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    names: tuple[str, ...]
    label: str = ""
    log: bool = False

    def at(self, values: Any) -> Array:
        """Map values to positions from 0 to 1."""
        found = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.log:
                low, high = math.log(self.low), math.log(self.high)
                return np.asarray((np.log(found) - low) / (high - low))
            # halves, so that the ends may be as far apart as numbers go
            half = self.high / 2 - self.low / 2
            return np.asarray((found / 2 - self.low / 2) / half)


def linear(
    values: Any, label: str = "", *, zero: bool = False, count: int = 5, tight: bool = False
) -> Axis:
    """Return an axis of all finite values that ends at ticks or, if `tight`, at the values."""
    low, high = ends(values)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    size = max(abs(low), abs(high))
    if high / 2 - low / 2 <= max(_ALIKE * size, _NOTHING):
        half = size / 2 if size > _NOTHING else 0.5
        low, high = low - half, high + half
    ticks, step = round_ticks(low, high, count)
    if not tight:
        low, high = min(low, ticks[0]), max(high, ticks[-1])
        if low < ticks[0] or high > ticks[-1]:
            ticks, _ = round_ticks(low, high, count)
    kept = tuple(t for t in ticks if low - 1e-9 * step <= t <= high + 1e-9 * step)
    return Axis(low, high, kept, tick_names(kept, step), label)


def logarithmic(values: Any, label: str = "") -> Axis:
    """Return a logarithmic axis of all positive values with ticks at powers of ten."""
    found = np.asarray(values, dtype=np.float64)
    low, high = ends(found[found > 0])
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = max(1, math.ceil((last - first) / 5))
    powers = range(first, last + 1, step)
    ticks = tuple(10.0**p for p in powers)
    return Axis(
        min(low, 10.0**first), 10.0**last, ticks, tuple(power_name(p) for p in powers), label, True
    )


def categories(names: Sequence[str], label: str = "") -> Axis:
    """Return an axis with a tick in the center of each unit interval."""
    ticks = tuple(k + 0.5 for k in range(len(names)))
    return Axis(0.0, float(max(len(names), 1)), ticks, tuple(names), label)


def ends(values: Any) -> tuple[float, float]:
    """Return the smallest and largest finite values, or 0 and 1 if there are none."""
    found = np.asarray(values, dtype=np.float64).ravel()
    found = found[np.isfinite(found)]
    return (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)


def round_ticks(low: float, high: float, count: int = 5) -> tuple[tuple[float, ...], float]:
    """Return about `count` round numbers from at most `low` to at least `high`, and their step.

    Examples
    --------
    >>> round_ticks(0.0, 9.3, 5)[0]
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """
    rough = (high / count - low / count) or 1.0
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 1e-300 else 1e-300
    step = next(power * r for r in _ROUND if power * r >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [step * k for k in range(first, last + 1)] if last - first < 100 else [low, high]
    return tuple(t for t in ticks if math.isfinite(t)) or (low, high), step


def tick_names(ticks: Sequence[float], step: float) -> tuple[str, ...]:
    """Write ticks with as many decimals as their step has."""
    most = max((abs(t) for t in ticks), default=0.0)
    if most >= 1e6 or (most and most < 1e-3):
        return tuple("0" if t == 0 else f"{t:.3g}".replace("-", "−", 1) for t in ticks)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    if round(step, decimals) != round(step, decimals + 1):
        decimals += 1
    return tuple(f"{t:,.{decimals}f}".replace("-", "−") for t in ticks)


def power_name(power: int) -> str:
    """Write a power of ten, as a plain number if that is short."""
    if -3 <= power <= 4:
        return f"{10.0**power:g}"
    signs = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(power).translate(signs)


# --- marks ---------------------------------------------------------------------------------------
#
# Marks in a chart: points, lines, bands, steps, rules, whiskers.

_SHAPES = 4  # of points: dots, squares, crosses, slanted crosses


@dataclass(frozen=True)
class ChartField:
    """The plot area of a chart: maps values of the axes to pixels."""

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float

    def across(self, values: Any) -> Array:
        """Return horizontal positions."""
        return self.left + self.width * self.x.at(values)

    def down(self, values: Any) -> Array:
        """Return vertical positions."""
        return self.top + self.height * (1 - self.y.at(values))


class Mark(Protocol):
    """A mark in the plot area."""

    def draw(self, place: ChartField) -> str:
        """Return the mark as SVG text."""


@dataclass(frozen=True)
class Points:
    """Dots or other markers; `series` selects color and shape."""

    x: Any
    y: Any
    series: int = 0
    size: float = 4.0

    def draw(self, place: ChartField) -> str:
        """Return one path for all points, with about ten characters per point."""
        x, y = _finite(place.across(self.x), place.down(self.y))
        if not len(x):
            return ""
        shape, half = self.series % _SHAPES, self.size / 2
        if shape < 2:
            steps = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
        elif shape == 2:
            steps = "".join(
                f"M{a - half:.1f} {b:.1f}h{2 * half:g}m{-half:g} {-half:g}v{2 * half:g}"
                for a, b in zip(x, y, strict=True)
            )
        else:
            steps = "".join(
                f"M{a - half:.1f} {b - half:.1f}l{2 * half:g} {2 * half:g}"
                f"m0 {-2 * half:g}l{-2 * half:g} {2 * half:g}"
                for a, b in zip(x, y, strict=True)
            )
        wide = self.size if shape < 2 else 1.4
        kind = ("dot", "square", "cross", "cross")[shape]
        return element("path", d=steps, class_=f"p {kind} c{self.series}", stroke_width=wide)


@dataclass(frozen=True)
class Line:
    """A line through points in order; reference lines are `dashed`."""

    x: Any
    y: Any
    series: int = 0
    dashed: bool = False

    def draw(self, place: ChartField) -> str:
        """Return a polyline."""
        points = _corners(*_finite(place.across(self.x), place.down(self.y)))
        dashes = " dash" if self.dashed else ""
        return element("polyline", points=points, class_=f"l c{self.series}{dashes}")


@dataclass(frozen=True)
class Band:
    """The area between two curves over the same values of x."""

    x: Any
    low: Any
    high: Any
    series: int = 0

    def draw(self, place: ChartField) -> str:
        """Return a polygon."""
        x = np.concatenate([np.asarray(self.x), np.asarray(self.x)[::-1]])
        y = np.concatenate([np.asarray(self.low), np.asarray(self.high)[::-1]])
        points = _corners(*_finite(place.across(x), place.down(y)))
        return element("polygon", points=points, class_=f"b c{self.series}")


@dataclass(frozen=True)
class Steps:
    """Columns of a histogram: n + 1 edges and n heights."""

    edges: Any
    heights: Any
    series: int = 0

    def draw(self, place: ChartField) -> str:
        """Return a rectangle for each column that is not empty."""
        x, y = place.across(self.edges), place.down(self.heights)
        floor = float(place.down(0.0))
        gap = 1.0 if place.width / max(len(y), 1) > 5 else 0.0
        return "".join(
            element(
                "rect", x=float(a), y=float(top), width=float(max(b - a - gap, 0.5)),
                height=float(floor - top), class_=f"f c{self.series}",
            )
            for a, b, top in zip(x[:-1], x[1:], y, strict=True)
            if floor - top > 0.05
        )  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A straight line across the plot area with a label."""

    at: float
    name: str = ""
    upright: bool = True

    def draw(self, place: ChartField) -> str:
        """Return the line and its label."""
        right, bottom = place.left + place.width, place.top + place.height
        if self.upright:
            x = float(place.across(self.at))
            line = element("line", x1=x, x2=x, y1=place.top, y2=bottom, class_="rule")
            past = x > place.left + 0.75 * place.width
            side, anchor = (x - 5, "end") if past else (x + 5, "start")
            return line + _name(self.name, side, place.top + 11, anchor)
        y = float(place.down(self.at))
        line = element("line", x1=place.left, x2=right, y1=y, y2=y, class_="rule")
        return line + _name(self.name, right - 4, y - 5, "end")


@dataclass(frozen=True)
class Whiskers:
    """Vertical intervals around points."""

    x: Any
    low: Any
    high: Any
    series: int = 0

    def draw(self, place: ChartField) -> str:
        """Return one path."""
        x, low, high = place.across(self.x), place.down(self.low), place.down(self.high)
        good = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
        steps = "".join(
            f"M{a:.1f} {b:.1f}V{c:.1f}"
            for a, b, c in zip(x[good], low[good], high[good], strict=True)
        )
        return element("path", d=steps, class_=f"l c{self.series}") if steps else ""


def _name(name: str, x: float, y: float, anchor: str) -> str:
    return words(name, x, y, "t halo", text_anchor=anchor) if name else ""


def _finite(x: Array, y: Array) -> tuple[Array, Array]:
    x, y = np.broadcast_arrays(np.atleast_1d(x), np.atleast_1d(y))
    good = np.isfinite(x) & np.isfinite(y)
    return x[good], y[good]


def _corners(x: Array, y: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


# --- chart ---------------------------------------------------------------------------------------
#
# A chart: a field with axes, marks in it, and a legend above.

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
        Title and description for screen readers.
    x, y : Axis
        The axes.
    marks : sequence of marks
        From back to front.
    legend : sequence of (str, int)
        Names of series, and their numbers.
    width, height : float
        Size of the drawing in pixels. Narrow pages shrink it.
    square : bool
        Whether the plot area is a square.
    """
    top = _legend_rows(legend, width) * 20.0 + 10.0
    left = max([*(len(name) for name in y.names), 2]) * _LETTER + 12 + (16 if y.label else 0)
    below = 24.0 + (18.0 if x.label else 0.0)
    inner = width - left - 14.0
    if square:
        height = top + inner + below
    place = ChartField(x, y, left, top, inner, height - top - below)
    drawn = [_grid(place), *(mark.draw(place) for mark in marks), _labels(place, width, height)]
    return picture(width, height, title, description, [*drawn, _legend(legend, left, width)])


def _grid(place: ChartField) -> str:
    right, bottom = place.left + place.width, place.top + place.height
    lines = [
        element("line", x1=place.left, x2=right, y1=float(at), y2=float(at), class_="grid")
        for at in place.down(place.y.ticks)
    ]
    lines.append(element("line", x1=place.left, x2=right, y1=bottom, y2=bottom, class_="axis"))
    return "".join(lines)


def _labels(place: ChartField, width: float, height: float) -> str:
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
        field = ChartField(_UNIT, _UNIT, x, y - 5, 10, 10)
        drawn.append(Points([0.5], [0.5], series, size=7.0).draw(field))
        drawn.append(words(_short(name), x + 15, y + 4))
        used += _wide(name)
    return "".join(drawn)


_UNIT = Axis(0.0, 1.0, (), ())
