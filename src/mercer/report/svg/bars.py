"""Lying bars with names, and intervals that stand in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mercer.report.svg.axes import linear
from mercer.report.svg.elements import Drawing, element, picture, small_picture, words

_WIDTH = 440.0
_STEP = 22.0
_NAME = 30  # letters of a name beside a bar


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
    """Draw a bar for each name, from zero, with an error on either side and a word at its end."""
    errors = [0.0] * len(values) if errors is None else errors
    low = [v - e for v, e in zip(values, errors, strict=True)]
    high = [v + e for v, e in zip(values, errors, strict=True)]
    axis = linear([*low, *high], label, zero=True, count=4)
    left = min(max((len(name) for name in names), default=0), _NAME) * 7.0 + 12
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
        short = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
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
    """Draw a value and its interval on a short scale, with a tick to compare with."""
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
