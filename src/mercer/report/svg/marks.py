"""What is drawn in a chart: points, lines, bands, steps, rules, whiskers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.array_types import Array
from mercer.report.svg.axes import Axis
from mercer.report.svg.elements import element, words

_SHAPES = 4  # of points: dots, squares, crosses, slanted crosses


@dataclass(frozen=True)
class Place:
    """The field of a chart: where values of its axes lie in the drawing."""

    x: Axis
    y: Axis
    left: float
    top: float
    width: float
    height: float

    def across(self, values: Any) -> Array:
        """Return horizontal places."""
        return self.left + self.width * self.x.at(values)

    def down(self, values: Any) -> Array:
        """Return vertical places."""
        return self.top + self.height * (1 - self.y.at(values))


class Mark(Protocol):
    """Something to draw in a field."""

    def draw(self, place: Place) -> str:
        """Return it as text of SVG."""


@dataclass(frozen=True)
class Points:
    """Dots, or other small shapes; `series` numbers colour and shape."""

    x: Any
    y: Any
    series: int = 0
    size: float = 4.0

    def draw(self, place: Place) -> str:
        """Return one path for all points: a point takes ten letters."""
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
    """A line through points in their order; `dashed` for what is only compared with."""

    x: Any
    y: Any
    series: int = 0
    dashed: bool = False

    def draw(self, place: Place) -> str:
        """Return a polyline."""
        points = _corners(*_finite(place.across(self.x), place.down(self.y)))
        dashes = " dash" if self.dashed else ""
        return element("polyline", points=points, class_=f"l c{self.series}{dashes}")


@dataclass(frozen=True)
class Band:
    """The room between two curves over the same values of x."""

    x: Any
    low: Any
    high: Any
    series: int = 0

    def draw(self, place: Place) -> str:
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

    def draw(self, place: Place) -> str:
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
    """A straight line across the field, with a word beside it."""

    at: float
    name: str = ""
    upright: bool = True

    def draw(self, place: Place) -> str:
        """Return a line and its word."""
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
    """Intervals around points, upright."""

    x: Any
    low: Any
    high: Any
    series: int = 0

    def draw(self, place: Place) -> str:
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
