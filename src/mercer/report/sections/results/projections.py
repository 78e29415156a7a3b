"""Projections: rows as points with few coordinates, and what the coordinates are made of."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.report.page import Block, Figure, Figures, Section, Table
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Points, bars, chart, linear
from mercer.report.text import clean, count, figure, share

_POINTS = 1500
_BARS = 20
_COORDINATES = 8  # whose columns are listed
_COLUMNS = 8  # of each


def projection(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.result
    if found is None:
        return None
    coordinates = np.asarray(found.coordinates)
    explained = np.asarray(found.explained, dtype=np.float64)
    total = float(np.nansum(explained))
    lead = f"{count(len(coordinates), 'row')} with {count(coordinates.shape[1], 'coordinate')}"
    lead += f", which have {share(total)} of the variance in feature space." if total else "."
    figures = [_plane(coordinates, explained, k, k + 1) for k in _pairs(coordinates.shape[1])]
    figures.append(_explained(explained))
    blocks: list[Block] = [Figures(tuple(figures))]
    if found.loadings:
        blocks.append(_loadings(found.loadings))
    return Section("projection", "The projection", lead, tuple(blocks))


def _pairs(k: int) -> list[int]:
    return [0, 2] if k >= 4 else [0] if k >= 2 else []


def _plane(coordinates: Array, explained: Array, a: int, b: int) -> Figure:
    some = sampled(len(coordinates), _POINTS)
    names = [f"coordinate {k + 1} ({share(float(explained[k]))})" for k in (a, b)]
    x, y = coordinates[some, a], coordinates[some, b]
    title = f"Coordinates {a + 1} and {b + 1}"
    drawing = chart(
        title, "Each dot is a row.", linear(x, names[0]), linear(y, names[1]),
        [Points(x, y, 0, size=3.6)],
    )  # fmt: skip
    said = "Each dot is a row."
    if len(some) < len(coordinates):
        said += f" {count(len(some))} of {count(len(coordinates), 'row')} are drawn."
    return Figure(title, drawing, said)


def _explained(explained: Array) -> Figure:
    shown = explained[:_BARS]
    drawing = bars(
        "Shares of the variance",
        "; ".join(f"coordinate {k + 1}: {share(float(e))}" for k, e in enumerate(shown[:8])),
        [f"coordinate {k + 1}" for k in range(len(shown))],
        [100 * float(e) for e in shown],
        label="% of the variance",
        said=[share(float(e)) for e in shown],
    )
    return Figure("Shares of the variance", drawing, "Of the variance in feature space.")


def _loadings(loadings: tuple[tuple[tuple[str, float], ...], ...]) -> Table:
    rows = tuple(
        (
            f"coordinate {k + 1}",
            ", ".join(f"{clean(name, 30)} {figure(float(w), 2)}" for name, w in weights[:_COLUMNS]),
        )
        for k, weights in enumerate(loadings[:_COORDINATES])
    )
    return Table(
        ("Coordinate", "Columns and their weights"), rows,
        title="What the coordinates are made of",
        note="The columns that weigh most; the sign says in which direction.",
    )  # fmt: skip
