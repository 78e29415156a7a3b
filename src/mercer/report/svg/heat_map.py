"""A heat map of few cells: the darker the larger, the figure in the cell, one cell marked."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.report.svg.elements import Drawing, element, picture, plain, words

_WIDTH = 440.0
_NAME = 14  # letters of a name beside a row
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
    """Draw a matrix with a figure in every cell.

    Parameters
    ----------
    title, description : str
        What is seen, for people who do not.
    values : (r, c) array
        NaN leaves a cell empty.
    rows, columns : sequences of str
        Names beside and below the cells.
    row_label, column_label : str
        What the names are.
    marked : (int, int), optional
        Row and column of a cell that is framed.
    said : sequence of sequences of str
        What is written in each cell; by default its value.
    low : float, optional
        The value of the lightest cell; by default the smallest that is no outlier.
    width : float
        Of the drawing.
    """
    tall, wide = values.shape
    left = min(max((len(r) for r in rows), default=0), _NAME) * 6.4 + 12
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
    """Return the least value, or where outliers begin: one bad cell must not hide the others."""
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


def _short(name: str, most: int = _NAME) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
