"""Clusters: how many and why, how large, and what sets each apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.array_types import Array
from mercer.report.page import Block, Figure, Figures, Section, Table
from mercer.report.subject import Subject, sampled
from mercer.report.svg import Line, Points, Rule, bars, chart, linear
from mercer.report.text import clean, count, share

_POINTS = 1500
_COLOURS = 7
_CLUSTERS = 30  # that are listed
_SENTENCES = 5  # about each


def clusters(subject: Subject) -> Section | None:
    """Write the section."""
    labels = None if subject.truth is None else np.asarray(subject.truth)
    if labels is None or not len(labels):
        return None
    found = subject.result
    known, sizes = np.unique(labels, return_counts=True)
    lead = f"{count(len(labels), 'row')} in {count(len(known), 'group')}"
    lead += (
        f", the smallest of {count(int(sizes.min()))}, the largest of {count(int(sizes.max()))}."
    )
    figures = [sizes_figure(known, sizes)]
    if found is not None and len(found.candidates) > 1:
        figures.insert(0, candidates_figure(found.candidates, found.criterion, len(known)))
    if found is not None and np.ndim(found.coordinates) == 2:
        figures.append(plane_figure(np.asarray(found.coordinates), labels))
    blocks: list[Block] = [Figures(tuple(figures))]
    if found is not None and found.profiles:
        blocks.append(profiles_table(known, sizes, found.profiles))
    return Section("clusters", "The groups", lead, tuple(blocks))


def candidates_figure(
    candidates: Sequence[tuple[int, float]], criterion: str, taken: int, noun: str = "groups"
) -> Figure:
    """Draw the figure that chose how many there are."""
    at, values = np.array([k for k, _ in candidates]), np.array([v for _, v in candidates])
    title = f"How many {noun}"
    drawing = chart(
        title,
        f"{clean(criterion, 120)} for each number of {noun}; {taken} were taken.",
        linear(at, f"number of {noun}"),
        linear(values, ""),
        [Line(at, values), Points(at, values, size=6.0), Rule(float(taken), "taken")],
    )
    return Figure(title, drawing, f"{_sentence(clean(criterion, 200)).rstrip('.')}.")


def sizes_figure(known: Array, sizes: Array) -> Figure:
    """Draw how large the groups are."""
    order = np.argsort(-sizes, kind="stable")[:_CLUSTERS]
    part = sizes[order] / sizes.sum()
    drawing = bars(
        "Sizes",
        "; ".join(f"group {known[k]}: {sizes[k]} rows" for k in order[:10]),
        [f"group {clean(known[k], 12)}" for k in order],
        [float(sizes[k]) for k in order],
        label="rows",
        said=[share(float(p)) for p in part],
    )
    left = len(sizes) - len(order)
    return Figure("Sizes", drawing, f"And {count(left, 'more group')}." if left else "")


def plane_figure(coordinates: Array, labels: Array) -> Figure:
    """Draw rows in the plane, coloured by group."""
    some = sampled(len(labels), _POINTS)
    x, y, own = coordinates[some, 0], coordinates[some, 1], labels[some]
    known, sizes = np.unique(labels, return_counts=True)
    kept = known[np.sort(np.argsort(-sizes, kind="stable")[:_COLOURS])]
    marks = [Points(x[own == k], y[own == k], i, size=3.6) for i, k in enumerate(kept)]
    legend = [(f"group {clean(k, 12)}", i) for i, k in enumerate(kept)]
    if len(kept) < len(known):
        rest = ~np.isin(own, kept)
        marks.append(Points(x[rest], y[rest], _COLOURS, size=3.6))
        legend.append(("others", _COLOURS))
    drawing = chart(
        "Rows in the plane", "Rows in the plane of their first two principal components.",
        linear(x, "component 1"), linear(y, "component 2"), marks, legend=legend,
    )  # fmt: skip
    said = "Rows in the plane of their first two principal components: groups that overlap here "
    said += "may still be apart in other directions."
    if len(some) < len(labels):
        said += f" {count(len(some))} of {count(len(labels), 'row')} are drawn."
    return Figure("Rows in the plane", drawing, said)


def profiles_table(known: Array, sizes: Array, profiles: Sequence[Sequence[str]]) -> Table:
    """List what sets each group apart."""
    rows = tuple(
        (
            f"group {clean(k, 12)}",
            count(int(n)),
            "; ".join(clean(s, 160) for s in said[:_SENTENCES]),
        )
        for k, n, said in list(zip(known, sizes, profiles, strict=False))[:_CLUSTERS]
    )
    left = len(known) - len(rows)
    note = f"And {count(left, 'more group')}." if left > 0 else ""
    head = ("Group", "Rows", "What sets it apart")
    return Table(head, rows, (1,), title="Group by group", note=note)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
