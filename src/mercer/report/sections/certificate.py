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
# The certificate: its statement, its scope and its quantities.

_NOT_PROVEN = (
    "that the kernel and the parameters suit the data; see model selection and performance",
    "that new rows follow the same distribution as the training rows",
    "that the columns contain the values that their names suggest",
)


def certificate(subject: Subject) -> Section | None:
    """Build the section, or return None without a certificate."""
    found = subject.certificate
    if found is None:
        return None
    lead = (
        "Mercer reconstructed the optimization problem from the data in double precision "
        "and verified the solution against it, independently of the solver."
    )
    level, verdict = ("good", "Certified") if found.ok else ("warning", "Not certified")
    said = f"{verdict} to a tolerance of {figure(float(found.tol))}: {clean(found.statement, 600)}."
    blocks: list[Block] = [Note(level, said), *ending(subject.machine)]
    blocks.append(Paragraph("The certificate does not verify:"))
    blocks.append(BulletList(_NOT_PROVEN))
    measured = quantities(found.quantities)
    if measured:
        blocks.append(Folded("Measured quantities", (Facts(measured),)))
    return Section("certificate", "Certificate", lead, tuple(blocks))


def ending(machine: Any) -> list[Block]:
    """State the status of the solver."""
    solution = getattr(machine, "solution_", None)
    if solution is None or not hasattr(solution, "status"):
        return []
    said = f"{solution.solver} stopped after {count(solution.iterations, 'iteration')} and "
    said += f"{duration(solution.seconds)}: {solution.status.value}."
    if solution.detail:
        said += f" {clean(solution.detail, 400)}."
    return [Paragraph(said)] if solution.status.ok else [Note("warning", said)]


def quantities(found: Any) -> tuple[tuple[str, str], ...]:
    """Return the measured quantities by name."""
    values = asdict(found) if is_dataclass(found) and not isinstance(found, type) else {}
    return tuple(
        (name.replace("_", " "), figure(value))
        for name, value in values.items()
        if isinstance(value, int | float | str)
    )


def verdict(found: Any) -> tuple[str, str, str]:
    """Return whether the model is certified, the level of the note, and the statement."""
    if found is None:
        return "none", "plain", "this estimator has no certificate"
    word = "Certified" if found.ok else "Not certified"
    return word, "good" if found.ok else "warning", clean(found.statement, 220)


# --- bounds --------------------------------------------------------------------------------------
#
# Generalization bounds with their assumptions. Vacuous bounds are marked.


def bounds(subject: Subject) -> Section | None:
    """Build the section, or return None without bounds."""
    if not subject.bounds:
        return None
    rows = []
    for one in subject.bounds:
        word = ("plain", "vacuous") if one.vacuous else ("good", "not vacuous")
        rows.append(
            (clean(_sentence(one.statement), 300), figure(float(one.value), 3), Bits((word,)))
        )
    assumed = dict.fromkeys(a for one in subject.bounds for a in one.assumptions)
    note = "A vacuous bound is larger than a trivial one. It is shown because omitting bounds that "
    note += "do not look favorable would be misleading."
    blocks: list[Block] = [
        PageTable(("Statement", "Upper bound", ""), tuple(rows), (1,), note=note),
        Folded("Assumptions", (BulletList(tuple(clean(a, 300) for a in assumed)),)),
    ]
    lead = "These upper bounds hold for every distribution of the data. They are not estimates: "
    lead += "they are usually far above the observed error."
    return Section("bounds", "Generalization bounds", lead, tuple(blocks))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- reproduce -----------------------------------------------------------------------------------
#
# How to reproduce the model, and which data it contains.


def reproduce(subject: Subject) -> Section | None:
    """Build the section, or return None if nothing is known about the fit."""
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
        blocks.append(Facts(tuple(seconds), "Time by step"))
        blocks.append(CodeBlock(known.digest, "SHA-256 of the table"))
    if subject.command:
        blocks.append(CodeBlock(clean_lines(subject.command, 2000), "Command"))
    if subject.python:
        blocks.append(CodeBlock(clean_lines(subject.python), "Equivalent Python program"))
    if not blocks:
        return None
    lead = "The same table, seed and versions reproduce the same model."
    return Section("reproduce", "Reproducibility", lead, tuple(blocks))


def privacy(subject: Subject, stored_rows: int) -> Section | None:
    """Warn if the model contains training rows."""
    if not stored_rows:
        return None
    said = (
        f"The model contains {count(stored_rows, 'training row')} as numbers and compares new "
        "rows with them. Anyone with the model file can read them. If the rows describe people, "
        "protect the model like the data."
    )
    more = "This report also shows values from the data: ranges and medians of columns, names of "
    more += "categories and classes, and samples in plots."
    return Section("privacy", "Privacy", "", (Note("warning", said), Note("info", more)))
