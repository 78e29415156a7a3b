"""The steps of a fit, one after the other."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np

from mercer.data import Finding, Findings, Table, check
from mercer.fitting.evaluating import (
    Decider,
    bounds_of,
    constant_of,
    cross_answers,
    evaluate,
    importance_of,
)
from mercer.fitting.evaluation import Evaluation
from mercer.fitting.model import Settings, TableModel
from mercer.fitting.phases import Phases
from mercer.fitting.rows.sources import read_table, source_of
from mercer.fitting.splitting import Split, split
from mercer.fitting.targets import Target, read_target, target_values
from mercer.fitting.training import Trained, Training, threshold_of

_FEWEST_HELD_OUT = 20  # rows: a share of fewer says next to nothing
_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Options:
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
        plain = Options()
        pairs = [(one.name, getattr(self, one.name)) for one in fields(self)]
        return {
            name: repr(value)
            for name, value in pairs
            if value is not getattr(plain, name) and repr(value) != repr(getattr(plain, name))
        }


def run(table: Any, target: str, options: Options, phases: Phases) -> TableModel:
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


def _training(options: Options) -> Training:
    names = [one.name for one in fields(Training)]
    return Training(**{name: getattr(options, name) for name in names})


def _test_table(wanted: Target, options: Options) -> Table | None:
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


def _parts(wanted: Target, options: Options, other: Table | None) -> tuple[Split, float, list[str]]:
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
    task: str, classes: tuple[Any, ...], trained: Trained, parts: Split, options: Options
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
    trained: Trained, parts: Split, share: float, decider: Decider, options: Options, phases: Phases
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
    return evaluate(
        answers, kind=kind, rows=rows, decider=decider, train_target=parts.train_target,
        choice=trained.choice, scoring=options.scoring, seed=seed, importance=matters,
    )  # fmt: skip
