"""Write reports: assemble the page, render HTML, and write model cards."""

from __future__ import annotations

import math
import os
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from mercer.files.container import write_file
from mercer.report.page import Page, Section
from mercer.report.sections import summary
from mercer.report.sections.certificate import bounds, certificate, privacy, reproduce
from mercer.report.sections.choice import choice, parameters
from mercer.report.sections.cost import Cost, cost, importance, measure
from mercer.report.sections.data import data
from mercer.report.sections.performance import has_interval, quality, say
from mercer.report.sections.pictures import pictures
from mercer.report.sections.unsupervised import clusters, projection, topics
from mercer.report.subject import Subject, subject_of
from mercer.report.text import clean, count, duration, figure, size

# --- rendering -----------------------------------------------------------------------------------
#
# From a page to HTML: one file that loads nothing, runs nothing and escapes everything.

# what stands before a note: colour alone does not speak to everybody
_WORDS = {"good": "Good", "info": "Note", "warning": "Warning", "error": "Error"}


def to_html(page: Page) -> str:
    """Write a page as HTML.

    Names out of the data reach it as text of elements only, escaped by the template; drawings have
    been escaped where they were made.
    """
    template, style = _template()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return str(template.render(page=page, style=style, style_hash=f"sha256-{digest}", words=_WORDS))


@cache
def _template() -> tuple[Any, str]:
    """Read the template and the style, once."""
    try:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  an optional package
        from markupsafe import Markup  # noqa: PLC0415
    except ImportError as missing:
        raise ImportError(
            'reports are written with jinja2; install it with pip install "mercer[report]"'
        ) from missing
    folder = files("mercer.report") / "templates"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = (folder / "page.html").read_text(encoding="utf-8")
    return environment.from_string(text), Markup((folder / "style.css").read_text("utf-8"))


# --- building ------------------------------------------------------------------------------------
#
# From a subject to a page: all sections that have something to say, in their order.

_RESULTS = {"clustering": clusters, "projection": projection, "topics": topics}


def build(subject: Subject) -> Page:
    """Write all sections that have something to say."""
    spent = measure(subject)
    result = _RESULTS.get(subject.task)
    sections: list[Section | None] = [
        quality(subject) if result is None else result(subject),
        importance(subject),
        choice(subject),
        pictures(subject),
        certificate(subject),
        bounds(subject),
        data(subject),
        cost(subject, spent),
        reproduce(subject),
        privacy(subject, spent.stored_rows),
    ]
    title, name = summary.title(subject)
    return Page(
        title=title,
        subject=name,
        facts=summary.facts(subject),
        statement=summary.statement(subject),
        cards=summary.cards(subject, spent),
        notes=summary.warnings(subject),
        sections=tuple(one for one in sections if one is not None),
        foot="Written by Mercer. This page loads nothing from elsewhere and runs no code.",
    )


# --- card ----------------------------------------------------------------------------------------
#
# A model card: the report in a page of Markdown, to lie beside the model.

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


# --- writing -------------------------------------------------------------------------------------
#
# `render`, `write_report` and `model_card`: a report as text, as a file, and in short.


def render(model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = "") -> str:
    """Return a report as one HTML page that loads nothing from elsewhere.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the report is about; models of tables know their rows.
    X : rows or table, optional
        The rows a machine was fitted to. Without them the page has neither data nor pictures. For a
        model that was loaded from a file, which leaves its table out: that table.
    y : array-like, optional
        Their labels or targets. The machine is judged by refitting it without each of five folds,
        of a sample where there are many rows.
    test : (rows, labels or targets), optional
        Other rows to judge a machine by instead.
    command : str
        The command that made the model, to be shown.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.report import render
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> page = render(SVC().fit(X, y), X=X, y=y)
    >>> page[:15], "Certified" in page
    ('<!DOCTYPE html>', True)
    """
    return to_html(build(subject_of(model, X, y, test, command)))


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    X: Any = None,
    y: Any = None,
    test: Any = None,
    command: str = "",
) -> Path:
    """Write a report to a file, whole or not at all.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the report is about.
    path : path
        The file; one that is there is replaced once the new one is complete.
    X, y, test, command
        As `render` takes them.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.report import write_report
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> machine = KernelRidge(0.1).fit(X, np.sin(X[:, 0]))
    >>> folder = tempfile.mkdtemp()
    >>> write_report(machine, f"{folder}/report.html", X=X, y=np.sin(X[:, 0])).name
    'report.html'
    """
    target = Path(path)
    page = render(model, X=X, y=y, test=test, command=command)
    write_file(target, [page.encode("utf-8")])
    return target


def model_card(
    model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = ""
) -> str:
    """Return the report in short, as Markdown, to lie beside the model.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted machine
        What the card is about.
    X, y, test, command
        As `render` takes them.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.report import model_card
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> print(model_card(SVC().fit(X, X[:, 0] > 0), X=X, y=X[:, 0] > 0).splitlines()[0])
    # Classifying by y
    """
    return to_markdown(subject_of(model, X, y, test, command))
