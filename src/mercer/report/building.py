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
from mercer.report.sections.reproduce import privacy, reproduce
from mercer.report.sections.results.clusters import clusters
from mercer.report.sections.results.projections import projection
from mercer.report.sections.results.quality import quality
from mercer.report.sections.results.topics import topics
from mercer.report.subject import Subject

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
