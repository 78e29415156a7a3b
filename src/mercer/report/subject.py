"""What a report is about: a model of a table, or a machine with rows, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.fitting import Evaluation, Settings
from mercer.selection import Choice
from mercer.selection.running.rows import count_rows, take_rows
from mercer.theory import Bound

# rows of the kernel matrix, its spectrum and the projection: more take seconds, and no screen
# shows them
MATRIX_ROWS = 400
# options of a fit that change nothing about the model
WORKING = ("journal", "callback")


@dataclass(frozen=True, eq=False)
class Sample:
    """Some rows as the machine takes them, for pictures.

    Attributes
    ----------
    index : (m,) int array
        Which rows.
    points : array
        What the machine is given, behind all preparation.
    truth : (m,) array or None
        Their labels or targets.
    total : int
        Out of how many rows they were drawn.
    """

    index: Array
    points: Points
    truth: Array | None
    total: int


@dataclass(frozen=True, eq=False)
class Subject:
    """Everything that sections read; what is not known is None or empty.

    Attributes
    ----------
    task : str
        "classification", "regression", "clustering", "projection", "topics" or "novelty".
    machine : estimator
        The fitted machine itself.
    predictor : object
        What answers for `rows`: the model, a pipeline, or the machine.
    prepare : callable or None
        Turns some of `rows` into what the machine itself is given.
    target : str
        The column that is predicted.
    classes : tuple
        Labels.
    positive : object
        Of two labels, the one that curves speak of.
    rows : object
        All rows, as the predictor takes them, or None.
    table : Table or None
        The same by column, to be described.
    truth : (n,) array or None
        Labels or targets of all rows; clusters, where these were looked for.
    evaluation : Evaluation or None
        How good it is.
    choice : Choice or None
        What was compared.
    findings : tuple of Finding or None
        What is odd about the data; None where nobody looked.
    certificate : Certificate or None
        Whether the answer is right.
    bounds : tuple of Bound
        What theory promises.
    notes : tuple of str
        What was decided.
    python : str
        A program that makes the model again.
    command : str
        A command that makes it again.
    settings : Settings or None
        Seed, versions, digest, seconds.
    result : object
        The model itself, for what only its kind has.
    """

    task: str
    machine: Any
    predictor: Any
    prepare: Any = None
    target: str = ""
    classes: tuple[Any, ...] = ()
    positive: Any = None
    rows: Any = None
    table: Any = None
    truth: Array | None = None
    evaluation: Evaluation | None = None
    choice: Choice | None = None
    findings: tuple[Any, ...] | None = None
    certificate: Any = None
    bounds: tuple[Bound, ...] = ()
    notes: tuple[str, ...] = ()
    python: str = ""
    command: str = ""
    settings: Settings | None = None
    result: Any = None

    @cached_property
    def sample(self) -> Sample | None:
        """Rows for pictures, drawn without looking at them, in the order of the table."""
        if self.rows is None or self.prepare is None:
            return None
        total = count_rows(self.rows)
        index = sampled(total, MATRIX_ROWS)
        try:
            points = self.prepare(take(self.rows, index))
        except (ValueError, TypeError):  # rows that the machine takes only as they were then
            return None
        truth = None if self.truth is None else np.asarray(self.truth)[index]
        return Sample(index, points, truth, total)


def sampled(total: int, most: int, seed: int = 0) -> Array:
    """Return the numbers of at most so many rows, drawn by chance, sorted."""
    if total <= most:
        return np.arange(total)
    drawn = np.random.default_rng(seed).choice(total, size=most, replace=False)
    return np.sort(drawn)


def take(rows: Any, index: Array) -> Any:
    """Return some rows of a table, a matrix or a list."""
    return rows.rows(index) if hasattr(rows, "rows") else take_rows(rows, index)
