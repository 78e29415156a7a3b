"""Judge a model of a table by labelled rows that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.fitting.evaluating import Decider, importance_of
from mercer.fitting.evaluating import evaluate as put_together
from mercer.fitting.evaluation import Evaluation
from mercer.fitting.model import TableModel
from mercer.fitting.rows.sources import read_table
from mercer.fitting.targets import missing_of, target_values


def evaluate(
    model: TableModel, table: Any, *, importance: bool = False, random_state: int = 0
) -> Evaluation:
    """Judge a model by the rows of another table.

    Parameters
    ----------
    model : TableModel
        Made by `mercer.fit`, or loaded.
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows with the target; those without one are left out.
    importance : bool
        Whether the columns are shuffled to see what they are worth.
    random_state : int
        Seed of bootstrap and shuffles.

    Returns
    -------
    Evaluation
        Figures with intervals, beside those of the best constant answer on the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> from mercer.fitting import evaluate
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> table = {"x": x, "y": np.where(x > 0, "up", "down")}
    >>> model = mercer.fit(table, "y", kernels=["linear"])
    >>> new = {"x": [-2.0, -1.0, 1.0, 2.0], "y": ["down", "down", "up", "down"]}
    >>> evaluate(model, new)["accuracy"].value
    0.75
    """
    found = read_table(table, {}, ())
    if model.target not in found.columns:
        raise ValueError(f"evaluate: the table lacks the target {model.target!r}")
    if model.task == "classification" and found[model.target].dtype != object:
        words = all(isinstance(label, str) for label in model.classes)
        found = found.with_kinds({model.target: "category"}) if words else found
    there = ~missing_of(found[model.target])
    if not there.any():
        raise ValueError(f"evaluate: the target {model.target!r} is missing in every row")
    found = found.rows(there)
    truth = target_values(found, model.target, model.task)
    rows = found.drop(model.target)
    decider = Decider(model.task, model.classes, model.threshold)
    matters: tuple[Any, str] = ((), "Not asked for.")
    if importance:
        matters = importance_of(model.pipeline, rows, truth, decider, random_state)
    return put_together(
        decider.answers(model.pipeline, rows, truth),
        kind="test table",
        rows=np.flatnonzero(there),
        decider=decider,
        train_target=truth,
        choice=model.choice,
        scoring=None,
        seed=random_state,
        importance=matters,
        constant=model.constant or None,
    )
