"""Report sections on the certificate, generalization bounds, and reproducibility."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from mercer.report.page import (
    Bits,
    Block,
    BulletList,
    CodeBlock,
    Facts,
    Folded,
    Note,
    PageTable,
    Paragraph,
    Section,
)
from mercer.report.subject import WORKING, Subject
from mercer.report.text import clean, clean_lines, count, duration, figure

# --- certificate ---------------------------------------------------------------------------------
#
# The certificate in words: what it proves, what it does not, and what was measured.

_NOT_PROVEN = (
    "that kernel and parameters suit the data: the comparison and the judged rows are for that",
    "that new rows come from where these came from",
    "that the columns mean what their names say",
)


def certificate(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.certificate
    if found is None:
        return None
    lead = (
        "The problem that the machine had to solve was written again from the data, in double "
        "precision, and the answer was judged by it. Nothing from inside the solver was used."
    )
    level, verdict = ("good", "Certified") if found.ok else ("warning", "Not certified")
    said = f"{verdict} to a tolerance of {figure(float(found.tol))}: {clean(found.statement, 600)}."
    blocks: list[Block] = [Note(level, said), *ending(subject.machine)]
    blocks.append(Paragraph("It does not prove:"))
    blocks.append(BulletList(_NOT_PROVEN))
    measured = quantities(found.quantities)
    if measured:
        blocks.append(Folded("What was measured", (Facts(measured),)))
    return Section("certificate", "The certificate", lead, tuple(blocks))


def ending(machine: Any) -> list[Block]:
    """Say why the solver ended."""
    solution = getattr(machine, "solution_", None)
    if solution is None or not hasattr(solution, "status"):
        return []
    said = f"{solution.solver} ended after {count(solution.iterations, 'step')} and "
    said += f"{duration(solution.seconds)}: {solution.status.value}."
    if solution.detail:
        said += f" {clean(solution.detail, 400)}."
    return [Paragraph(said)] if solution.status.ok else [Note("warning", said)]


def quantities(found: Any) -> tuple[tuple[str, str], ...]:
    """Return what was measured, by name."""
    values = asdict(found) if is_dataclass(found) and not isinstance(found, type) else {}
    return tuple(
        (name.replace("_", " "), figure(value))
        for name, value in values.items()
        if isinstance(value, int | float | str)
    )


def verdict(found: Any) -> tuple[str, str, str]:
    """Return the verdict in a word, its level, and what it says."""
    if found is None:
        return "none", "plain", "this machine has no certificate"
    word = "Certified" if found.ok else "Not certified"
    return word, "good" if found.ok else "warning", clean(found.statement, 220)


# --- bounds --------------------------------------------------------------------------------------
#
# What learning theory promises, with its assumptions; what promises nothing says so.


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
        PageTable(("Promise", "At most", ""), tuple(rows), (1,), note=note),
        Folded("What they assume", (BulletList(tuple(clean(a, 300) for a in assumed)),)),
    ]
    lead = "Guarantees that hold for every distribution of the data, not estimates: they are far "
    lead += "above what is observed, and right about how errors fall with the number of rows."
    return Section("bounds", "What theory promises", lead, tuple(blocks))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- reproduce -----------------------------------------------------------------------------------
#
# How to make the model again, and what it takes with it.


def reproduce(subject: Subject) -> Section | None:
    """Write the section."""
    known = subject.settings
    blocks: list[Block] = []
    if known is not None:
        given = {k: v for k, v in known.options.items() if k not in WORKING}
        options = ", ".join(f"{clean(k, 30)} = {clean(v, 60)}" for k, v in given.items()) or "none"
        facts = [
            ("Seed", str(known.random_state)),
            ("Source", clean(known.source, 80) or "a table in memory"),
            ("Rows", count(known.rows)),
            ("Fitted to", count(known.trained_rows)),
            ("Held out", count(known.held_out_rows)),
            ("Options", options),
        ]
        versions = [(clean(k, 20), clean(v, 30)) for k, v in known.versions.items()]
        seconds = [(clean(k, 20), duration(float(v))) for k, v in known.seconds.items()]
        blocks.append(Facts(tuple(facts)))
        blocks.append(Facts(tuple(versions), "Versions"))
        blocks.append(Facts(tuple(seconds), "Where the time went"))
        blocks.append(CodeBlock(known.digest, "SHA-256 of the table"))
    if subject.command:
        blocks.append(CodeBlock(clean_lines(subject.command, 2000), "The command"))
    if subject.python:
        blocks.append(CodeBlock(clean_lines(subject.python), "The same model in Python"))
    if not blocks:
        return None
    lead = "With the same table, seed and versions this makes the same model again."
    return Section("reproduce", "How to reproduce it", lead, tuple(blocks))


def privacy(subject: Subject, stored_rows: int) -> Section | None:
    """Say that the model holds rows of the data, where it does."""
    if not stored_rows:
        return None
    said = (
        f"The model holds {count(stored_rows, 'training row')}, as numbers, and compares new rows "
        "with them. Whoever has the model file can read them. If the rows are about people, treat "
        "the model as you treat the data."
    )
    more = "This page shows values of the data too: ends and means of columns, names of categories "
    more += "and classes, and points in pictures."
    return Section("privacy", "Privacy", "", (Note("warning", said), Note("info", more)))
