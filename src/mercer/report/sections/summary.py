"""The top of the page: what was asked, the figure, the verdict, and what must not be missed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.report.page import Card, Note
from mercer.report.sections.certificate import verdict
from mercer.report.sections.cost import Cost
from mercer.report.sections.performance import drawn, has_interval, main_metric, metric_name, say
from mercer.report.subject import Subject
from mercer.report.svg import Drawing
from mercer.report.text import clean, count, duration, figure, share, size
from mercer.selection.folds import count_rows

_WHERE = {
    "held-out": "held-out rows",
    "test table": "rows of the test table",
    "cross-validated": "rows, cross-validated",
    "training": "rows, those of the fit",
}
_NOTES = 6
_ROUNDING = 1e-9  # relative gaps below it are no gaps


def title(subject: Subject) -> tuple[str, str]:
    """Return what was asked, and the name it ends with."""
    if subject.target:
        verb = "Classifying by" if subject.task == "classification" else "Predicting"
        return verb, clean(subject.target, 80)
    return {
        "clustering": "Groups of rows",
        "projection": "Rows as points",
        "topics": "What the texts are about",
        "novelty": "What is common, and what is not",
    }.get(subject.task, "A fitted machine"), ""


def facts(subject: Subject) -> tuple[str, ...]:
    """Return what it was asked about."""
    said = []
    known = subject.settings
    if known is not None and known.source:
        said.append(clean(known.source, 80))
    rows = subject.rows if subject.table is None else subject.table
    if rows is not None:
        said.append(count(count_rows(rows), "row"))
        shape: Any = getattr(rows, "shape", ())
        if len(shape) > 1:
            said.append(count(shape[1], "column"))
    if subject.task == "classification" and subject.classes:
        said.append(count(len(subject.classes), "class", "classes"))
    said.append(type(subject.machine).__name__)
    return tuple(said)


def statement(subject: Subject) -> str:
    """Return the answer in sentences."""
    said = []
    metric, found = main_metric(subject.evaluation), subject.evaluation
    if metric is not None and found is not None:
        where = f"{count(len(found.truth))} {_WHERE.get(found.kind, found.kind)}"
        value = say(metric, metric.value)
        if metric.name == "accuracy":
            said.append(f"Of {where}, {value} are given the right class{_range(metric, found)}.")
        else:
            said.append(f"On {where} the {_lower(metric)} is {value}{_range(metric, found)}.")
        if math.isfinite(metric.baseline):
            base = say(metric, metric.baseline)
            said.append(f"The best constant answer has {base}.")
    if subject.result is not None and metric is None:
        said.append(_outcome(subject)[1])
    if subject.certificate is not None:
        said.append(_proof(subject.certificate))
    return " ".join(said)


def _lower(metric: Any) -> str:
    return clean(metric.name, 60).replace("R^2", "R²")


def _range(metric: Any, found: Any) -> str:
    if not has_interval(metric):
        return ""
    low, high = say(metric, metric.low), say(metric, metric.high)
    return f" ({100 * found.level:g} % interval {low} to {high})"


def _proof(certificate: Any) -> str:
    gap = getattr(certificate.quantities, "relative_gap", None)
    if not certificate.ok:
        return "The fit is not certified: see the certificate."
    if isinstance(gap, float) and gap < _ROUNDING:
        return "The fit is proven to be the optimum of its problem, up to rounding."
    if isinstance(gap, float) and math.isfinite(gap) and gap < 0.1:
        near = figure(100 * gap, 2)
        return f"The fit is proven to be within {near} % of the optimum of its problem."
    return "The fit is certified from the data alone."


def _outcome(subject: Subject) -> tuple[Card, str]:
    """Return what a model without a target found: as a card, and in a sentence."""
    found, rows = subject.result, subject.table
    n = count(len(rows), "text" if subject.task == "topics" else "row") if rows is not None else ""
    if subject.task == "clustering":
        k, least, most = len(found.sizes), min(found.sizes), max(found.sizes)
        said = f"{n or 'The rows'} fall into {count(k, 'group')}."
        return Card("Groups", count(k), f"of {count(least)} to {count(most, 'row')}"), said
    if subject.task == "topics":
        k = len(found.shares)
        return Card("Topics", count(k), ""), f"{n or 'The texts'} fall into {count(k, 'topic')}."
    k, kept = found.coordinates.shape[1], share(float(np.nansum(found.explained)))
    said = f"{count(k, 'coordinate')} keep {kept} of the variance of {n or 'the rows'}."
    return Card("Variance kept", kept, f"by {count(k, 'coordinate')}"), said


def cards(subject: Subject, spent: Cost) -> tuple[Card, ...]:
    """Return the figures to see first."""
    first = _quality_card(subject)
    if first is None and subject.result is not None:
        first = _outcome(subject)[0]
    made = [first, _certificate_card(subject), _model_card(subject)]
    note = f"{size(spent.n_bytes)}"
    if spent.stored_rows:
        note += f", {count(spent.stored_rows, 'training row')} inside"
    if math.isfinite(spent.seconds):
        made.append(Card("A prediction", f"{duration(spent.seconds)} a row", note))
    else:
        made.append(Card("The model", size(spent.n_bytes), note.partition(", ")[2]))
    return tuple(card for card in made if card is not None)


def _quality_card(subject: Subject) -> Card | None:
    metric, found = main_metric(subject.evaluation), subject.evaluation
    if metric is None or found is None:
        return None
    picture = drawn(metric, width=180.0)
    note = f"{count(len(found.truth))} {_WHERE.get(found.kind, found.kind)}"
    if has_interval(metric):
        note = f"{say(metric, metric.low)} to {say(metric, metric.high)} on {note}"
    drawing = picture if isinstance(picture, Drawing) else None
    level = "warning" if metric.beats_constant is False else "plain"
    return Card(metric_name(metric), say(metric, metric.value), note, level, drawing)


def _certificate_card(subject: Subject) -> Card:
    word, level, said = verdict(subject.certificate)
    sign = {"good": "✓ ", "warning": "! "}.get(level, "")
    return Card("Certificate", f"{sign}{word}", said, level)


def _model_card(subject: Subject) -> Card:
    kernel = getattr(subject.machine, "kernel_", None)
    name = type(subject.machine).__name__
    said = "" if kernel is None else clean(kernel_name(kernel), 60)
    taken = subject.choice
    note = f"{said} kernel" if said else ""
    if taken is not None:
        n = len(taken.contenders)
        note += f", the choice of {count(n, 'kernel')}" if n > 1 else ""
    return Card("Model", name, note)


def kernel_name(kernel: Any) -> str:
    """Return the name of a kernel without its numbers, as far as it is one alone."""
    text = type(kernel).__name__
    inner = getattr(kernel, "kernel", None)
    if text in ("Scaled", "Product", "Sum") or inner is not None:
        return str(kernel) if len(str(kernel)) < 40 else "composed"
    return text


def warnings(subject: Subject) -> tuple[Note, ...]:
    """Return what must not be missed."""
    found: list[Note] = []
    metric = main_metric(subject.evaluation)
    if metric is not None and metric.beats_constant is False:
        found.append(
            Note("warning", f"By its {_lower(metric)} the model is not shown to be better than the "
                 "best constant answer, which is within the interval.")
        )  # fmt: skip
    if subject.evaluation is not None and subject.evaluation.kind == "training":
        found.append(
            Note("warning", "The figures are of the rows that the machine was fitted to. They say "
                 "little about new rows.")
        )  # fmt: skip
    certificate = subject.certificate
    if certificate is not None and not certificate.ok:
        found.append(Note("warning", f"Not certified: {clean(certificate.statement, 300)}."))
    for one in subject.findings or ():
        level = str(getattr(one.level, "value", one.level)).lower()
        if level in ("error", "warning"):
            found.append(Note(level, clean(one.message, 300)))
    if len(found) > _NOTES:
        more = len(found) - _NOTES
        found = [*found[:_NOTES], Note("info", f"And {count(more, 'more warning')}: see the data.")]
    return tuple(found)
