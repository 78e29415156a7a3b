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
# Prediction cost: time per row, size of the model, stored training rows.

_FEW, _ROWS = 100, 1000  # batch sizes of the first and the second measurement
_REPEATS = 3
_PATIENCE = 1.0  # most seconds for the larger batch


@dataclass(frozen=True)
class Cost:
    """Prediction cost of a model.

    Attributes
    ----------
    seconds : float
        Time per row in a batch. NaN if it could not be measured.
    batch : int
        Rows of the batch.
    n_bytes : int
        Size of the pickled pipeline.
    stored_rows : int
        Number of training rows that the estimator stores.
    """

    seconds: float
    batch: int
    n_bytes: int
    stored_rows: int


def measure(subject: Subject) -> Cost:
    """Measure the prediction time and the size of a model."""
    seconds, batch = _time(subject)
    return Cost(seconds, batch, _weigh(subject), stored_rows(subject.machine))


def cost(subject: Subject, found: Cost) -> Section:
    """Build the section."""
    facts = []
    if np.isfinite(found.seconds):
        facts.append(("Time per row, in a batch", duration(found.seconds)))
        facts.append(("Rows per second", _rate(found.seconds)))
    facts.append(("Model size", size(found.n_bytes)))
    if found.stored_rows:
        facts.append(("Stored training rows", count(found.stored_rows)))
        kind = support_share(subject)
        if kind is not None:
            facts.append(("Fraction of support vectors", share(kind)))
    lead = f"Measured on this computer with {count(found.batch, 'row')} in a batch, including "
    lead += "preprocessing. Single rows take longer."
    if not np.isfinite(found.seconds):
        lead = "The time was not measured: the report has no rows to predict."
    return Section("cost", "Prediction cost", lead, (Facts(tuple(facts)),))


def stored_rows(machine: Any) -> int:
    """Return the number of training rows that an estimator stores."""
    support = getattr(machine, "support_vectors_", None)
    if support is not None and getattr(support, "shape", (0,))[0]:
        return int(support.shape[0])
    expansion = getattr(machine, "_expansion", None)
    points = getattr(expansion, "points", None)
    if points is None:
        points = getattr(getattr(expansion, "source", None), "X", None)
    return 0 if points is None else int(getattr(points, "shape", (len(points),))[0])


def support_share(subject: Subject) -> float | None:
    """Return the fraction of support vectors, or None if the certificate has none."""
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
        best = min(_seconds(predict, some) for _ in range(_REPEATS))  # the first run warms up
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
    """Return the size of the pickled model without copying its arrays."""
    model = getattr(subject.predictor, "pipeline", subject.predictor)
    arrays: list[pickle.PickleBuffer] = []
    try:
        rest = pickle.dumps(model, protocol=5, buffer_callback=arrays.append)
    except (TypeError, AttributeError, pickle.PicklingError):  # user-defined functions
        return 0
    return len(rest) + sum(one.raw().nbytes for one in arrays)


def _rate(seconds: float) -> str:
    """Write rows per second with two significant digits."""
    rate = 1 / max(seconds, 1e-9)
    digits = max(int(math.log10(rate)) - 1, 0)
    return count(round(rate, -digits))


# --- importance ----------------------------------------------------------------------------------
#
# Permutation importance of the columns.

_BARS = 20


def importance(subject: Subject) -> Section | None:
    """Build the section, or return None without an evaluation."""
    found = subject.evaluation
    if found is None or not (found.importance or found.importance_note):
        return None
    note = clean(found.importance_note, 400).replace("R^2", "R²")
    if not found.importance:
        return Section("importance", "Feature importance", "", (Paragraph(note),))
    shown = found.importance[:_BARS]
    drawing = bars(
        "Permutation importance",
        "Decrease of the score if the entries of a column are permuted: "
        + "; ".join(f"{clean(one.column, 30)} {one.drop:.3g}" for one in shown[:8]),
        [clean(one.column, 40) for one in shown],
        [one.drop for one in shown],
        errors=[one.error for one in shown],
        label="decrease of the score",
        said=[f"{one.drop:.3f}".replace("-", "−") for one in shown],
    )
    left = found.importance[_BARS:]
    more = f" And {count(len(left), 'more column')}, none above {left[0].drop:.2g}." if left else ""
    idle = [one.column for one in found.importance if one.drop <= one.error]
    lead = "Decrease of the score on the evaluated rows if the entries of a column are randomly "
    lead += "permuted. If two columns are correlated, the model can use either, so both may appear "
    lead += "unimportant."
    said = f"{note}{more}"
    blocks: list[Paragraph | Figure] = [Figure("Permutation importance", drawing, said)]
    if idle:
        blocks.append(
            Paragraph(
                f"Importance within the error for {count(len(idle), 'column')}: {listed(idle, 8)}."
            )
        )
    return Section("importance", "Feature importance", lead, tuple(blocks))
