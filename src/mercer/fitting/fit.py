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
# The steps of a fit, one after the other.

_FEWEST_HELD_OUT = 20  # rows: a share of fewer says next to nothing
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
            raise ValueError(
                f"fit: test={share!r} must be a share of the rows from 0 up to 1, a table, or None"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"fit: time_limit={self.time_limit!r} must be a number of seconds")
        if self.costs is not None and (len(self.costs) != 2 or min(self.costs) < 0):
            raise ValueError(
                f"fit: costs={self.costs!r} must be two numbers, of a false positive and of a "
                "false negative"
            )
        if not isinstance(self.cv, int | np.integer) or self.cv < 2:
            raise ValueError(f"fit: cv={self.cv!r} must be a number of folds, at least 2")

    def given(self) -> dict[str, str]:
        """Return what differs from the defaults, in words."""
        plain = FitOptions()
        pairs = [(one.name, getattr(self, one.name)) for one in fields(self)]
        return {
            name: repr(value)
            for name, value in pairs
            if value is not getattr(plain, name) and repr(value) != repr(getattr(plain, name))
        }


def run(table: Any, target: str, options: FitOptions, phases: Phases) -> TableModel:
    """Take all steps of `fit`."""
    seed = options.random_state
    with phases.phase("check", "the table is checked"):
        source = source_of(table, options)
        wanted = read_target(source.table, target, options.task)
        other = _test_table(wanted, options)
        lost = [Finding("warning", "left-out", (target,), said) for said in wanted.left_out]
        findings = Findings([*lost, *check(wanted.table, target, other)])
    classes, more = _classes(wanted, options.positive)
    notes = [*wanted.notes, *more]
    notes += [one.message for one in findings if one.level == "error" or one.code == "leak"]
    with phases.phase("split", "rows are held out"):
        parts, share, said = _parts(wanted, options, other)
    notes += said
    trained = source.trained(parts, wanted, _training(options), phases)
    learnt = source.learnt
    decider, said = _decider(wanted.task, classes, trained, parts, options)
    notes += [*trained.notes, *said]
    with phases.phase("certify", "the answer is certified"):
        certificate = certificate_of(trained.pipeline[-1])
    evaluation = _evaluation(trained, parts, share, decider, options, phases)
    rows, y = trained.rows, parts.train_target
    bounds = bounds_of(trained.pipeline[-1], rows, y, evaluation, trained.points)
    pipeline = trained.pipeline
    if options.refit and share > 0:
        with phases.phase("train", "the machine is fitted to all rows"):
            pipeline, share = source.refitted(pipeline, wanted, seed), 0.0
            certificate = certificate_of(pipeline[-1])
        notes.append(
            f"In the end the same settings were fitted to all {source.learnt} rows; the figures "
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
    """Return the versions of what computes."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def certificate_of(machine: Any) -> Any:
    """Return the certificate of a machine; None where it is not one of this library."""
    return getattr(machine, "certificate_", None)


def _training(options: FitOptions) -> Training:
    names = [one.name for one in fields(Training)]
    return Training(**{name: getattr(options, name) for name in names})


def _test_table(wanted: Target, options: FitOptions) -> Table | None:
    """Return another table to judge by, with the columns and kinds of the first."""
    if options.test is None or isinstance(options.test, Real):
        return None
    other = read_table(options.test, {}, ())
    lacking = [name for name in wanted.table.columns if name not in other.columns]
    if lacking:
        raise ValueError(f"fit: the test table lacks the column {lacking[0]!r}")
    other = other[wanted.table.columns].with_kinds(wanted.table.kinds)
    return read_target(other, wanted.name, wanted.task).table


def _classes(wanted: Target, positive: Any) -> tuple[tuple[Any, ...], list[str]]:
    """Put the positive one of two classes second."""
    classes = wanted.classes
    if len(classes) != 2:
        if positive is not None:
            raise ValueError(f"fit: positive={positive!r} needs two classes, not {len(classes)}")
        return classes, []
    if positive is None:
        return classes, [
            f"The positive class is {classes[1]!r}, the second in order; positive= takes the other."
        ]
    same = [label for label in classes if label == positive or str(label) == str(positive)]
    if not same:
        raise ValueError(f"fit: positive={positive!r} is none of the classes {list(classes)}")
    rest = next(label for label in classes if label != same[0])
    return (rest, same[0]), [f"The positive class is {same[0]!r}."]


def _parts(
    wanted: Target, options: FitOptions, other: Table | None
) -> tuple[Split, float, list[str]]:
    """Divide the rows; the share that is held out is 0 where all are learnt from."""
    share = float(options.test) if isinstance(options.test, Real) else 0.0
    table, notes = wanted.table, []
    if 0 < share and share * len(table) < _FEWEST_HELD_OUT:
        notes.append(
            f"A share of {share:g} of {len(table)} rows is too few to judge by: all rows were "
            "learnt from, and the figures come from cross-validation."
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
        notes.append(f"Judged by the {len(y)} rows of the test table.")
    elif share > 0:
        notes.append(
            f"{len(parts.held_out)} of {len(table)} rows were held out before anything was learnt, "
            f"with seed {options.random_state}; the figures are those on them."
        )
    elif not notes:
        notes.append("No rows were held out: the figures come from cross-validation.")
    return parts, share, notes


def _decider(
    task: str, classes: tuple[Any, ...], trained: Trained, parts: Split, options: FitOptions
) -> tuple[Decider, list[str]]:
    if options.costs is None:
        return Decider(task, classes, None), []
    machine = trained.pipeline[-1]
    if len(classes) != 2 or not hasattr(machine, "decision_function"):
        raise ValueError("fit: costs needs a classifier of two classes with decision values")
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
    """Judge by rows held out where there are any, otherwise by cross-validation."""
    seed, pipeline = options.random_state, trained.pipeline
    kind, rows, truth = "held-out", parts.held_out_rows, parts.held_out_target
    table = parts.held_out
    with phases.phase("evaluate", "the model is judged"):
        if len(parts.held_out):
            kind = "held-out" if share > 0 else "test table"
            answers = decider.answers(pipeline, table, truth)
        else:
            kind, rows, table = "cross-validated", parts.train_rows, parts.train
            truth = parts.train_target
            answers = cross_answers(pipeline, table, truth, decider, seed)
    matters: tuple[Any, str] = ((), "Not asked for.")
    if options.importance and phases.left == 0.0:
        matters = ((), "The time limit was over.")
    elif options.importance:
        with phases.phase("importance", "columns are shuffled"):
            matters = importance_of(pipeline, table, truth, decider, seed, phases.tell)
    return evaluating_evaluate(
        answers, kind=kind, rows=rows, decider=decider, train_target=parts.train_target,
        choice=trained.choice, scoring=options.scoring, seed=seed, importance=matters,
    )  # fmt: skip


# --- fit -----------------------------------------------------------------------------------------
#
# From a table to a model: check, split, prepare, choose, train, calibrate, certify, evaluate.


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
    """Fit a model to a table: check, split, prepare, choose, train, calibrate, certify, evaluate.

    Part of the rows is held out before anything is learnt; preparation, choice of the kernel and
    fit see the others only, and the figures of the model are those on the rows held out. The model
    that is returned is the one that was judged, unless `refit` asks for a fit to all rows.
    Everything that was decided is said in `notes`, and can be decided otherwise here.

    Parameters
    ----------
    table : Table, path, pandas, polars or pyarrow table, or dict of columns
        Rows; a path is read by `mercer.data.read`.
    target : str
        The column to predict.
    task : {"classification", "regression"} or None
        None takes words, truth values and at most ten different whole numbers for classes (30 if
        they count on from 0 or 1, with three rows each), other numbers for a quantity.
    machine : estimator or None
        What is fitted. None takes `SVC` for classes; for quantities `KernelRidge`, above 2000
        training rows `SVR`.
    kernels : sequence of str or Kernel, or None
        Families to compare ("linear", "polynomial", "gaussian", "matern", "laplacian", "sum over
        kinds of columns"), or kernels, or their texts. None compares all families.
    approximation : Approximation, str or None
        Features in place of the kernel, such as `Nystrom(1000)` or "nystrom:1000", or None for the
        kernel itself; "auto" leaves that to the machine, which takes landmarks where the kernel
        itself would be refused.
    kinds : mapping of str to Kind or str, optional
        Kinds of columns, in place of those inferred.
    drop : sequence of str
        Columns that are left out.
    test : float, Table or None
        Share of the rows to hold out, another table to judge by, or None: then, and where fewer
        than 20 rows would be held out, all rows are learnt from, and judged by cross-validation.
    refit : bool
        Whether the chosen settings are fitted to all rows in the end. The figures remain those of
        the fit without the rows held out.
    tune : bool
        Whether kernels and parameters are compared; otherwise `machine` is taken as it is.
    calibrate : bool
        Whether a classifier gets probabilities.
    positive : label or None
        Of two classes the one that scores speak of; None takes the second in order.
    costs : tuple of float or None
        Of a false positive and of a false negative: two classes are then divided where that is
        cheapest on the training rows.
    scoring : str, callable or None
        What the comparison goes by, as in scikit-learn: accuracy, or R^2.
    cv : int
        Folds of the comparison.
    max_rows : int
        The comparison takes a sample of so many training rows; the fit has all of them.
    importance : bool
        Whether the columns are shuffled to see what they are worth.
    time_limit : float or None
        Seconds for the whole: the comparison takes at most 60 % of it, the fit what is then left.
    random_state : int
        Seed of split, folds, samples and shuffles.
    journal : path or None
        A folder that remembers the comparison, so that the same call takes up what was interrupted.
    callback : callable or None
        Called with `FitProgress`; a true return value ends the comparison with what was judged
        (the fit that follows is ended by `time_limit` alone).

    Returns
    -------
    TableModel
        The model, how good it is, and how it came about; print it.

    Notes
    -----
    The preparation looks at no target. It is learnt once from the training rows, before they are
    divided into folds for the comparison. The answer depends neither on the order of the rows, nor
    (up to rounding) on that of the columns.

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
# Judge a model of a table by labelled rows that it has not seen.


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
