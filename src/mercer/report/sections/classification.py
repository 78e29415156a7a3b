"""Report section on classification: ROC, calibration, confusion, and margins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.fitting import Evaluation
from mercer.report.page import Block, Figure, Figures, Folded, Name, PageTable
from mercer.report.subject import Subject
from mercer.report.svg import (
    Line,
    Points,
    Rule,
    Whiskers,
    bars,
    chart,
    heat_map,
    histogram,
    linear,
    matrix,
)
from mercer.report.text import clean, count, share

# --- classification ------------------------------------------------------------------------------
#
# ROC curve, calibration, confusion matrix, and precision and recall by class.

_CURVE = 300  # largest number of points of a ROC curve
_CELLS = 12  # largest confusion matrix with numbers in its cells
_IMAGE = 1000  # largest confusion matrix that is drawn
_CLASSES = 30  # rows of the table of classes
_PAIRS = 8  # confused pairs in the table


def classification_blocks(subject: Subject, found: Evaluation) -> list[Block]:
    """Build the plots and tables of a classifier."""
    figures = [
        roc_figure(subject, found),
        calibration_figure(found),
        confusion_figure(subject),
        margin_figure(subject),
    ]
    blocks: list[Block] = [Figures(tuple(one for one in figures if one is not None))]
    if found.confusion is not None:
        table = class_table(subject.classes, found.confusion)
        if len(subject.classes) > _CELLS:
            blocks.append(confused_pairs(subject.classes, found.confusion))
            blocks.append(Folded(table.title, (replace(table, title=""),)))
        else:
            blocks.append(table)
    return blocks


def roc_figure(subject: Subject, found: Evaluation) -> Figure | None:
    """Draw the ROC curve."""
    if found.roc is None:
        return None
    x, y = found.roc.false_positive, found.roc.true_positive
    if len(x) > _CURVE:
        keep = np.unique(np.linspace(0, len(x) - 1, _CURVE).astype(int))
        x, y = x[keep], y[keep]
    unit = linear([0.0, 1.0], "false positive rate")
    up = linear([0.0, 1.0], "true positive rate")
    drawing = chart(
        "ROC curve",
        f"True positive rate against false positive rate; area under the curve: "
        f"{found.roc.area:.3f}.",
        unit,
        up,
        [Line([0, 1], [0, 1], 6, dashed=True), Line(x, y, 0)],
    )
    positive = (
        "" if subject.positive is None else f" Positive class: “{clean(subject.positive, 40)}”."
    )
    return Figure(
        "ROC curve",
        drawing,
        f"Area {found.roc.area:.3f}: probability that a positive row scores higher than a negative "
        f"row.{positive} Dashed line: random guessing.",
    )


def calibration_figure(found: Evaluation) -> Figure | None:
    """Draw observed fractions against predicted probabilities."""
    table = found.calibration
    if table is None:
        return None
    drawing = chart(
        "Calibration",
        f"Observed fraction against predicted probability; mean difference: {table.error:.3f}.",
        linear([0.0, 1.0], "predicted probability"),
        linear([0.0, 1.0], "observed fraction"),
        [
            Line([0, 1], [0, 1], 6, dashed=True),
            Whiskers(table.predicted, table.low, table.high),
            Points(table.predicted, table.observed, 0, size=7.0),
        ],
    )
    return Figure(
        "Calibration",
        drawing,
        f"Each dot represents {_between(table.count)} with similar probability, with the interval "
        f"of the observed fraction. Mean difference: {share(table.error)}. Dashed line: perfect "
        "calibration.",
    )


def confusion_figure(subject: Subject) -> Figure | None:
    """Draw the confusion matrix."""
    found = subject.evaluation
    if found is None or found.confusion is None or len(subject.classes) > _IMAGE:
        return None
    counts, names = np.asarray(found.confusion), [clean(c, 24) for c in subject.classes]
    rates = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    said = "Rows by true class (down) and predicted class (across)."
    if len(names) > _CELLS:
        return Figure(
            "Confusion", matrix("Confusion", said, rates), f"{said} Darker cells have more rows."
        )
    drawing = heat_map(
        "Confusion", said, rates, names, names, row_label="true", column_label="predicted",
        said=[[f"{n:,}" for n in row] for row in counts.tolist()], low=0.0,
    )  # fmt: skip
    return Figure("Confusion", drawing, f"{said} The shade is the fraction of the true class.")


def class_table(classes: tuple[object, ...], confusion: Array) -> PageTable:
    """List recall and precision by class."""
    counts = np.asarray(confusion)
    right = np.diag(counts)
    true, called = counts.sum(axis=1), counts.sum(axis=0)
    order = np.argsort(-true, kind="stable") if len(classes) > _CLASSES else range(len(classes))
    rows = []
    for k in list(order)[:_CLASSES]:
        recall, precision = _ratio(right[k], true[k]), _ratio(right[k], called[k])
        both = 2 * right[k] / (true[k] + called[k]) if true[k] + called[k] else float("nan")
        rows.append(
            (Name(clean(classes[k])), count(true[k]), share(recall), share(precision),
             f"{both:.3f}")
        )  # fmt: skip
    left = len(classes) - len(rows)
    note = "Recall: fraction of the rows of the class that are predicted as such. Precision: "
    note += "fraction of the rows predicted as the class that belong to it. F1: harmonic mean."
    if left > 0:
        note += f" The table shows the {len(rows)} largest of {len(classes):,} classes."
    head = ("Class", "Rows", "Recall", "Precision", "F1")
    return PageTable(head, tuple(rows), (1, 2, 3, 4), title="Scores by class", note=note)


def confused_pairs(classes: tuple[object, ...], confusion: Array) -> PageTable:
    """List the pairs of classes that are confused most often."""
    wrong = np.asarray(confusion).copy()
    np.fill_diagonal(wrong, 0)
    most = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    rows = [
        (Name(clean(classes[i])), Name(clean(classes[j])), count(wrong[i, j]))
        for i, j in zip(*np.unravel_index(most, wrong.shape), strict=True)
        if wrong[i, j]
    ]
    return PageTable(("True", "Predicted", "Rows"), tuple(rows), (2,), title="Most confused")


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _between(counts: Array) -> str:
    low, high = int(np.min(counts)), int(np.max(counts))
    return count(high, "row") if low == high else f"{count(low)} to {count(high, 'row')}"


# --- margins -------------------------------------------------------------------------------------
#
# Margins of the evaluated rows, and the fraction of support vectors.


def margin_figure(subject: Subject) -> Figure | None:
    """Draw the margins of the evaluated rows."""
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
        f"Margins of the evaluated rows: {share(wrong)} are misclassified.",
        {"rows": np.clip(margin, *np.quantile(margin, [0.002, 0.998]))},
        "margin: decision value of the true class",
        marks=[Rule(0.0, "boundary"), Rule(1.0, "")],
    )
    return Figure(
        "Margins",
        drawing,
        f"Of the evaluated rows, {share(wrong)} are misclassified (margin below 0), "
        f"{share(inside)} are inside the margin (0 to 1) and {share(1 - wrong - inside)} beyond "
        "it. Extreme values are drawn at the ends.",
    )


def margins(scores: Array, truth: Array, classes: tuple[Any, ...], positive: Any) -> Array | None:
    """Return the decision value of the true class minus the largest other one."""
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
    """Draw the fractions of support vectors and bound support vectors."""
    found = getattr(subject.certificate, "quantities", None)
    support, bound = (getattr(found, f"{n}_fraction", None) for n in ("support", "bound"))
    if support is None or bound is None:
        return None
    if subject.task == "classification":
        names = ["beyond the margin", "on the margin", "inside or misclassified"]
    else:
        names = ["inside the tube", "on its boundary", "outside"]
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
        f"{share(float(support))} of the training rows are support vectors. Without the other "
        "rows, the solution would be the same.",
    )
