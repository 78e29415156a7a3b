"""A model card: the report in a page of Markdown, to lie beside the model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from mercer.report.sections import summary
from mercer.report.sections.choice import parameters
from mercer.report.sections.cost import Cost, measure
from mercer.report.sections.results.quality import has_interval, say
from mercer.report.subject import Subject
from mercer.report.text import clean, count, duration, figure, size

# also what some readers make links of: addresses of pages, of mail and of people
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_COLUMNS = 10


def to_markdown(subject: Subject) -> str:
    """Write the card."""
    spent = measure(subject)
    title, name = summary.title(subject)
    parts = [
        f"# {plain(f'{title} {name}'.strip())}",
        plain(" · ".join(summary.facts(subject))),
        plain(summary.statement(subject)),
        *(f"**{one.level.capitalize()}.** {plain(one.text)}" for one in summary.warnings(subject)),
        *_model(subject),
        *_quality(subject),
        *_importance(subject),
        *_certificate(subject),
        *_bounds(subject),
        *_cost(spent),
        *_origin(subject),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: Any, most: int = 600) -> str:
    """Return text in which no sign means anything to Markdown or to HTML."""
    return escape(_SPECIAL.sub(r"\\\1", clean(text, most)), quote=False)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _model(subject: Subject) -> list[str]:
    rows = [(plain(k), plain(v, 200)) for k, v in parameters(subject.machine).items()]
    found = ["## Model", _table(("parameter", "value"), rows)]
    if subject.choice is not None:
        found.append(plain(subject.choice.reason))
    return found


def _quality(subject: Subject) -> list[str]:
    found = subject.evaluation
    if found is None:
        return []
    rows = [
        (
            plain(one.name),
            say(one, one.value),
            f"{say(one, one.low)} to {say(one, one.high)}" if has_interval(one) else "–",
            say(one, one.baseline) if math.isfinite(one.baseline) else "–",
        )
        for one in found.metrics
    ]
    head = ("figure", "value", f"{100 * found.level:g} % interval", "constant answer")
    where = f"{plain(found.kind.capitalize())}, {count(len(found.truth), 'row')}."
    return ["## How good it is", where, _table(head, rows)]


def _importance(subject: Subject) -> list[str]:
    found = () if subject.evaluation is None else subject.evaluation.importance
    if not found:
        return []
    rows = [(plain(one.column, 40), f"{one.drop:.4f}") for one in found[:_COLUMNS]]
    return ["## What matters", _table(("column", "loss when shuffled"), rows)]


def _certificate(subject: Subject) -> list[str]:
    found = subject.certificate
    if found is None:
        return []
    verdict = "Certified" if found.ok else "Not certified"
    said = f"{verdict} to a tolerance of {figure(float(found.tol))}: {plain(found.statement)}."
    return ["## Certificate", said, "It says nothing about whether the problem suits the data."]


def _bounds(subject: Subject) -> list[str]:
    if not subject.bounds:
        return []
    lines = [
        f"- {plain(one.statement)}{' (vacuous)' if one.vacuous else ''}" for one in subject.bounds
    ]
    return ["## What theory promises", "\n".join(lines)]


def _cost(spent: Cost) -> list[str]:
    rows = [("size", size(spent.n_bytes))]
    if math.isfinite(spent.seconds):
        rows.append(("a row, in a batch", duration(spent.seconds)))
    rows.append(("training rows inside", count(spent.stored_rows)))
    found = ["## What a prediction costs", _table(("figure", "value"), rows)]
    if spent.stored_rows:
        found += [
            "## Privacy",
            f"The model holds {count(spent.stored_rows, 'training row')}; whoever has the file can "
            "read them.",
        ]
    return found


def _origin(subject: Subject) -> list[str]:
    known = subject.settings
    if known is None:
        return []
    rows = [
        ("source", plain(known.source or "a table in memory", 80)),
        ("SHA-256 of the table", plain(known.digest, 80)),
        ("rows", figure(known.rows)),
        ("seed", str(known.random_state)),
        *((plain(k), plain(v)) for k, v in known.versions.items()),
    ]
    return ["## Origin", _table(("what", "value"), rows)]
