"""What a report is about, from what it is given: models of tables, machines with rows."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array
from mercer.data import Table
from mercer.fitting import ClusterModel, ProjectionModel, TableModel, TopicModel, rows_with_target
from mercer.fitting.evaluating import bounds_of
from mercer.fitting.targets import target_values
from mercer.report.machine_judging import Judged
from mercer.report.subject import WORKING, Subject
from mercer.selection import Choice
from mercer.selection.running.rows import count_rows, indexable
from mercer.theory import Bound

_SEVERAL = "There is more than one target: figures of merit are not part of this report."
_TASKS = {ClusterModel: "clustering", ProjectionModel: "projection", TopicModel: "topics"}


def subject_of(
    model: Any, X: Any = None, y: Any = None, test: Any = None, command: str = ""
) -> Subject:
    """Return what is known about a model, a machine or a choice."""
    if isinstance(model, TableModel | ClusterModel | ProjectionModel | TopicModel):
        if y is not None or test is not None:
            raise ValueError(
                "report: y and test are for machines; a model of a table has been judged "
                "(evaluate judges it by other rows)"
            )
        if X is not None:
            model = with_table(model, X)
        if isinstance(model, TableModel):
            return of_table_model(model, command)
        return of_unsupervised(model, command)
    choice = model if isinstance(model, Choice) else None
    return of_machine(model.machine if choice else model, X, y, test, choice, command)


def with_table(model: Any, X: Any) -> Any:
    """Return a model with the table of its fit, which model files leave out."""
    if model.table is not None:
        raise ValueError("report: X is for models without their table; this one has it")
    table = Table.of(X)
    if isinstance(model, TableModel):
        kept = rows_with_target(table, model.target, task=model.task)
    else:  # of a table with more columns, those that were learnt from
        table = table[[name for name in table.columns if name in model.schema.names]]
        kept = table
    if table.digest != model.settings.digest:
        other = (
            "The rows shown here are not known to be those of the fit: they have another SHA-256."
        )
        model = replace(model, notes=(other, *model.notes))
    return replace(model, table=kept)


def of_table_model(model: TableModel, command: str = "") -> Subject:
    """Return what a model of a table knows about itself."""
    table = model.table
    truth = None if table is None else target_values(table, model.target, model.task)
    return Subject(
        task=model.task, machine=model.machine, predictor=model,
        prepare=model.pipeline[:-1].transform, target=model.target, classes=model.classes,
        positive=model.positive, rows=None if table is None else table.drop(model.target),
        table=table, truth=truth, evaluation=model.evaluation, choice=model.choice,
        findings=tuple(model.findings), certificate=model.certificate, bounds=model.bounds,
        notes=model.notes, python=model.python, settings=model.settings, result=model,
        command=command or _command(model),
    )  # fmt: skip


def of_unsupervised(model: Any, command: str = "") -> Subject:
    """Return what a model without a target knows about itself."""
    labels = getattr(model, "labels", None)
    classes = () if labels is None else tuple(range(len(model.sizes)))
    return Subject(
        task=_TASKS[type(model)], machine=model.machine, predictor=model.pipeline,
        prepare=model.pipeline[:-1].transform, classes=classes, rows=model.table, table=model.table,
        truth=labels, findings=tuple(model.findings), certificate=model.certificate,
        notes=model.notes, python=model.python, settings=model.settings, result=model,
        command=command,
    )  # fmt: skip


def of_machine(
    machine: Any,
    X: Any = None,
    y: Any = None,
    test: Any = None,
    choice: Choice | None = None,
    command: str = "",
) -> Subject:
    """Return what can be found out about a fitted machine, or a pipeline, and rows."""
    check_is_fitted(machine)
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    rows = None if X is None else indexable(X)
    truth = None if y is None else np.asarray(y)
    task = _task(last)
    notes: tuple[str, ...] = ()
    if truth is not None and truth.ndim != 1:
        truth, notes = None, (_SEVERAL,)
    if task == "clustering" and truth is None and rows is not None:
        labels = getattr(last, "labels_", None)
        truth = labels if labels is not None and len(labels) == count_rows(rows) else None
    if truth is not None and rows is not None and len(truth) != count_rows(rows):
        raise ValueError(f"report: X has {count_rows(rows)} rows, but y has {len(truth)} entries")
    classes = _classes(last, truth) if task in ("classification", "clustering") else ()
    judged = evaluation = None
    if task in ("classification", "regression"):
        judged = Judged(machine, last, task, classes)
        if test is not None:
            evaluation = judged.by_test(*_pair(test), truth)
        elif rows is not None and truth is not None:
            evaluation = judged.by_folds(rows, truth, choice)
    prepare = machine[:-1].transform if isinstance(machine, Pipeline) else _as_they_are
    bounds: tuple[Bound, ...] = ()
    if evaluation is not None and rows is not None and truth is not None:
        points = 1 if choice is None else sum(len(c.tuning.points) for c in choice.contenders)
        bounds = bounds_of(last, prepare(rows), truth, evaluation, points)
    return Subject(
        task=task, machine=last, predictor=machine, prepare=prepare,
        target=str(getattr(y, "name", None) or "y") if judged is not None else "",
        classes=classes, positive=classes[1] if len(classes) == 2 else None,
        rows=rows, table=_table(rows), truth=truth, evaluation=evaluation, choice=choice,
        certificate=getattr(last, "certificate_", None), bounds=bounds, notes=notes,
        command=command,
    )  # fmt: skip


def _task(machine: Any) -> str:
    for task, known in (
        ("classification", is_classifier),
        ("regression", is_regressor),
        ("clustering", is_clusterer),
        ("novelty", is_outlier_detector),
    ):
        if known(machine):
            return task
    return "projection" if hasattr(machine, "transform") else "density"


def _classes(machine: Any, truth: Array | None) -> tuple[Any, ...]:
    known = getattr(machine, "classes_", None)
    if known is not None and np.ndim(known) == 1:
        return tuple(np.asarray(known).tolist())
    return () if truth is None else tuple(np.unique(truth).tolist())


def _pair(test: Any) -> tuple[Any, Any]:
    if not isinstance(test, tuple) or len(test) != 2:
        raise ValueError("report: test must be a pair of rows and their labels or targets")
    return test


def _as_they_are(rows: Any) -> Any:
    return rows


def _table(rows: Any) -> Table | None:
    """Return rows by column, where they have columns."""
    if rows is None or len(getattr(rows, "shape", ())) != 2:
        return None
    try:
        return Table.of(rows)
    except (ValueError, TypeError):  # what a table cannot hold is not described
        return None


def _command(model: TableModel) -> str:
    """Return the command of a model that was fitted with all defaults, from a file."""
    known = model.settings
    if not known.source or set(known.options) - {*WORKING, "random_state"}:
        return ""
    seed = f" --seed {known.random_state}" if known.random_state else ""
    return f"mercer fit {shlex.quote(known.source)} --target {shlex.quote(model.target)}{seed}"
