"""What `fit` returns: a model of a table, and everything there is to know about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.fitting.evaluating import Decider
from mercer.fitting.evaluation import Evaluation
from mercer.selection import Choice
from mercer.theory import Bound

if TYPE_CHECKING:
    from mercer.data import Findings, Schema, Table


@dataclass(frozen=True)
class Settings:
    """How a model came about: what is needed to make it again.

    Attributes
    ----------
    random_state : int
        The seed of splits, samples and shuffles.
    versions : dict of str to str
        Of python, mercer, numpy, scipy and scikit-learn.
    digest : str
        sha256 of the table.
    source : str
        File that the table was read from, or "".
    rows : int
        Of the table, without those that have no target.
    trained_rows, held_out_rows : int
        How many the model was fitted to, and judged by.
    options : dict
        Arguments of the call that differ from their defaults.
    seconds : dict of str to float
        Wall time by phase: check, split, prepare, choose, train, certify, evaluate, importance.
    """

    random_state: int
    versions: Mapping[str, str]
    digest: str
    source: str
    rows: int
    trained_rows: int
    held_out_rows: int
    options: Mapping[str, Any]
    seconds: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class TableModel:
    """A model of one column of a table, judged and certified.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" (a fitted `TablePreparation`) and "machine" (the fitted machine).
    schema : Schema
        Columns that `predict` asks for, with their kinds.
    target : str
        The column that is predicted.
    task : str
        "classification" or "regression".
    classes : tuple
        Labels in the order of probabilities; empty for regression.
    positive : object
        Of two labels the one that ROC curve, threshold and `decision_function` speak of; None
        otherwise.
    threshold : float or None
        Decision value from which on a row is called positive, where costs of errors were given;
        None leaves it to the machine.
    choice : Choice or None
        What was compared and why this was taken; None where nothing was compared.
    evaluation : Evaluation
        How good it is.
    findings : Findings
        What `mercer.data.check` found.
    certificate : Certificate
        That of the machine.
    bounds : tuple of Bound
        What learning theory promises from the training rows alone; many are vacuous, and say so.
    notes : tuple of str
        What was decided, in sentences: rows, columns, task, classes, preparation, choice, fit.
    python : str
        A program that makes the same model.
    settings : Settings
        Seed, versions, digest, seconds.
    table : Table or None
        Rows with a target, training and held-out ones, kept for reports; model files leave it out.
    constant : tuple of float
        The best constant answer on the training rows: shares of the classes, or the mean.
    """

    pipeline: Any
    schema: Schema
    target: str
    task: str
    classes: tuple[Any, ...]
    positive: Any
    threshold: float | None
    choice: Choice | None
    evaluation: Evaluation
    findings: Findings
    certificate: Any
    bounds: tuple[Bound, ...]
    notes: tuple[str, ...]
    python: str
    settings: Settings
    table: Table | None = None
    constant: tuple[float, ...] = ()

    @property
    def machine(self) -> Any:
        """The fitted machine, behind the preparation."""
        return self.pipeline[-1]

    @property
    def preparation(self) -> Any:
        """The fitted preparation."""
        return self.pipeline[0]

    def predict(self, table: Any) -> Array:
        """Predict labels or targets of new rows.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            Columns by name, in any order; a column too many, such as the target, is left aside. A
            file is read block by block.

        Returns
        -------
        (n,) array
            Labels or numbers.
        """
        decider = self._decider()

        def ask(rows: Any) -> Array:
            scores = None if self.threshold is None else decider.scores(self.pipeline, rows)
            return decider.predictions(self.pipeline, rows, scores)

        return self._answers(table, ask)

    def predict_proba(self, table: Any) -> Array:
        """Estimate the probability of each class at new rows; for calibrated classifiers.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            Columns by name.

        Returns
        -------
        (n, classes) array
            In the order of `classes`.
        """
        if self.task == "regression" or not hasattr(self.pipeline, "predict_proba"):
            raise AttributeError(
                "predict_proba: the model gives no probabilities; fit a classifier with "
                "calibrate=True"
            )
        decider = self._decider()
        return self._answers(table, partial(decider.probabilities, self.pipeline))

    def decision_function(self, table: Any) -> Array:
        """Evaluate the decision at new rows; for classifiers.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            Columns by name.

        Returns
        -------
        (n,) or (n, classes) array
            For two classes positive where `positive` is predicted (without a threshold).
        """
        if self.task == "regression" or not hasattr(self.pipeline, "decision_function"):
            raise AttributeError("decision_function: the model has no decision values")
        decider = self._decider()
        return self._answers(table, partial(decider.scores, self.pipeline))

    def _answers(self, table: Any, ask: Callable[[Any], Any]) -> Array:
        """Ask about rows, those of a file block by block."""
        if not isinstance(table, str | os.PathLike):
            return np.asarray(ask(table))
        from mercer.data import read_blocks  # noqa: PLC0415  only where a file is asked about

        blocks = read_blocks(table, self.schema.without_identifiers())
        parts = [np.asarray(ask(rows)) for rows in blocks]
        if not parts:
            raise ValueError(f"{table}: there are no rows")
        return np.concatenate(parts)

    def _decider(self) -> Decider:
        return Decider(self.task, self.classes, self.threshold)

    def __str__(self) -> str:
        lines = [f"{self.task} of {self.target!r}: {self.machine}", *self.notes]
        lines += ["", str(self.evaluation), "", str(self.certificate)]
        return "\n".join(lines)
