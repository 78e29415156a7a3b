"""Figures in SVG: bars, heat maps, histograms, and matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.html import png_address
from mercer.report.svg.chart import (
    Drawing,
    Mark,
    Steps,
    chart,
    element,
    ends,
    linear,
    picture,
    plain,
    small_picture,
    words,
)

# --- bars ----------------------------------------------------------------------------------------
#
# Lying bars with names, and intervals that stand in a line of text.

_WIDTH = 440.0
_STEP = 22.0
_BARS_NAME = 30  # characters of the label of a bar


def bars(
    title: str,
    description: str,
    names: Sequence[str],
    values: Sequence[float],
    *,
    errors: Sequence[float] | None = None,
    label: str = "",
    said: Sequence[str] = (),
    width: float = _WIDTH,
) -> Drawing:
    """Draw a horizontal bar for each name, with an error bar and a label at its end."""
    errors = [0.0] * len(values) if errors is None else errors
    low = [v - e for v, e in zip(values, errors, strict=True)]
    high = [v + e for v, e in zip(values, errors, strict=True)]
    axis = linear([*low, *high], label, zero=True, count=4)
    left = min(max((len(name) for name in names), default=0), _BARS_NAME) * 7.0 + 12
    right = max((len(word) for word in said), default=0) * 7.0 + 12
    inner, height = width - left - right, len(names) * _STEP + 40 + (0 if label else -16)

    def across(value: float) -> float:
        return left + inner * float(axis.at(value))

    bottom = height - (40 if label else 24)
    drawn = [
        element("line", x1=across(t), x2=across(t), y1=0, y2=bottom, class_="grid")
        for t in axis.ticks
    ]
    for k, (name, value) in enumerate(zip(names, values, strict=True)):
        y, start, end = k * _STEP + 3, *sorted((across(0.0), across(value)))
        drawn.append(
            element("rect", x=start, y=y, width=end - start, height=_STEP - 8, class_="f c0")
        )
        if errors[k] > 0:
            middle = y + (_STEP - 8) / 2
            drawn.append(
                element(
                    "line", x1=across(low[k]), x2=across(high[k]), y1=middle, y2=middle,
                    class_="whisker",
                )
            )  # fmt: skip
        short = name if len(name) <= _BARS_NAME else name[: _BARS_NAME - 1] + "…"
        drawn.append(words(short, left - 8, y + 11, "t name", text_anchor="end"))
        if said:
            drawn.append(words(said[k], width - 2, y + 11, "t name", text_anchor="end"))
    for tick, word in zip(axis.ticks, axis.names, strict=True):
        drawn.append(words(word, across(tick), bottom + 16, text_anchor="middle"))
    if label:
        drawn.append(words(label, left + inner / 2, height - 4, "t name", text_anchor="middle"))
    return picture(width, height, title, description, drawn)


def interval(
    value: float,
    low: float,
    high: float,
    ends: tuple[float, float],
    title: str,
    *,
    tick: float | None = None,
    width: float = 120.0,
    series: int = 0,
) -> Drawing:
    """Draw a value and its interval on a short scale, with a reference tick."""
    start, end = ends
    span = (end - start) or 1.0
    height = 16.0

    def across(at: float) -> float:
        return 5 + (width - 10) * min(max((at - start) / span, 0.0), 1.0)

    middle = height / 2
    drawn = [element("line", x1=0, x2=width, y1=middle, y2=middle, class_="grid")]
    if tick is not None and math.isfinite(tick):
        drawn.append(
            element(
                "line", x1=across(tick), x2=across(tick), y1=middle - 5, y2=middle + 5,
                class_="axis",
            )
        )  # fmt: skip
    if math.isfinite(low) and math.isfinite(high):
        drawn.append(
            element(
                "line", x1=across(low), x2=across(high), y1=middle, y2=middle,
                class_=f"l c{series} wide",
            )
        )  # fmt: skip
    if math.isfinite(value):
        drawn.append(element("circle", cx=across(value), cy=middle, r=4, class_=f"f c{series}"))
    return small_picture(width, height, title, drawn)


# --- heat map ------------------------------------------------------------------------------------
#
# A heat map of few cells: the darker the larger, the figure in the cell, one cell marked.

_HEAT_MAP_NAME = 14  # characters of the label of a row
_LEAST = 0.06  # opacity of the smallest value: a cell that is there is seen
_DARK = 0.83  # opacity from which on white letters are easier to read than black ones


def heat_map(
    title: str,
    description: str,
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_label: str = "",
    column_label: str = "",
    marked: tuple[int, int] | None = None,
    said: Sequence[Sequence[str]] = (),
    low: float | None = None,
    width: float = _WIDTH,
) -> Drawing:
    """Draw a matrix with a number in every cell.

    Parameters
    ----------
    title, description : str
        Title and description for screen readers.
    values : (r, c) array
        NaN leaves a cell empty.
    rows, columns : sequences of str
        Names of the rows and columns.
    row_label, column_label : str
        Labels of the axes.
    marked : (int, int), optional
        Row and column of a framed cell.
    said : sequence of sequences of str
        Text of each cell. If None, its value.
    low : float, optional
        Value of the lightest cell. If None, the smallest value that is not an outlier.
    width : float
        Width of the drawing.
    """
    tall, wide = values.shape
    left = min(max((len(r) for r in rows), default=0), _HEAT_MAP_NAME) * 6.4 + 12
    left += 16 if row_label else 0
    side = min((width - left - 4) / max(wide, 1), 110.0)
    high = min(side, 34.0) if wide > 3 else 60.0
    bottom = tall * high + 4
    height = bottom + 22 + (18 if column_label else 0)
    depth = _depths(values, low)
    said = said or [[f"{value:.3g}" for value in row] for row in values]
    drawn = []
    for i in range(tall):
        drawn.append(words(_short(rows[i]), left - 8, i * high + high / 2 + 6, text_anchor="end"))
        for j in range(wide):
            name = f"{rows[i]}, {columns[j]}: "
            drawn.append(
                _cell(left + j * side, i * high + 2, side, high, float(values[i, j]),
                      float(depth[i, j]), name, said[i][j])
            )  # fmt: skip
    if marked is not None:
        i, j = marked
        drawn.append(
            element(
                "rect", x=left + j * side, y=i * high + 2.0, width=side - 1, height=high - 1,
                class_="marked",
            )
        )  # fmt: skip
    letters = max(3, int(side / 6.6))
    drawn += [
        words(_short(name, letters), left + (j + 0.5) * side, bottom + 15, text_anchor="middle")
        for j, name in enumerate(columns)
    ]
    drawn.append(_labels(row_label, column_label, left, bottom, side * wide, height))
    return picture(max(left + side * wide + 4, width), height, title, description, drawn)


def _cell(
    x: float,
    y: float,
    side: float,
    high: float,
    value: float,
    depth: float,
    name: str,
    said: str,
) -> str:
    if math.isnan(value):
        return element("rect", x=x, y=y, width=side - 1, height=high - 1, class_="empty")
    box = element(
        "rect", element("title", plain(name + said, 120)), x=x, y=y, width=side - 1,
        height=high - 1, class_="h", fill_opacity=f"{depth:.2f}",
    )  # fmt: skip
    if len(said) * 6.4 > side - 2:
        return box
    class_ = "t on" if depth > _DARK else "t in"
    return box + words(said, x + side / 2, y + high / 2 + 4, class_, text_anchor="middle")


def _depths(values: Array, low: float | None) -> Array:
    """Return opacities of cells."""
    good = values[np.isfinite(values)]
    least = low if low is not None else _fence(good)
    span = (float(good.max()) - least) if len(good) else 0.0
    scaled = (values - least) / span if span > 0 else np.full(values.shape, 0.5)
    return _LEAST + (1 - _LEAST) * np.clip(np.nan_to_num(scaled), 0.0, 1.0)


def _fence(values: Array) -> float:
    """Return the smallest value that is not an outlier."""
    if not len(values):
        return 0.0
    low, high = np.quantile(values, [0.25, 0.75])
    return max(float(values.min()), float(low - 1.5 * (high - low)))


def _labels(
    row_label: str, column_label: str, left: float, bottom: float, wide: float, height: float
) -> str:
    said = []
    if column_label:
        said.append(
            words(column_label, left + wide / 2, height - 4, "t name", text_anchor="middle")
        )
    if row_label:
        turned = f"rotate(-90 11 {bottom / 2:.1f})"
        said.append(
            words(row_label, 11, bottom / 2, "t name", text_anchor="middle", transform=turned)
        )
    return "".join(said)


def _short(name: str, most: int = _HEAT_MAP_NAME) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


# --- histogram -----------------------------------------------------------------------------------
#
# Histograms: one or several groups in the same columns, and small ones for tables.

_COLUMNS = 32
_SMALL = (84.0, 22.0)


def histogram(
    title: str,
    description: str,
    groups: Mapping[str, Any],
    label: str,
    *,
    marks: Sequence[Mark] = (),
    columns: int = _COLUMNS,
) -> Drawing:
    """Draw overlaid histograms of groups."""
    found = {name: finite(values) for name, values in groups.items()}
    everything = np.concatenate([*found.values(), np.empty(0)])
    edges = edges_of(everything, columns)
    heights = {name: np.histogram(values, edges)[0] for name, values in found.items()}
    most = max((float(h.max(initial=0)) for h in heights.values()), default=0.0)
    x, y = linear(edges, label, tight=True), linear([0, most], "rows", zero=True, count=4)
    steps: list[Mark] = [Steps(edges, h, k) for k, h in enumerate(heights.values())]
    legend = [(name, k) for k, name in enumerate(heights)] if len(heights) > 1 else []
    return chart(title, description, x, y, [*steps, *marks], legend=legend)


def small_histogram(values: Any, title: str) -> Drawing:
    """Draw a histogram for a table cell; heights are square roots of counts, to show the tails."""
    found = finite(values)
    heights = np.histogram(found, edges_of(found, 14))[0] if len(found) else np.zeros(1)
    return small_columns(np.sqrt(heights), title)


def small_columns(heights: Any, title: str) -> Drawing:
    """Draw a bar chart for a table cell."""
    width, height = _SMALL
    tall = np.asarray(heights, dtype=np.float64)
    tall = tall / (tall.max(initial=0.0) or 1.0) * (height - 2)
    step = min(width / max(len(tall), 1), 14.0)
    drawn = [
        element(
            "rect", x=k * step, y=height - 1 - float(h), width=max(step - 1, 0.8), height=float(h),
            class_="f c0",
        )
        for k, h in enumerate(np.where(tall > 0, np.maximum(tall, 1.0), 0.0))
        if h
    ]  # fmt: skip
    floor = element("line", x1=0, x2=width, y1=height - 0.5, y2=height - 0.5, class_="grid")
    return small_picture(width, height, title, [floor, *drawn])


def finite(values: Any) -> Array:
    """Return the finite values as an array."""
    found = np.asarray(values, dtype=np.float64).ravel()
    return np.asarray(found[np.isfinite(found)])


def edges_of(values: Array, columns: int) -> Array:
    """Return the edges of bins; each of a few integers gets its own bin."""
    low, high = ends(values)
    whole = np.unique(values[:5000])
    if 1 < len(whole) <= columns and np.all(whole == np.round(whole)) and high - low < columns:
        return np.arange(low - 0.5, high + 1.0)
    if not low < high or not np.isfinite(high - low):
        spread = (abs(low) or 1.0) / 2
        low, high = low - spread, low + spread
    edges = np.linspace(low, high, columns + 1)
    return edges if (np.diff(edges) > 0).all() else np.array([low - 1.0, low + 1.0])


# --- matrix --------------------------------------------------------------------------------------
#
# A matrix of many entries as an image: blue is positive, orange negative, nothing is zero.
#
# Values are the opacity of pixels, so that zero is the background of a light or dark page.

_SIDE = 300.0
_POSITIVE, _NEGATIVE = (46, 124, 190), (222, 110, 40)  # seen on white and on black
_LEVELS = 48  # levels of opacity: fewer compress better without a visible difference


def matrix(
    title: str,
    description: str,
    values: Array,
    groups: Sequence[tuple[str, int]] = (),
    *,
    ends: tuple[float, float] | None = None,
) -> Drawing:
    """Draw a matrix whose rows are in groups.

    Parameters
    ----------
    title, description : str
        Title and description for screen readers.
    values : (n, m) array
        Entries.
    groups : sequence of (str, int)
        Names and sizes of consecutive groups of rows, separated by lines.
    ends : (float, float), optional
        Values of the lightest and darkest color. If None, zero and the largest absolute value.
    """
    left = 80.0 if groups else 10.0
    drawn = [
        element(
            "image", x=left, y=4, width=_SIDE, height=_SIDE, preserveAspectRatio="none",
            href=png_address(pixels(values, ends)), class_="pixels",
        ),
        element("rect", x=left, y=4, width=_SIDE, height=_SIDE, class_="frame"),
    ]  # fmt: skip
    at, total = 0, sum(size for _, size in groups) or 1
    for name, size in groups:
        start, end = _SIDE * at / total, _SIDE * (at + size) / total
        if at:
            x, y = left + start, 4 + start
            drawn.append(element("line", x1=left, x2=left + _SIDE, y1=y, y2=y, class_="rule"))
            drawn.append(element("line", x1=x, x2=x, y1=4, y2=4 + _SIDE, class_="rule"))
        if end - start > 12:
            short = name if len(name) <= 11 else name[:10] + "…"
            drawn.append(words(short, left - 7, 8 + (start + end) / 2, text_anchor="end"))
        at += size
    return picture(_SIDE + left + 10, _SIDE + 8, title, description, drawn)


def pixels(values: Array, ends: tuple[float, float] | None = None) -> Array:
    """Return colors and opacities (n, m, 4) of entries; the largest is opaque."""
    found = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if ends is not None:
        low, high = ends
        found = np.clip((found - low) / ((high - low) or 1.0), 0.0, 1.0)
    depth = np.abs(found) / (float(np.abs(found).max(initial=0.0)) or 1.0)
    levels = np.round(depth * _LEVELS) / _LEVELS
    image = np.empty((*found.shape, 4), dtype=np.uint8)
    image[..., :3] = np.where(found[..., None] < 0, _NEGATIVE, _POSITIVE)
    image[..., :3][levels == 0] = 0  # one color for invisible pixels compresses better
    image[..., 3] = np.round(255 * levels)
    return image
