"""Collect the subject of a report from a table model or an estimator with its samples."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_clusterer, is_outlier_detector, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.data import Table
from mercer.fitting import (
    ClusterModel,
    Evaluation,
    ProjectionModel,
    Settings,
    TableModel,
    TopicModel,
    rows_with_target,
)
from mercer.fitting.evaluation import (
    Decider,
    bounds_of,
    cross_answers,
    evaluate,
    permutation_importance,
)
from mercer.fitting.target import target_values
from mercer.selection import Choice
from mercer.selection.folds import count_rows, indexable, take_rows
from mercer.theory import Bound

# --- subject -------------------------------------------------------------------------------------
#
# One form for table models and for estimators with their samples.

# rows of the kernel matrix, its spectrum and the projection: more would take seconds and exceed
# the resolution of a screen
MATRIX_ROWS = 400
# options of a fit that do not affect the model
WORKING = ("journal", "callback")


@dataclass(frozen=True, eq=False)
class Sample:
    """A subsample for plots, in the form that the estimator accepts.

    Attributes
    ----------
    index : (m,) int array
        Indices of the rows.
    points : array
        Preprocessed samples.
    truth : (m,) array or None
        Labels or targets.
    total : int
        Number of rows that the subsample was drawn from.
    """

    index: Array
    points: Points
    truth: Array | None
    total: int


@dataclass(frozen=True, eq=False)
class Subject:
    """Input of all sections. Unknown values are None or empty.

    Attributes
    ----------
    task : str
        "classification", "regression", "clustering", "projection", "topics" or "novelty".
    machine : estimator
        The fitted estimator.
    predictor : object
        The object that predicts `rows`: table model, pipeline or estimator.
    prepare : callable or None
        Preprocesses `rows` for the estimator.
    target : str
        Target column.
    classes : tuple
        Labels.
    positive : object
        Positive class of a binary target.
    rows : object
        All rows, in the form that the predictor accepts, or None.
    table : Table or None
        The same rows as a table.
    truth : (n,) array or None
        Labels or targets of all rows; cluster labels for clustering.
    evaluation : Evaluation or None
        Performance.
    choice : Choice or None
        Result of model selection.
    findings : tuple of Finding or None
        Findings about the data. None if the table was not checked.
    certificate : Certificate or None
        Certificate of the solution.
    bounds : tuple of Bound
        Generalization bounds.
    notes : tuple of str
        Decisions during the fit.
    python : str
        Python program that reproduces the model.
    command : str
        Command that reproduces the model.
    settings : Settings or None
        Seed, versions, digest, seconds.
    result : object
        The model, for sections on one kind of model.
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
        """Random subsample for plots, in the order of the table."""
        if self.rows is None or self.prepare is None:
            return None
        total = count_rows(self.rows)
        index = sampled(total, MATRIX_ROWS)
        try:
            points = self.prepare(take(self.rows, index))
        except (ValueError, TypeError):  # an estimator that does not accept new rows
            return None
        truth = None if self.truth is None else np.asarray(self.truth)[index]
        return Sample(index, points, truth, total)


def sampled(total: int, most: int, seed: int = 0) -> Array:
    """Return sorted random indices of at most `most` rows."""
    if total <= most:
        return np.arange(total)
    drawn = np.random.default_rng(seed).choice(total, size=most, replace=False)
    return np.sort(drawn)


def take(rows: Any, index: Array) -> Any:
    """Return some rows of a table, a matrix or a list."""
    return rows.rows(index) if hasattr(rows, "rows") else take_rows(rows, index)


# --- evaluation ----------------------------------------------------------------------------------
#
# Evaluates a fitted estimator on test rows or by cross-validation.

_CROSS_ROWS = 2000  # subsample for cross-validation: five fits in a second or two


