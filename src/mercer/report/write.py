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
# Renders a page as HTML: one file that loads nothing, runs no code and escapes all text.

# prefixes of notes, because color alone is not accessible
_WORDS = {"good": "Good", "info": "Note", "warning": "Warning", "error": "Error"}


def to_html(page: Page) -> str:
    """Write a page as HTML.

    The template inserts names from the data only as escaped text. Drawings are escaped when they
    are created.
    """
    template, style = _template()
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return str(template.render(page=page, style=style, style_hash=f"sha256-{digest}", words=_WORDS))


@cache
def _template() -> tuple[Any, str]:
    """Read the template and the style sheet once."""
    try:
        from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  an optional package
        from markupsafe import Markup  # noqa: PLC0415
    except ImportError as missing:
        raise ImportError(
            'report: needs jinja2; install it with pip install "mercer[report]"'
        ) from missing
    folder = files("mercer.report") / "templates"
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = (folder / "page.html").read_text(encoding="utf-8")
    return environment.from_string(text), Markup((folder / "style.css").read_text("utf-8"))


# --- building ------------------------------------------------------------------------------------
#
# Builds a page from a subject: all sections that apply, in order.

_RESULTS = {"clustering": clusters, "projection": projection, "topics": topics}


def build(subject: Subject) -> Page:
    """Build the page with all sections that apply."""
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
        foot="Created with Mercer. This page loads no external content and runs no code.",
    )


# --- model card ----------------------------------------------------------------------------------
#
# A one-page summary of the report in Markdown.

# special characters, and text that some viewers turn into links: URLs, email addresses, mentions
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_COLUMNS = 10


def to_markdown(subject: Subject) -> str:
    """Write the model card as Markdown."""
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
    """Escape text for Markdown and HTML."""
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
    head = ("figure", "value", f"{100 * found.level:g} % interval", "constant prediction")
    where = f"{plain(found.kind.capitalize())}, {count(len(found.truth), 'row')}."
    return ["## Performance", where, _table(head, rows)]


def _importance(subject: Subject) -> list[str]:
    found = () if subject.evaluation is None else subject.evaluation.importance
    if not found:
        return []
    rows = [(plain(one.column, 40), f"{one.drop:.4f}") for one in found[:_COLUMNS]]
    return ["## Feature importance", _table(("column", "decrease if permuted"), rows)]


def _certificate(subject: Subject) -> list[str]:
    found = subject.certificate
    if found is None:
        return []
    verdict = "Certified" if found.ok else "Not certified"
    said = f"{verdict} to a tolerance of {figure(float(found.tol))}: {plain(found.statement)}."
    return ["## Certificate", said, "It does not verify that the model suits the data."]


def _bounds(subject: Subject) -> list[str]:
    if not subject.bounds:
        return []
    lines = [
        f"- {plain(one.statement)}{' (vacuous)' if one.vacuous else ''}" for one in subject.bounds
    ]
    return ["## Generalization bounds", "\n".join(lines)]


def _cost(spent: Cost) -> list[str]:
    rows = [("size", size(spent.n_bytes))]
    if math.isfinite(spent.seconds):
        rows.append(("time per row, in a batch", duration(spent.seconds)))
    rows.append(("training rows in the model", count(spent.stored_rows)))
    found = ["## Prediction cost", _table(("figure", "value"), rows)]
    if spent.stored_rows:
        found += [
            "## Privacy",
            f"The model contains {count(spent.stored_rows, 'training row')}. Anyone with the file "
            "can read them.",
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
    return ["## Origin", _table(("item", "value"), rows)]


# --- writing -------------------------------------------------------------------------------------
#
# `render` returns the report as text, `write_report` writes a file, `model_card` summarizes it.


def render(model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = "") -> str:
    """Return a report as one HTML page that loads no external content.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted estimator
        Model to report on. A table model contains its training table unless loaded from a file.
    X : array-like or table, optional
        Training samples of an estimator, or the training table of a model that was loaded from a
        file. Without `X`, the report has no sections on the data and no plots.
    y : array-like, optional
        Labels or targets of `X`. The estimator is evaluated by 5-fold cross-validation, on a
        subsample if there are many samples.
    test : (X, y), optional
        Test samples and their labels or targets. Replaces cross-validation.
    command : str
        Command that created the model, shown in the report.

    Returns
    -------
    str
        HTML text.

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
    """Write a report to a file. An existing file is only replaced by a complete report.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted estimator
        Model to report on.
    path : path
        Output file.
    X, y, test, command
        See `render`.

    Returns
    -------
    Path
        Path of the report.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mercer import KernelRidge
    >>> from mercer.report import write_report
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(0.1).fit(X, np.sin(X[:, 0]))
    >>> folder = tempfile.mkdtemp()
    >>> write_report(model, f"{folder}/report.html", X=X, y=np.sin(X[:, 0])).name
    'report.html'
    """
    target = Path(path)
    page = render(model, X=X, y=y, test=test, command=command)
    write_file(target, [page.encode("utf-8")])
    return target


def model_card(
    model: Any, *, X: Any = None, y: Any = None, test: Any = None, command: str = ""
) -> str:
    """Return a model card: a one-page summary of the report in Markdown.

    Parameters
    ----------
    model : TableModel, ClusterModel, ProjectionModel, TopicModel, Choice or fitted estimator
        Model to describe.
    X, y, test, command
        See `render`.

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
    # Classification of y
    """
    return to_markdown(subject_of(model, X, y, test, command))
