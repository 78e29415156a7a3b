"""How to make the model again, and what it takes with it."""

from __future__ import annotations

from mercer.report.page import Block, Code, Facts, Note, Section
from mercer.report.subject import WORKING, Subject
from mercer.report.text import clean, clean_lines, count, duration


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
        blocks.append(Code(known.digest, "SHA-256 of the table"))
    if subject.command:
        blocks.append(Code(clean_lines(subject.command, 2000), "The command"))
    if subject.python:
        blocks.append(Code(clean_lines(subject.python), "The same model in Python"))
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
