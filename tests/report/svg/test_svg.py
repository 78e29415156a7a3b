"""Drawings: ticks that are round, places that are right, and nothing that breaks them."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.report.svg import (
    Band,
    Line,
    Points,
    Rule,
    Steps,
    Whiskers,
    bars,
    chart,
    heat_map,
    histogram,
    interval,
    linear,
    logarithmic,
    matrix,
    small_histogram,
)
from mercer.report.svg.chart import element, round_ticks, words

NUMBERS = st.floats(-1e12, 1e12)


@given(NUMBERS, NUMBERS)
def test_ticks_hold_what_they_should(a, b):
    axis = linear([a, b])
    low, high = min(a, b), max(a, b)
    assert axis.low <= low <= high <= axis.high
    assert 2 <= len(axis.ticks) <= 12
    assert all(0 <= place <= 1 for place in axis.at([a, b]))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (-3, 7, (-4, -2, 0, 2, 4, 6, 8)),
        (0, 97, (0, 20, 40, 60, 80, 100)),
    ],
)
def test_ticks_are_round(low, high, ticks):
    np.testing.assert_allclose(round_ticks(low, high)[0], ticks)


@pytest.mark.parametrize(
    "values", [[], [np.nan], [np.inf, 1.0], [0.0], [-1e308, 1e308], [5e-324, 1e-320], [7, 7, 7]]
)
def test_axes_of_odd_values(values):
    axis = linear(values)
    assert axis.low < axis.high
    assert len(axis.ticks) == len(axis.names)
    small_histogram(values, "odd")
    histogram("t", "d", {"g": values}, "x")


def test_a_logarithmic_axis_has_powers_of_ten():
    axis = logarithmic([0.02, 3.0, 0.0, -1.0, np.nan])
    assert axis.names == ("0.01", "0.1", "1", "10")
    np.testing.assert_allclose(axis.at([0.01, 10.0]), [0.0, 1.0], atol=1e-12)


def test_places_are_where_axes_say():
    x, y = linear([0, 10]), linear([0, 1])
    drawing = chart("t", "d", x, y, [Line([0, 10], [0, 1])], width=440, height=300)
    (line,) = [one for one in ET.fromstring(drawing).iter("polyline")]
    start, end = (tuple(map(float, p.split(","))) for p in line.get("points").split())
    grid = [one for one in ET.fromstring(drawing).iter("line") if one.get("class") == "grid"]
    assert start == (float(grid[0].get("x1")), float(grid[0].get("y1")))
    assert end == (float(grid[-1].get("x2")), float(grid[-1].get("y1")))


def test_everything_is_well_formed():
    nasty = "<&\"'>\x00\u202e"
    x, y = linear([0, 1], nasty), linear([0, 1], nasty)
    marks = [
        *(Points([0.1, np.nan, 0.5], [0.2, 0.3, np.inf], k) for k in range(5)),
        Band([0, 1], [0, 0], [1, 1]), Whiskers([0.5], [0.1], [0.9]), Steps([0, 0.5, 1], [0.2, 0.4]),
        Rule(0.5, nasty), Rule(0.9, nasty), Rule(0.5, nasty, upright=False),
    ]  # fmt: skip
    legend = [(nasty * 20, k) for k in range(8)]
    drawings = [
        chart(nasty, nasty, x, y, marks, legend=legend, square=True),
        bars(nasty, nasty, [nasty, "b"], [1.0, -2.0], errors=[0.1, 0.0], said=[nasty, "b"],
             label=nasty),
        heat_map(nasty, nasty, np.array([[1.0, np.nan]]), [nasty], [nasty, "b"], marked=(0, 1),
                 row_label=nasty, column_label=nasty),
        matrix(nasty, nasty, np.array([[1.0, -1.0], [np.nan, 0.0]]), [(nasty, 1), ("b", 1)]),
        interval(0.5, 0.4, np.nan, (0.0, 1.0), nasty, tick=0.2),
        histogram(nasty, nasty, {nasty: [1.0, 2.0, 3.0], "b": []}, nasty),
    ]  # fmt: skip
    for drawing in drawings:
        root = ET.fromstring(drawing)  # raises where it is not well formed
        assert root.tag == "svg"
        assert root[0].tag == "title"
        assert "nan" not in "".join(str(v) for one in root.iter() for v in one.attrib.values())


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_words_are_text(content):
    assert len(ET.fromstring(words(content, 0, 0))) == 0
    ET.fromstring(element("line", class_=repr(content)))
