"""Function `fit` for tables: its steps, and evaluation on new rows."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from mercer.data import Finding, Findings, Table, check
from mercer.fitting.evaluation import (
    Decider,
    Evaluation,
    bounds_of,
    constant_of,
    cross_answers,
    importance_of,
)
from mercer.fitting.evaluation import evaluate as evaluating_evaluate
from mercer.fitting.evaluation import evaluate as put_together
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.phases import FitCallback, Phases
from mercer.fitting.rows import read_table, source_of
from mercer.fitting.target import Split, Target, missing_of, read_target, split, target_values
from mercer.fitting.training import Trained, Training, threshold_of

# --- steps ---------------------------------------------------------------------------------------
#
# The steps of a fit.

_FEWEST_HELD_OUT = 20  # fewer rows give no useful estimate
_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class FitOptions:
    """The arguments of `fit`."""

    task: str | None = None
    machine: Any = None
    kernels: Sequence[Any] | None = None
    approximation: Any = "auto"
    kinds: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    test: Any = 0.2
    refit: bool = False
    tune: bool = True
    calibrate: bool = True
    positive: Any = None
    costs: tuple[float, float] | None = None
    scoring: Any = None
    cv: int = 5
    max_rows: int = 5000
    importance: bool = True
    time_limit: float | None = None
    random_state: int = 0
    journal: Any = None

    def __post_init__(self) -> None:
        share = self.test
        if isinstance(share, Real) and not 0.0 <= float(share) < 1.0:
            raise ValueError(f"fit: test={share!r} must be a fraction in [0, 1), a table, or None")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"fit: time_limit={self.time_limit!r} must be positive (seconds)")
        if self.costs is not None and (len(self.costs) != 2 or min(self.costs) < 0):
            raise ValueError(
                f"fit: costs={self.costs!r} must be the costs of a false positive and a "
                "false negative"
            )
        if not isinstance(self.cv, int | np.integer) or self.cv < 2:
            raise ValueError(f"fit: cv={self.cv!r} must be an integer of at least 2")

    def given(self) -> dict[str, str]:
        """Return the options that differ from the defaults as text."""
        plain = FitOptions()
        pairs = [(one.name, getattr(self, one.name)) for one in fields(self)]
        return {
            name: repr(value)
            for name, value in pairs
            if value is not getattr(plain, name) and repr(value) != repr(getattr(plain, name))
        }


def run(table: Any, target: str, options: FitOptions, phases: Phases) -> TableModel:
    """Run all steps of `fit`."""
    seed = options.random_state
    with phases.phase("check", "checking the table"):
        source = source_of(table, options)
        wanted = read_target(source.table, target, options.task)
        other = _test_table(wanted, options)
        lost = [Finding("warning", "left-out", (target,), said) for said in wanted.left_out]
        findings = Findings([*lost, *check(wanted.table, target, other)])
    classes, more = _classes(wanted, options.positive)
    notes = [*wanted.notes, *more]
    notes += [one.message for one in findings if one.level == "error" or one.code == "leak"]
    with phases.phase("split", "holding out rows"):
        parts, share, said = _parts(wanted, options, other)
    notes += said
    trained = source.trained(parts, wanted, _training(options), phases)
    learnt = source.learnt
    decider, said = _decider(wanted.task, classes, trained, parts, options)
    notes += [*trained.notes, *said]
    with phases.phase("certify", "certifying the solution"):
        certificate = certificate_of(trained.pipeline[-1])
    evaluation = _evaluation(trained, parts, share, decider, options, phases)
    rows, y = trained.rows, parts.train_target
    bounds = bounds_of(trained.pipeline[-1], rows, y, evaluation, trained.points)
    pipeline = trained.pipeline
    if options.refit and share > 0:
        with phases.phase("train", "fitting the estimator to all rows"):
            pipeline, share = source.refitted(pipeline, wanted, seed), 0.0
            certificate = certificate_of(pipeline[-1])
        notes.append(
            f"The selected model was refitted to all {source.learnt} rows; the scores "
            f"are those of the fit to {learnt} of them."
        )
    program = source.program(pipeline[-1], wanted, share, options, decider.threshold, classes)
    held_out = 0 if evaluation.kind == "cross-validated" else len(evaluation.rows)
    settings = Settings(
        seed, versions(), *source.origin, source.rows_in_all(wanted, held_out), source.learnt,
        held_out, options.given(), dict(phases.seconds),
    )  # fmt: skip
    choice = None if trained.choice is None else replace(trained.choice, machine=pipeline)
    return TableModel(
        pipeline, parts.train.schema, target, wanted.task, classes,
        classes[1] if len(classes) == 2 else None, decider.threshold, choice, evaluation,
        findings, certificate, bounds, tuple(notes), program, settings, wanted.table,
        constant_of(y, classes),
    )  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of Python and the numerical packages."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def certificate_of(machine: Any) -> Any:
    """Return the certificate of an estimator, or None for other libraries."""
    return getattr(machine, "certificate_", None)


def _training(options: FitOptions) -> Training:
    names = [one.name for one in fields(Training)]
    return Training(**{name: getattr(options, name) for name in names})


def _test_table(wanted: Target, options: FitOptions) -> Table | None:
    """Return the test table with the columns and kinds of the training table."""
    if options.test is None or isinstance(options.test, Real):
        return None
    other = read_table(options.test, {}, ())
    lacking = [name for name in wanted.table.columns if name not in other.columns]
    if lacking:
        raise ValueError(f"fit: the test table has no column {lacking[0]!r}")
    other = other[wanted.table.columns].with_kinds(wanted.table.kinds)
    return read_target(other, wanted.name, wanted.task).table


def _classes(wanted: Target, positive: Any) -> tuple[tuple[Any, ...], list[str]]:
    """Order two classes so that the positive one is second."""
    classes = wanted.classes
    if len(classes) != 2:
        if positive is not None:
            raise ValueError(f"fit: positive={positive!r} requires two classes, not {len(classes)}")
        return classes, []
    if positive is None:
        return classes, [
            f"The positive class is {classes[1]!r} (the second in order); change it with positive=."
        ]
    same = [label for label in classes if label == positive or str(label) == str(positive)]
    if not same:
        raise ValueError(f"fit: positive={positive!r} must be one of the classes {list(classes)}")
    rest = next(label for label in classes if label != same[0])
    return (rest, same[0]), [f"The positive class is {same[0]!r}."]


def _parts(
    wanted: Target, options: FitOptions, other: Table | None
) -> tuple[Split, float, list[str]]:
    """Split the rows. The held-out fraction is 0 if all rows are used for training."""
    share = float(options.test) if isinstance(options.test, Real) else 0.0
    table, notes = wanted.table, []
    if 0 < share and share * len(table) < _FEWEST_HELD_OUT:
        notes.append(
            f"A fraction of {share:g} of {len(table)} rows is too small for an evaluation: all "
            "rows were used for training, and the scores are from cross-validation."
        )
        share = 0.0
    parts = split(
        table, wanted.name, task=wanted.task, test=share, random_state=options.random_state
    )
    if other is not None:
        y = target_values(other, wanted.name, wanted.task)
        parts = replace(
            parts, held_out=other.drop(wanted.name), held_out_target=y,
            held_out_rows=np.arange(len(y)),
        )  # fmt: skip
        notes.append(f"Evaluated on the {len(y)} rows of the test table.")
    elif share > 0:
        notes.append(
            f"{len(parts.held_out)} of {len(table)} rows were held out for evaluation before "
            f"preprocessing, with seed {options.random_state}."
        )
    elif not notes:
        notes.append("No rows were held out: the scores are from cross-validation.")
    return parts, share, notes


def _decider(
    task: str, classes: tuple[Any, ...], trained: Trained, parts: Split, options: FitOptions
) -> tuple[Decider, list[str]]:
    if options.costs is None:
        return Decider(task, classes, None), []
    machine = trained.pipeline[-1]
    if len(classes) != 2 or not hasattr(machine, "decision_function"):
        raise ValueError("fit: costs requires a binary classifier with decision_function")
    value, note = threshold_of(
        machine, trained.rows, parts.train_target, classes[1], options.costs, options.random_state
    )
    return Decider(task, classes, value), [note]


def _evaluation(
    trained: Trained,
    parts: Split,
    share: float,
    decider: Decider,
    options: FitOptions,
    phases: Phases,
) -> Evaluation:
    """Evaluate on held-out rows, or by cross-validation if there are none."""
    seed, pipeline = options.random_state, trained.pipeline
    kind, rows, truth = "held-out", parts.held_out_rows, parts.held_out_target
    table = parts.held_out
    with phases.phase("evaluate", "evaluating the model"):
        if len(parts.held_out):
            kind = "held-out" if share > 0 else "test table"
            answers = decider.answers(pipeline, table, truth)
        else:
            kind, rows, table = "cross-validated", parts.train_rows, parts.train
            truth = parts.train_target
            answers = cross_answers(pipeline, table, truth, decider, seed)
    matters: tuple[Any, str] = ((), "Not computed: importance=False.")
    if options.importance and phases.left == 0.0:
        matters = ((), "Not computed: the time limit expired.")
    elif options.importance:
        with phases.phase("importance", "computing permutation importance"):
            matters = importance_of(pipeline, table, truth, decider, seed, phases.tell)
    return evaluating_evaluate(
        answers, kind=kind, rows=rows, decider=decider, train_target=parts.train_target,
        choice=trained.choice, scoring=options.scoring, seed=seed, importance=matters,
    )  # fmt: skip


# --- fit -----------------------------------------------------------------------------------------
#
# The public function `fit`.


def fit(
    table: Any,
    target: str,
    *,
    task: str | None = None,
    machine: Any = None,
    kernels: Sequence[Any] | None = None,
    approximation: Any = "auto",
    kinds: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    test: Any = 0.2,
    refit: bool = False,
    tune: bool = True,
    calibrate: bool = True,
    positive: Any = None,
    costs: tuple[float, float] | None = None,
    scoring: Any = None,
    cv: int = 5,
    max_rows: int = 5000,
    importance: bool = True,
    time_limit: float | None = None,
    random_state: int = 0,
    journal: Any = None,
    callback: FitCallback | None = None,
) -> TableModel:
    """Fit a certified model to a table: check, split, preprocess, select, tune, fit and evaluate.

    The function holds out a fraction of the rows for the evaluation. They are not used for
    preprocessing, kernel selection or fitting. The evaluation applies to the returned model,
    unless `refit` is True. The attribute `notes` lists all decisions; each can be changed with a
    parameter.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Training data. A path is read by `mercer.data.read`.
    target : str
        Column to predict.
    task : {"classification", "regression"} or None
        If None, the task is classification for words, Boolean values and at most ten distinct
        integers (30 if they are consecutive from 0 or 1, with three rows each), and regression
        for other numbers.
    machine : estimator or None
        Estimator to fit. If None, `SVC` for classification, and for regression `KernelRidge`, or
        `SVR` above 2000 training rows.
    kernels : sequence of str or Kernel, or None
        Families to compare ("linear", "polynomial", "gaussian", "matern", "laplacian", "sum over
        kinds of columns"), kernels, or kernel expressions. If None, all families.
    approximation : Approximation, str or None
        Approximate feature map, such as `Nystrom(1000)` or "nystrom:1000". None uses the exact
        kernel; "auto" uses it within the size limits and otherwise the Nyström method.
    kinds : mapping of str to Kind or str, optional
        Column kinds. Replaces the inferred kinds.
    drop : sequence of str
        Columns to ignore.
    test : float, Table or None
        Fraction of the rows to hold out, or a test table. If None, or if fewer than 20 rows would
        be held out, all rows are used for training and evaluated by cross-validation.
    refit : bool
        Refit the selected model on all rows. The evaluation remains that of the fit without the
        held-out rows.
    tune : bool
        Compare kernels and tune hyperparameters. If False, `machine` is fitted unchanged.
    calibrate : bool
        Calibrate probabilities of a classifier.
    positive : label or None
        Positive class of a binary target. If None, the second in order.
    costs : tuple of float or None
        Costs of a false positive and a false negative. The threshold of a binary classifier is
        chosen to minimize the total cost on the training rows.
    scoring : str, callable or None
        Selection score, as in scikit-learn. If None, accuracy or R^2.
    cv : int
        Number of cross-validation folds.
    max_rows : int
        Number of training rows for the comparison. The fit uses all of them.
    importance : bool
        Compute the permutation importance of the columns.
    time_limit : float or None
        Total time limit in seconds. The comparison takes at most 60 % of it.
    random_state : int
        Random seed of split, folds, subsamples and permutations.
    journal : path or None
        Folder that records the comparison, so that the same call resumes an interrupted run.
    callback : callable or None
        Called with `FitProgress`. Return True to stop the comparison and select among the
        finished candidates. Only `time_limit` stops the fit that follows.

    Returns
    -------
    TableModel
        The model with its evaluation and certificate. Print it for a summary.

    Notes
    -----
    The preprocessing does not use the target. It is fitted once to the training rows, before they
    are divided into folds. The model does not depend on the order of the rows and, up to
    rounding, of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> rng = np.random.default_rng(0)
    >>> x, town = rng.normal(size=200), rng.choice(["Ulm", "Bern", "Riga"], 200)
    >>> sick = np.where(x + (town == "Ulm") + rng.normal(size=200) / 4 > 0, "yes", "no")
    >>> model = mercer.fit({"x": x, "town": town, "sick": sick}, "sick", kernels=["linear"])
    >>> model.evaluation["accuracy"].value > 0.85, model.certificate.ok
    (True, True)
    >>> model.predict({"x": [2.0, -2.0], "town": ["Ulm", "Bern"]}).tolist()
    ['yes', 'no']
    """
    options = FitOptions(
        task=task, machine=machine, kernels=kernels, approximation=approximation,
        kinds=dict(kinds or {}), drop=tuple(drop),
        test=test, refit=refit, tune=tune, calibrate=calibrate, positive=positive, costs=costs,
        scoring=scoring, cv=cv, max_rows=max_rows, importance=importance, time_limit=time_limit,
        random_state=random_state, journal=journal,
    )  # fmt: skip
    return run(table, target, options, Phases(callback, time_limit))


# --- new rows ------------------------------------------------------------------------------------
#
# Evaluates a table model on new labeled rows.


def evaluate(
    model: TableModel, table: Any, *, importance: bool = False, random_state: int = 0
) -> Evaluation:
    """Evaluate a model on another table.

    Parameters
    ----------
    model : TableModel
        Model from `mercer.fit` or `mercer.load`.
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Labeled rows. Rows without a target are ignored.
    importance : bool
        Compute the permutation importance of the columns.
    random_state : int
        Random seed of bootstrap and permutations.

    Returns
    -------
    Evaluation
        Metrics with intervals, and those of the best constant prediction.

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
        raise ValueError(f"evaluate: the table has no target column {model.target!r}")
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
    matters: tuple[Any, str] = ((), "Not computed: importance=False.")
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
