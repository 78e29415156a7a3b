"""Report sections on clusters, projections, and topics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.report.page import Block, Figure, Figures, PageTable, Section
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Line, Points, Rule, bars, chart, linear
from mercer.report.text import clean, count, figure, share

# --- clusters ------------------------------------------------------------------------------------
#
# Clusters: number, sizes and distinctive columns.

_POINTS = 1500
_COLOURS = 7
_CLUSTERS = 30  # in the table
_SENTENCES = 5  # about each


def clusters(subject: Subject) -> Section | None:
    """Build the section, or return None without labels."""
    labels = None if subject.truth is None else np.asarray(subject.truth)
    if labels is None or not len(labels):
        return None
    found = subject.result
    known, sizes = np.unique(labels, return_counts=True)
    lead = f"{count(len(labels), 'row')} in {count(len(known), 'cluster')}"
    lead += f" of {count(int(sizes.min()))} to {count(int(sizes.max()), 'row')}."
    figures = [sizes_figure(known, sizes)]
    if found is not None and len(found.candidates) > 1:
        figures.insert(0, candidates_figure(found.candidates, found.criterion, len(known)))
    if found is not None and np.ndim(found.coordinates) == 2:
        figures.append(plane_figure(np.asarray(found.coordinates), labels))
    blocks: list[Block] = [Figures(tuple(figures))]
    if found is not None and found.profiles:
        blocks.append(profiles_table(known, sizes, found.profiles))
    return Section("clusters", "Clusters", lead, tuple(blocks))


def candidates_figure(
    candidates: Sequence[tuple[int, float]], criterion: str, taken: int, noun: str = "clusters"
) -> Figure:
    """Draw the criterion that selected the number of clusters or topics."""
    at, values = np.array([k for k, _ in candidates]), np.array([v for _, v in candidates])
    title = f"Number of {noun}"
    drawing = chart(
        title,
        f"{clean(criterion, 120)} by number of {noun}; {taken} were selected.",
        linear(at, f"number of {noun}"),
        linear(values, ""),
        [Line(at, values), Points(at, values, size=6.0), Rule(float(taken), "selected")],
    )
    return Figure(title, drawing, f"{_sentence(clean(criterion, 200)).rstrip('.')}.")


def sizes_figure(known: Array, sizes: Array) -> Figure:
    """Draw the sizes of the clusters."""
    order = np.argsort(-sizes, kind="stable")[:_CLUSTERS]
    part = sizes[order] / sizes.sum()
    drawing = bars(
        "Sizes",
        "; ".join(f"cluster {known[k]}: {sizes[k]} rows" for k in order[:10]),
        [f"cluster {clean(known[k], 12)}" for k in order],
        [float(sizes[k]) for k in order],
        label="rows",
        said=[share(float(p)) for p in part],
    )
    left = len(sizes) - len(order)
    return Figure("Sizes", drawing, f"And {count(left, 'more cluster')}." if left else "")


def plane_figure(coordinates: Array, labels: Array) -> Figure:
    """Draw rows in the plane, colored by cluster."""
    some = sampled(len(labels), _POINTS)
    x, y, own = coordinates[some, 0], coordinates[some, 1], labels[some]
    known, sizes = np.unique(labels, return_counts=True)
    kept = known[np.sort(np.argsort(-sizes, kind="stable")[:_COLOURS])]
    marks = [Points(x[own == k], y[own == k], i, size=3.6) for i, k in enumerate(kept)]
    legend = [(f"cluster {clean(k, 12)}", i) for i, k in enumerate(kept)]
    if len(kept) < len(known):
        rest = ~np.isin(own, kept)
        marks.append(Points(x[rest], y[rest], _COLOURS, size=3.6))
        legend.append(("others", _COLOURS))
    drawing = chart(
        "Projection", "Rows in the plane of their first two principal components.",
        linear(x, "component 1"), linear(y, "component 2"), marks, legend=legend,
    )  # fmt: skip
    said = "Rows in the plane of their first two principal components. Clusters that overlap here "
    said += "can be separate in other directions."
    if len(some) < len(labels):
        said += f" Shown: {count(len(some))} of {count(len(labels), 'row')}."
    return Figure("Projection", drawing, said)


def profiles_table(known: Array, sizes: Array, profiles: Sequence[Sequence[str]]) -> PageTable:
    """List the distinctive columns of each cluster."""
    rows = tuple(
        (
            f"cluster {clean(k, 12)}",
            count(int(n)),
            "; ".join(clean(s, 160) for s in said[:_SENTENCES]),
        )
        for k, n, said in list(zip(known, sizes, profiles, strict=False))[:_CLUSTERS]
    )
    left = len(known) - len(rows)
    note = f"And {count(left, 'more cluster')}." if left > 0 else ""
    head = ("Cluster", "Rows", "Distinctive columns")
    return PageTable(head, rows, (1,), title="Profiles of clusters", note=note)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- projections ---------------------------------------------------------------------------------
#
# Projections: coordinates of the rows, and the weights of the columns.

_BARS = 20
_COORDINATES = 8  # in the table
_COLUMNS = 8  # per coordinate


def projection(subject: Subject) -> Section | None:
    """Build the section, or return None without a result."""
    found = subject.result
    if found is None:
        return None
    coordinates = np.asarray(found.coordinates)
    explained = np.asarray(found.explained, dtype=np.float64)
    total = float(np.nansum(explained))
    lead = f"{count(len(coordinates), 'row')} with {count(coordinates.shape[1], 'coordinate')}"
    lead += f", which explain {share(total)} of the variance in feature space." if total else "."
    figures = [_plane(coordinates, explained, k, k + 1) for k in _pairs(coordinates.shape[1])]
    figures.append(_explained(explained))
    blocks: list[Block] = [Figures(tuple(figures))]
    if found.loadings:
        blocks.append(_loadings(found.loadings))
    return Section("projection", "Projection", lead, tuple(blocks))


def _pairs(k: int) -> list[int]:
    return [0, 2] if k >= 4 else [0] if k >= 2 else []


def _plane(coordinates: Array, explained: Array, a: int, b: int) -> Figure:
    some = sampled(len(coordinates), _POINTS)
    names = [f"coordinate {k + 1} ({share(float(explained[k]))})" for k in (a, b)]
    x, y = coordinates[some, a], coordinates[some, b]
    title = f"Coordinates {a + 1} and {b + 1}"
    drawing = chart(
        title, "Each dot represents a row.", linear(x, names[0]), linear(y, names[1]),
        [Points(x, y, 0, size=3.6)],
    )  # fmt: skip
    said = "Each dot represents a row."
    if len(some) < len(coordinates):
        said += f" Shown: {count(len(some))} of {count(len(coordinates), 'row')}."
    return Figure(title, drawing, said)


def _explained(explained: Array) -> Figure:
    shown = explained[:_BARS]
    drawing = bars(
        "Explained variance",
        "; ".join(f"coordinate {k + 1}: {share(float(e))}" for k, e in enumerate(shown[:8])),
        [f"coordinate {k + 1}" for k in range(len(shown))],
        [100 * float(e) for e in shown],
        label="% of the variance",
        said=[share(float(e)) for e in shown],
    )
    return Figure("Explained variance", drawing, "Fraction of the variance in feature space.")


def _loadings(loadings: tuple[tuple[tuple[str, float], ...], ...]) -> PageTable:
    rows = tuple(
        (
            f"coordinate {k + 1}",
            ", ".join(f"{clean(name, 30)} {figure(float(w), 2)}" for name, w in weights[:_COLUMNS]),
        )
        for k, weights in enumerate(loadings[:_COORDINATES])
    )
    return PageTable(
        ("Coordinate", "Columns and their weights"), rows,
        title="Weights of columns",
        note="Columns with the largest weights. The sign is the direction.",
    )  # fmt: skip


# --- topics --------------------------------------------------------------------------------------
#
# Topics: distinctive words, and the fraction of the texts of each.

_TOPICS = 40
_WORDS = 10
_CRITERION = "the perplexity of held-out words; lower is better"


def topics(subject: Subject) -> Section | None:
    """Build the section, or return None without a result."""
    found = subject.result
    if found is None:
        return None
    shares = np.asarray(found.shares, dtype=np.float64)
    order = np.argsort(-shares, kind="stable")[:_TOPICS]
    sure = (
        float((np.asarray(found.weights).max(axis=1) > 0.9).mean()) if len(found.weights) else 0.0
    )
    lead = (
        f"{count(len(found.weights), 'text')} in {count(len(shares), 'topic')}; {share(sure)} of "
    )
    lead += "them have a weight above 0.9 for one topic."
    drawing = bars(
        "Topic sizes",
        "; ".join(f"topic {k + 1}: {share(float(shares[k]))}" for k in order[:8]),
        [f"{k + 1}: {_words(found.topics[k], 2)}" for k in order],
        [100 * float(shares[k]) for k in order],
        label="% of the texts",
        said=[share(float(shares[k])) for k in order],
    )
    figures = [Figure("Topic sizes", drawing, "Topics with their two most probable words.")]
    if len(found.candidates) > 1:
        figures.append(candidates_figure(found.candidates, _CRITERION, len(shares), "topics"))
    rows = tuple(
        (f"topic {k + 1}", share(float(shares[k])), _words(found.topics[k], _WORDS)) for k in order
    )
    left = len(shares) - len(rows)
    note = f"And {count(left, 'more topic')}." if left > 0 else ""
    table = PageTable(("Topic", "Fraction", "Words"), rows, (1,), title="Words by topic", note=note)
    blocks: list[Block] = [Figures(tuple(figures)), table]
    return Section("topics", "Topics", lead, tuple(blocks))


def _words(weights: tuple[tuple[str, float], ...], most: int) -> str:
    return ", ".join(clean(word, 24) for word, _ in weights[:most])
