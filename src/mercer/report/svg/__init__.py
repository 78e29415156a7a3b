"""Drawings as SVG text, coloured by the classes of the page, so that they follow its theme."""

from mercer.report.svg.axes import Axis, categories, linear, logarithmic
from mercer.report.svg.bars import bars, interval
from mercer.report.svg.chart import Legend, chart
from mercer.report.svg.elements import Drawing
from mercer.report.svg.heat_map import heat_map
from mercer.report.svg.histogram import histogram, small_histogram
from mercer.report.svg.marks import Band, Line, Points, Rule, Steps, Whiskers
from mercer.report.svg.matrix import matrix

__all__ = [
    "Axis",
    "Band",
    "Drawing",
    "Legend",
    "Line",
    "Points",
    "Rule",
    "Steps",
    "Whiskers",
    "bars",
    "categories",
    "chart",
    "heat_map",
    "histogram",
    "interval",
    "linear",
    "logarithmic",
    "matrix",
    "small_histogram",
]
