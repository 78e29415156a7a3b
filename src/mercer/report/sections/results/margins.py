"""Margins: how far judged rows are on the right side, and which rows carry the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.report.page import Figure
from mercer.report.subject import Subject
from mercer.report.svg import Rule, bars, histogram
from mercer.report.text import share


def margin_figure(subject: Subject) -> Figure | None:
    """Draw how far judged rows are on the right side."""
    found = subject.evaluation
    if subject.task != "classification" or found is None or found.scores is None:
        return None
    margin = margins(found.scores, found.truth, subject.classes, subject.positive)
    if margin is None or not np.isfinite(margin).any():
        return None
    wrong = float((margin < 0).mean())
    inside = float(((margin >= 0) & (margin < 1)).mean())
    drawing = histogram(
        "Margins",
        f"How far judged rows are on the right side: {share(wrong)} are on the wrong one.",
        {"rows": np.clip(margin, *np.quantile(margin, [0.002, 0.998]))},
        "margin: decision value on the right side",
        marks=[Rule(0.0, "boundary"), Rule(1.0, "")],
    )
    return Figure(
        "Margins of judged rows",
        drawing,
        f"{share(wrong)} on the wrong side (below 0), {share(inside)} right but close (0 to 1), "
        f"{share(1 - wrong - inside)} beyond. Farthest values are drawn at the ends.",
    )


def margins(scores: Array, truth: Array, classes: tuple[Any, ...], positive: Any) -> Array | None:
    """Return the decision value of the true class, less the best of the others."""
    values = np.asarray(scores, dtype=np.float64)
    place = {label: k for k, label in enumerate(classes)}
    try:
        true = np.array([place[label] for label in np.asarray(truth).tolist()])
    except (KeyError, TypeError):
        return None
    if values.ndim == 1 or values.shape[1] == 1:
        if len(classes) != 2:
            return None
        up = place.get(positive, 1)
        return np.asarray(np.where(true == up, 1.0, -1.0) * values.ravel())
    if values.shape[1] != len(classes):
        return None
    own = values[np.arange(len(true)), true]
    others = values.copy()
    others[np.arange(len(true)), true] = -np.inf
    return np.asarray(own - others.max(axis=1))


def support_figure(subject: Subject) -> Figure | None:
    """Draw which share of the training rows carries the answer."""
    found = getattr(subject.certificate, "quantities", None)
    support, bound = (getattr(found, f"{n}_fraction", None) for n in ("support", "bound"))
    if support is None or bound is None:
        return None
    if subject.task == "classification":
        names = ["beyond the margin", "on the margin", "inside or wrong"]
    else:
        names = ["inside the tube", "on its edge", "outside"]
    parts = [1 - float(support), float(support) - float(bound), float(bound)]
    said = [share(part) for part in parts]
    drawing = bars(
        "Support vectors",
        "; ".join(f"{name}: {word}" for name, word in zip(names, said, strict=True)),
        names, [100 * part for part in parts], label="% of the training rows", said=said,
        width=440.0,
    )  # fmt: skip
    return Figure(
        "Support vectors",
        drawing,
        f"{share(float(support))} of the training rows carry the answer; without the others "
        "it would be the same.",
    )
