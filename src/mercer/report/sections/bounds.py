"""What learning theory promises, with its assumptions; what promises nothing says so."""

from __future__ import annotations

from mercer.report.page import Bits, Block, Folded, Points, Section, Table
from mercer.report.subject import Subject
from mercer.report.text import clean, figure


def bounds(subject: Subject) -> Section | None:
    """Write the section."""
    if not subject.bounds:
        return None
    rows = []
    for one in subject.bounds:
        word = ("plain", "vacuous") if one.vacuous else ("good", "says something")
        rows.append(
            (clean(_sentence(one.statement), 300), figure(float(one.value), 3), Bits((word,)))
        )
    assumed = dict.fromkeys(a for one in subject.bounds for a in one.assumptions)
    note = (
        "A vacuous bound promises nothing that was not known before; it is shown because a promise "
    )
    note += "that is left out is not a promise that holds."
    blocks: list[Block] = [
        Table(("Promise", "At most", ""), tuple(rows), (1,), note=note),
        Folded("What they assume", (Points(tuple(clean(a, 300) for a in assumed)),)),
    ]
    lead = "Guarantees that hold for every distribution of the data, not estimates: they are far "
    lead += "above what is observed, and right about how errors fall with the number of rows."
    return Section("bounds", "What theory promises", lead, tuple(blocks))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
