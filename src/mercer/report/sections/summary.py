"""Summary at the top of a report: title, result, key figures and warnings."""

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
    "cross-validated": "cross-validated rows",
    "training": "training rows",
}
_NOTES = 6
_ROUNDING = 1e-9  # relative duality gaps below it are rounding errors


def title(subject: Subject) -> tuple[str, str]:
    """Return the title of the report and the name it ends with."""
    if subject.target:
        task = "Classification" if subject.task == "classification" else "Regression"
        return f"{task} of", clean(subject.target, 80)
    return {
        "clustering": "Clustering",
        "projection": "Projection",
        "topics": "Topics",
        "novelty": "Novelty detection",
    }.get(subject.task, "Fitted model"), ""


def facts(subject: Subject) -> tuple[str, ...]:
    """Return source and size of the data, and the estimator."""
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
    """Return the result in sentences."""
    said = []
    metric, found = main_metric(subject.evaluation), subject.evaluation
    if metric is not None and found is not None:
        where = f"{count(len(found.truth))} {_WHERE.get(found.kind, found.kind)}"
        value = say(metric, metric.value)
        if metric.name == "accuracy":
            within = _range(metric, found)
            said.append(f"The model classifies {value} of {where} correctly{within}.")
        else:
            said.append(f"The {_lower(metric)} on {where} is {value}{_range(metric, found)}.")
        if math.isfinite(metric.baseline):
            base = say(metric, metric.baseline)
            said.append(f"The best constant prediction reaches {base}.")
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
        return "The fit is not certified; see Certificate."
    if isinstance(gap, float) and gap < _ROUNDING:
        return "The certificate verifies that the fit is optimal up to rounding errors."
    if isinstance(gap, float) and math.isfinite(gap) and gap < 0.1:
        near = figure(100 * gap, 2)
        return f"The certificate verifies that the fit is within {near} % of the optimum."
    return "The fit is certified."


def _outcome(subject: Subject) -> tuple[Card, str]:
    """Return the result of an unsupervised model as a card and as a sentence."""
    found, rows = subject.result, subject.table
    n = count(len(rows), "text" if subject.task == "topics" else "row") if rows is not None else ""
    if subject.task == "clustering":
        k, least, most = len(found.sizes), min(found.sizes), max(found.sizes)
        said = f"{n or 'The rows'} form {count(k, 'cluster')}."
        return Card("Clusters", count(k), f"of {count(least)} to {count(most, 'row')}"), said
    if subject.task == "topics":
        k = len(found.shares)
        return Card("Topics", count(k), ""), f"{n or 'The texts'} cover {count(k, 'topic')}."
    k, kept = found.coordinates.shape[1], share(float(np.nansum(found.explained)))
    said = f"{count(k, 'coordinate')} explain {kept} of the variance of {n or 'the rows'}."
    return Card("Explained variance", kept, f"by {count(k, 'coordinate')}"), said


def cards(subject: Subject, spent: Cost) -> tuple[Card, ...]:
    """Return the key figures."""
    first = _quality_card(subject)
    if first is None and subject.result is not None:
        first = _outcome(subject)[0]
    made = [first, _certificate_card(subject), _model_card(subject)]
    note = f"{size(spent.n_bytes)}"
    if spent.stored_rows:
        note += f", contains {count(spent.stored_rows, 'training row')}"
    if math.isfinite(spent.seconds):
        made.append(Card("Prediction", f"{duration(spent.seconds)} per row", note))
    else:
        made.append(Card("Model size", size(spent.n_bytes), note.partition(", ")[2]))
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
        note += f", selected from {count(n, 'kernel')}" if n > 1 else ""
    return Card("Model", name, note)


def kernel_name(kernel: Any) -> str:
    """Return the name of a kernel without parameters."""
    text = type(kernel).__name__
    inner = getattr(kernel, "kernel", None)
    if text in ("Scaled", "Product", "Sum") or inner is not None:
        return str(kernel) if len(str(kernel)) < 40 else "composed"
    return text


def warnings(subject: Subject) -> tuple[Note, ...]:
    """Return the warnings."""
    found: list[Note] = []
    metric = main_metric(subject.evaluation)
    if metric is not None and metric.beats_constant is False:
        found.append(
            Note("warning", f"The {_lower(metric)} of the model is not significantly better than "
                 "that of the best constant prediction, which is within the interval.")
        )  # fmt: skip
    if subject.evaluation is not None and subject.evaluation.kind == "training":
        found.append(
            Note("warning", "The scores were computed on training rows. Scores on new rows can be "
                 "much worse.")
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
        found = [*found[:_NOTES], Note("info", f"And {count(more, 'more warning')}; see Data.")]
    return tuple(found)
