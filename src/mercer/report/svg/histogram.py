"""Histograms: one or several groups in the same columns, and small ones for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.report.svg.axes import ends, linear
from mercer.report.svg.chart import chart
from mercer.report.svg.elements import Drawing, element, small_picture
from mercer.report.svg.marks import Mark, Steps

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
    """Draw how often values are in each of some columns of equal width, groups overlaid."""
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
    """Draw a histogram for a cell of a table; heights are square roots, so that tails are seen."""
    found = finite(values)
    heights = np.histogram(found, edges_of(found, 14))[0] if len(found) else np.zeros(1)
    return small_columns(np.sqrt(heights), title)


def small_columns(heights: Any, title: str) -> Drawing:
    """Draw columns of given heights for a cell of a table."""
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
    """Return the finite values as a plain array."""
    found = np.asarray(values, dtype=np.float64).ravel()
    return np.asarray(found[np.isfinite(found)])


def edges_of(values: Array, columns: int) -> Array:
    """Return edges of columns; few whole numbers have one each."""
    low, high = ends(values)
    whole = np.unique(values[:5000])
    if 1 < len(whole) <= columns and np.all(whole == np.round(whole)) and high - low < columns:
        return np.arange(low - 0.5, high + 1.0)
    if not low < high or not np.isfinite(high - low):
        spread = (abs(low) or 1.0) / 2
        low, high = low - spread, low + spread
    edges = np.linspace(low, high, columns + 1)
    return edges if (np.diff(edges) > 0).all() else np.array([low - 1.0, low + 1.0])
