"""What a prediction costs: time a row, bytes of the model, rows that it compares with."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.report.page import Facts, Section
from mercer.report.subject import Subject, sampled, take
from mercer.report.text import count, duration, share, size
from mercer.selection.running.rows import count_rows

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
