"""A matrix of many entries as an image: blue is positive, orange negative, nothing is zero.

Pixels are coloured by their opacity, so that zero is the ground of the page, light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.html import png_address
from mercer.report.svg.elements import Drawing, element, picture, words

_SIDE = 300.0
_POSITIVE, _NEGATIVE = (46, 124, 190), (222, 110, 40)  # seen on white and on black
_LEVELS = 48  # of opacity: fewer compress better, and nobody sees more


def matrix(
    title: str,
    description: str,
    values: Array,
    groups: Sequence[tuple[str, int]] = (),
    *,
    ends: tuple[float, float] | None = None,
) -> Drawing:
    """Draw a matrix, its rows in groups.

    Parameters
    ----------
    title, description : str
        What is seen, for people who do not.
    values : (n, m) array
        Entries.
    groups : sequence of (str, int)
        Names of consecutive groups of rows, and how many rows each has; lines are drawn between.
    ends : (float, float), optional
        Values that are drawn as nothing and as full colour; by default zero and the largest size.
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
    """Return colours and opacities (n, m, 4) of entries; the largest is opaque."""
    found = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if ends is not None:
        low, high = ends
        found = np.clip((found - low) / ((high - low) or 1.0), 0.0, 1.0)
    depth = np.abs(found) / (float(np.abs(found).max(initial=0.0)) or 1.0)
    levels = np.round(depth * _LEVELS) / _LEVELS
    image = np.empty((*found.shape, 4), dtype=np.uint8)
    image[..., :3] = np.where(found[..., None] < 0, _NEGATIVE, _POSITIVE)
    image[..., :3][levels == 0] = 0  # one colour for what is not seen: it compresses
    image[..., 3] = np.round(255 * levels)
    return image
