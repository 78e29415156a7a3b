"""What matters: how much worse the model gets when a column is shuffled."""

from __future__ import annotations

from mercer.report.page import Figure, Section, Text
from mercer.report.subject import Subject
from mercer.report.svg import bars
from mercer.report.text import clean, count, listed

_BARS = 20


def importance(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.evaluation
    if found is None or not (found.importance or found.importance_note):
        return None
    note = clean(found.importance_note, 400).replace("R^2", "R²")
    if not found.importance:
        return Section("importance", "What matters", "", (Text(note),))
    shown = found.importance[:_BARS]
    drawing = bars(
        "Importance of columns",
        "Loss of the score when the entries of a column are shuffled: "
        + "; ".join(f"{clean(one.column, 30)} {one.drop:.3g}" for one in shown[:8]),
        [clean(one.column, 40) for one in shown],
        [one.drop for one in shown],
        errors=[one.error for one in shown],
        label="loss of the score",
        said=[f"{one.drop:.3f}".replace("-", "−") for one in shown],
    )
    left = found.importance[_BARS:]
    more = f" And {count(len(left), 'more column')}, none above {left[0].drop:.2g}." if left else ""
    idle = [one.column for one in found.importance if one.drop <= one.error]
    lead = "How much worse the score gets on the judged rows when the entries of a column are "
    lead += "shuffled among them, so that it tells nothing. Columns that say the same stand in for "
    lead += "each other: each may then look as if it did not matter."
    said = f"{note}{more}"
    blocks: list[Text | Figure] = [Figure("Importance of columns", drawing, said)]
    if idle:
        blocks.append(
            Text(f"{count(len(idle), 'column')} cannot be told from chance: {listed(idle, 8)}.")
        )
    return Section("importance", "What matters", lead, tuple(blocks))
