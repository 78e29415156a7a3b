"""From a subject to a page: all sections that have something to say, in their order."""

from __future__ import annotations

from mercer.report.page import Page, Section
from mercer.report.sections import summary
from mercer.report.sections.bounds import bounds
from mercer.report.sections.certificate import certificate
from mercer.report.sections.choice import choice
from mercer.report.sections.cost import cost, measure
from mercer.report.sections.data import data
from mercer.report.sections.importance import importance
from mercer.report.sections.pictures import pictures
from mercer.report.sections.quality import quality
from mercer.report.sections.reproduce import privacy, reproduce
from mercer.report.subject import Subject


def build(subject: Subject) -> Page:
    """Write all sections that have something to say."""
    spent = measure(subject)
    sections: list[Section | None] = [
        quality(subject),
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
        foot=foot(subject),
    )


def foot(subject: Subject) -> str:
    """Return what wrote the page."""
    from mercer import __version__  # noqa: PLC0415  the package itself is above every room

    return f"Written by Mercer {__version__}. This page loads nothing and runs nothing."
