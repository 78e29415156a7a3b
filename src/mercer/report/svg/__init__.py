"""Draw SVG that is colored by CSS classes, so that drawings follow the theme of the page."""

from mercer.report.svg.chart import (
    Axis,
    Band,
    Drawing,
    Legend,
    Line,
    Points,
    Rule,
    Steps,
    Whiskers,
    categories,
    chart,
    linear,
    logarithmic,
)
from mercer.report.svg.figures import bars, heat_map, histogram, interval, matrix, small_histogram

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
