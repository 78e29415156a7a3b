"""The certificate in words: what it proves, what it does not, and what was measured."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from mercer.report.page import Block, Facts, Folded, Note, Points, Section, Text
from mercer.report.subject import Subject
from mercer.report.text import clean, count, duration, figure

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
    blocks.append(Text("It does not prove:"))
    blocks.append(Points(_NOT_PROVEN))
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
    return [Text(said)] if solution.status.ok else [Note("warning", said)]


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
