"""Report sections on prediction cost and feature importance."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.report.page import Facts, Figure, Paragraph, Section
from mercer.report.subject import Subject, sampled, take
from mercer.report.svg import bars
from mercer.report.text import clean, count, duration, listed, share, size
from mercer.selection.folds import count_rows

# --- cost ----------------------------------------------------------------------------------------
#
# What a prediction costs: time a row, bytes of the model, rows that it compares with.

_FEW, _ROWS = 100, 1000  # predicted to measure the time of one: at first few
_REPEATS = 3
_PATIENCE = 1.0  # seconds that a batch of many may take


@dataclass(frozen=True)
class Cost:
    """What was measured.

    Attributes
    ----------
    seconds : float
        To predict a row, of a batch; NaN where it could not be tried.
    batch : int
        Rows of the batch.
    n_bytes : int
        Of the pickled pipeline.
    stored_rows : int
        Training rows that the machine keeps.
    """

    seconds: float
    batch: int
    n_bytes: int
    stored_rows: int


def measure(subject: Subject) -> Cost:
    """Predict some rows, and weigh the model."""
    seconds, batch = _time(subject)
    return Cost(seconds, batch, _weigh(subject), stored_rows(subject.machine))


def cost(subject: Subject, found: Cost) -> Section:
    """Write the section."""
    facts = []
    if np.isfinite(found.seconds):
        facts.append(("A row, in a batch", duration(found.seconds)))
        facts.append(("Rows a second", _rate(found.seconds)))
    facts.append(("Size of the model", size(found.n_bytes)))
    if found.stored_rows:
        facts.append(("Training rows it keeps", count(found.stored_rows)))
        kind = support_share(subject)
        if kind is not None:
            facts.append(("Share of support vectors", share(kind)))
    lead = f"Measured while this report was written, on {count(found.batch, 'row')} at once, all "
    lead += "preparation included; single rows take longer, other machines other times."
    if not np.isfinite(found.seconds):
        lead = "No rows were given to measure time by."
    return Section("cost", "What a prediction costs", lead, (Facts(tuple(facts)),))


def stored_rows(machine: Any) -> int:
    """Return how many training rows a machine keeps to compare new ones with."""
    support = getattr(machine, "support_vectors_", None)
    if support is not None and getattr(support, "shape", (0,))[0]:
        return int(support.shape[0])
    expansion = getattr(machine, "_expansion", None)
    points = getattr(expansion, "points", None)
    if points is None:
        points = getattr(getattr(expansion, "source", None), "X", None)
    return 0 if points is None else int(getattr(points, "shape", (len(points),))[0])


def support_share(subject: Subject) -> float | None:
    """Return which share of the rows are support vectors, where the certificate has it."""
    found = getattr(getattr(subject.certificate, "quantities", None), "support_fraction", None)
    return None if found is None else float(found)


def _time(subject: Subject) -> tuple[float, int]:
    predict = getattr(subject.predictor, "predict", None) or getattr(
        subject.predictor, "transform", None
    )
    if predict is None or subject.rows is None:
        return float("nan"), 0
    total = count_rows(subject.rows)
    try:
        few = sampled(total, _FEW)
        some = take(subject.rows, few)
        best = min(_seconds(predict, some) for _ in range(_REPEATS))  # the first one warms up
        index = sampled(total, _ROWS)
        if len(index) == len(few) or best * _ROWS / max(len(few), 1) > _PATIENCE:
            return best / max(len(few), 1), len(few)
        rows = take(subject.rows, index)
        best = min(_seconds(predict, rows) for _ in range(_REPEATS))
    except (ValueError, TypeError, NotImplementedError):
        return float("nan"), 0
    return best / len(index), len(index)


def _seconds(predict: Any, rows: Any) -> float:
    start = time.perf_counter()
    predict(rows)
    return time.perf_counter() - start


def _weigh(subject: Subject) -> int:
    """Return the bytes of the pickled model; its arrays are counted, not copied."""
    model = getattr(subject.predictor, "pipeline", subject.predictor)
    arrays: list[pickle.PickleBuffer] = []
    try:
        rest = pickle.dumps(model, protocol=5, buffer_callback=arrays.append)
    except (TypeError, AttributeError, pickle.PicklingError):  # functions of the user's own
        return 0
    return len(rest) + sum(one.raw().nbytes for one in arrays)


def _rate(seconds: float) -> str:
    """Write how many rows a second that is, with two digits that count."""
    rate = 1 / max(seconds, 1e-9)
    digits = max(int(math.log10(rate)) - 1, 0)
    return count(round(rate, -digits))


# --- importance ----------------------------------------------------------------------------------
#
# What matters: how much worse the model gets when a column is shuffled.

_BARS = 20


def importance(subject: Subject) -> Section | None:
    """Write the section."""
    found = subject.evaluation
    if found is None or not (found.importance or found.importance_note):
        return None
    note = clean(found.importance_note, 400).replace("R^2", "R²")
    if not found.importance:
        return Section("importance", "What matters", "", (Paragraph(note),))
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
    blocks: list[Paragraph | Figure] = [Figure("Importance of columns", drawing, said)]
    if idle:
        blocks.append(
            Paragraph(
                f"{count(len(idle), 'column')} cannot be told from chance: {listed(idle, 8)}."
            )
        )
    return Section("importance", "What matters", lead, tuple(blocks))