@dataclass(frozen=True)
class EvaluatedEstimator:
    """A fitted estimator that is evaluated for a report."""

    estimator: Any
    machine: Any
    task: str
    classes: tuple[Any, ...]

    @property
    def decider(self) -> Decider:
        """Converts predictions to scores."""
        return Decider(self.task, self.classes, None)

    def by_test(self, X: Any, y: Any, trained: Array | None) -> Evaluation:
        """Evaluate on test rows."""
        truth = np.asarray(y)
        answers = self.decider.answers(self.estimator, X, truth)
        index = np.arange(len(truth))
        shuffled = self._importance(X, truth, "test rows")
        return self._evaluate(answers, "test table", index, trained, None, shuffled)

    def by_folds(self, rows: Any, truth: Array, choice: Choice | None) -> Evaluation:
        """Evaluate by cross-validation, on a subsample if there are many rows."""
        index = sampled(len(truth), _CROSS_ROWS)
        some, y = take(rows, index), truth[index]
        shuffled = self._importance(some, y, "training rows")
        if self._takes_a_matrix() or self._too_few(y):
            answers = self.decider.answers(self.estimator, rows, truth)
            return self._evaluate(answers, "training", np.arange(len(truth)), truth, choice)
        answers = cross_answers(self.estimator, ReportRows(some), y, self.decider, 0)
        return self._evaluate(answers, "cross-validated", index, y, choice, shuffled)

    def _importance(self, X: Any, truth: Array, where: str) -> tuple[Any, str]:
        """Compute the permutation importance of numeric columns."""
        named = hasattr(self.estimator, "feature_names_in_")
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiub" or named:
            return (), ""
        score = accuracy_score if self.task == "classification" else r2_score
        blocks = {f"x{k}": [k] for k in range(X.shape[1])}
        found, note = permutation_importance(self.estimator, X, blocks, score, truth, 0)
        return found, f"{note}, {where}."

    def _evaluate(
        self,
        answers: Any,
        kind: str,
        rows: Array,
        trained: Array | None,
        choice: Choice | None,
        importance: tuple[Any, str] = ((), ""),
    ) -> Evaluation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # missing classes are visible in the metrics
            return evaluate(
                answers, kind=kind, rows=rows, decider=self.decider,
                train_target=answers.truth if trained is None else trained, choice=choice,
                scoring=None, seed=0, importance=importance,
            )  # fmt: skip

    def _takes_a_matrix(self) -> bool:
        return bool(getattr(self.machine, "_is_precomputed", bool)())

    def _too_few(self, y: Array) -> bool:
        if self.task == "regression":
            return len(y) < 10
        return int(np.unique(y, return_counts=True)[1].min()) < 2


@dataclass(frozen=True)
class ReportRows:
    """Adapter with the `rows` method of tables."""

    data: Any

    def rows(self, index: Array) -> Any:
        """Return the rows at some indices."""
        return take(self.data, index)


# --- from models ---------------------------------------------------------------------------------
#
# Subjects from table models and from estimators with their samples.

_SEVERAL = "This report has no scores because there is more than one target."
_TASKS = {ClusterModel: "clustering", ProjectionModel: "projection", TopicModel: "topics"}


def subject_of(
    model: Any, X: Any = None, y: Any = None, test: Any = None, command: str = ""
) -> Subject:
    """Return the subject of a table model, an estimator or a choice."""
    if isinstance(model, TableModel | ClusterModel | ProjectionModel | TopicModel):
        if y is not None or test is not None:
            raise ValueError(
                "report: y and test are for estimators; a table model is already evaluated "
                "(use mercer.fitting.evaluate for other rows)"
            )
        if X is not None:
            model = with_table(model, X)
        if isinstance(model, TableModel):
            return of_table_model(model, command)
        return of_unsupervised(model, command)
    choice = model if isinstance(model, Choice) else None
    return of_machine(model.machine if choice else model, X, y, test, choice, command)


def with_table(model: Any, X: Any) -> Any:
    """Return a model with its training table, which model files do not contain."""
    if model.table is not None:
        raise ValueError("report: X is for models without their table; this model contains it")
    table = Table.of(X)
    if isinstance(model, TableModel):
        kept = rows_with_target(table, model.target, task=model.task)
    else:  # ignore columns that were not used
        table = table[[name for name in table.columns if name in model.schema.names]]
        kept = table
    if table.digest != model.settings.digest:
        other = (
            "The rows in this report may not be the training rows: their SHA-256 digest differs."
        )
        model = replace(model, notes=(other, *model.notes))
    return replace(model, table=kept)


def of_table_model(model: TableModel, command: str = "") -> Subject:
    """Return the subject of a table model."""
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
    """Return the subject of an unsupervised model."""
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
    """Return the subject of a fitted estimator or pipeline with its samples."""
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
        judged = EvaluatedEstimator(machine, last, task, classes)
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
        raise ValueError("report: test must be a tuple (X, y) of rows and their labels or targets")
    return test


def _as_they_are(rows: Any) -> Any:
    return rows


def _table(rows: Any) -> Table | None:
    """Return rows as a table, or None if they have no columns."""
    if rows is None or len(getattr(rows, "shape", ())) != 2:
        return None
    try:
        return Table.of(rows)
    except (ValueError, TypeError):  # not supported by tables
        return None


def _command(model: TableModel) -> str:
    """Return the command of a model that was fitted to a file with default options."""
    known = model.settings
    if not known.source or set(known.options) - {*WORKING, "random_state"}:
        return ""
    seed = f" --seed {known.random_state}" if known.random_state else ""
    return f"mercer fit {shlex.quote(known.source)} --target {shlex.quote(model.target)}{seed}"
