"""Class `TableModel`, and the Python program that reproduces it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

import mercer.kernels
from mercer.approximation import Approximation
from mercer.array_types import Array
from mercer.fitting.evaluation import Decider, Evaluation
from mercer.kernels import Kernel
from mercer.selection import Choice
from mercer.theory import Bound

if TYPE_CHECKING:
    from mercer.data import Findings, Schema, Table


# --- program -------------------------------------------------------------------------------------
#
# The Python program that reproduces the selected model without the comparison.

_NAME = re.compile(r"\b[A-Z]\w*(?=\()")


def expression_of(machine: Any) -> str:
    """Write an estimator as a Python expression without default parameters.

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.kernels import Gaussian
    >>> expression_of(SVC(Gaussian(0.5), C=10.0))
    'SVC(kernel=Gaussian(scale=0.5), C=10.0)'
    """
    given, default = machine.get_params(deep=False), type(machine)().get_params(deep=False)
    order = [name for name in signature(type(machine)).parameters if name in given]
    changed = [
        f"{name}={text_of(given[name])}" for name in order if not _same(given[name], default[name])
    ]
    return f"{type(machine).__name__}({', '.join(changed)})"


def text_of(value: Any) -> str:
    """Write a value as a Python expression."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    return repr(value)


def imports_of(machine: Any) -> list[str]:
    """Return the imports of an estimator, its kernels and its approximation."""
    lines = [f"from {_home(type(machine))} import {type(machine).__name__}"]
    kernels = [v for v in machine.get_params(deep=False).values() if isinstance(v, Kernel)]
    names = sorted({name for kernel in kernels for name in _NAME.findall(repr(kernel))})
    known = [name for name in names if hasattr(mercer.kernels, name)]
    given = machine.get_params(deep=False).get("approximation")
    if isinstance(given, Approximation):
        lines.append(f"from mercer.approximation import {type(given).__name__}")
    return [*lines, *([f"from mercer.kernels import {', '.join(known)}"] if known else [])]


def model_program(
    machine: Any,
    *,
    source: str,
    kinds: Mapping[str, str],
    drop: Sequence[str],
    target: str,
    task: str,
    test: float,
    random_state: int,
    threshold: float | None,
    labels: tuple[Any, ...],
) -> str:
    """Write the Python program of a `TableModel`.

    Parameters
    ----------
    machine : estimator
        Estimator with its parameters.
    source : str
        File of the table. If "", the program expects a variable `table`.
    kinds : mapping
        Column kinds specified by the user.
    drop : sequence of str
        Columns to ignore.
    target, task, test, random_state
        See `split`.
    threshold : float or None
        Smallest decision value of the second label.
    labels : tuple
        Labels.

    Returns
    -------
    str
        Program that creates a fitted `model`.
    """
    lines = [
        "from sklearn.pipeline import Pipeline",
        *imports_of(machine),
        *table_imports(source),
        "from mercer.fitting import rows_with_target, split",
        "",
        *table_lines(source, kinds, drop),
        f"table = rows_with_target(table, {target!r}, task={task!r})",
        f"parts = split(table, {target!r}, task={task!r}, test={test!r}, "
        f"random_state={random_state})",
        *pipeline_lines(machine),
        "model.fit(parts.train, parts.train_target)",
    ]
    if threshold is not None:
        lines += ["", *_threshold_lines(machine, threshold, labels)]
    return "\n".join(lines) + "\n"


def file_program(path: str, target: str, given: Mapping[str, str]) -> str:
    """Write the call that fits a model to a file read block by block.

    Parameters
    ----------
    path, target : str
        File and target column.
    given : mapping of str to str
        Other arguments of the call as Python expressions.

    Returns
    -------
    str
        Program that creates a fitted `model`.
    """
    arguments = "".join(f", {name}={value}" for name, value in given.items())
    names = sorted({name for value in given.values() for name in _NAME.findall(value)})
    known = [name for name in names if hasattr(mercer, name)]
    imports = [f"from mercer import {', '.join(known)}"] if known else []
    call = f"model = mercer.fit({path!r}, {target!r}{arguments})"
    return "\n".join(["import mercer", *imports, "", call]) + "\n"


def table_imports(source: str) -> list[str]:
    """Return the imports for reading and preprocessing a table."""
    return ["from mercer.data import TablePreparation" + (", read" if source else "")]


def table_lines(source: str, kinds: Mapping[str, str], drop: Sequence[str]) -> list[str]:
    """Return the lines that read the table."""
    lines = [f"table = read({source!r})"] if source else ["# table: the Table that was given"]
    if kinds:
        lines.append(f"table = table.with_kinds({dict(kinds)!r})")
    if drop:
        lines.append(f"table = table.drop({', '.join(map(repr, drop))})")
    return lines


def pipeline_lines(machine: Any) -> list[str]:
    """Return the lines that create the pipeline."""
    return [
        "model = Pipeline([",
        '    ("prepare", TablePreparation()),',
        f'    ("machine", {expression_of(machine)}),',
        "])",
    ]


def _threshold_lines(machine: Any, threshold: float, labels: tuple[Any, ...]) -> list[str]:
    sign = "" if labels[1] == machine.classes_[1] else "-"
    return [
        "",
        "def predict(rows):",
        f"    positive = {sign}model.decision_function(rows) >= {threshold!r}",
        f"    return [{labels[1]!r} if one else {labels[0]!r} for one in positive]",
    ]


def _home(kind: type) -> str:
    return "mercer" if kind.__module__.startswith("mercer.") else kind.__module__.split("._")[0]


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    try:
        return type(a) is type(b) and bool(a == b)
    except (ValueError, TypeError):
        return False


# --- model ---------------------------------------------------------------------------------------
#
# The result of `fit`.


@dataclass(frozen=True)
class Settings:
    """Settings that reproduce a model.

    Attributes
    ----------
    random_state : int
        Random seed of splits, subsamples and permutations.
    versions : dict of str to str
        Versions of python, mercer, numpy, scipy and scikit-learn.
    digest : str
        SHA-256 of the table.
    source : str
        File of the table, or "".
    rows : int
        Number of rows with a target.
    trained_rows, held_out_rows : int
        Numbers of rows for the fit and for the evaluation.
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
    """A certified and evaluated model that predicts one column of a table.

    Attributes
    ----------
    pipeline : Pipeline
        Steps "prepare" (a fitted `TablePreparation`) and "machine" (the fitted estimator).
    schema : Schema
        Columns that `predict` requires, with their kinds.
    target : str
        Target column.
    task : str
        "classification" or "regression".
    classes : tuple
        Labels in the order of probabilities; empty for regression.
    positive : object
        Positive class of a binary target, for ROC curve, threshold and `decision_function`. None
        otherwise.
    threshold : float or None
        Smallest decision value of the positive class, if costs were specified. If None, the
        estimator decides.
    choice : Choice or None
        Result of model selection. None without a comparison.
    evaluation : Evaluation
        Metrics on the evaluated rows.
    findings : Findings
        Findings of `mercer.data.check`.
    certificate : Certificate
        Certificate of the estimator.
    bounds : tuple of Bound
        Generalization bounds from the training rows. `vacuous` marks bounds without content.
    notes : tuple of str
        Decisions of the fit: rows, columns, task, classes, preprocessing, selection.
    python : str
        Python program that reproduces the model.
    settings : Settings
        Seed, versions, digest, seconds.
    table : Table or None
        Training and held-out rows for reports. Model files do not contain it.
    constant : tuple of float
        The best constant prediction on the training rows: class fractions or the mean.
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
        """The fitted estimator, without preprocessing."""
        return self.pipeline[-1]

    @property
    def preparation(self) -> Any:
        """The fitted preprocessing step."""
        return self.pipeline[0]

    def predict(self, table: Any) -> Array:
        """Predict labels or targets of new rows.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            New rows. Columns are matched by name; other columns, such as the target, are ignored.
            A file is read block by block.

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
        """Predict class probabilities of new rows, for calibrated classifiers.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            New rows. Columns are matched by name.

        Returns
        -------
        (n, classes) array
            Probabilities in the order of `classes`.
        """
        if self.task == "regression" or not hasattr(self.pipeline, "predict_proba"):
            raise AttributeError(
                "predict_proba: the model has no probabilities; fit a classifier with "
                "calibrate=True"
            )
        decider = self._decider()
        return self._answers(table, partial(decider.probabilities, self.pipeline))

    def decision_function(self, table: Any) -> Array:
        """Evaluate the decision function at new rows, for classifiers.

        Parameters
        ----------
        table : Table, anything `Table.of` takes, or path
            New rows. Columns are matched by name.

        Returns
        -------
        (n,) or (n, classes) array
            Decision values. For two classes, values above 0 (or the threshold) predict `positive`.
        """
        if self.task == "regression" or not hasattr(self.pipeline, "decision_function"):
            raise AttributeError("decision_function: the model has no decision values")
        decider = self._decider()
        return self._answers(table, partial(decider.scores, self.pipeline))

    def _answers(self, table: Any, ask: Callable[[Any], Any]) -> Array:
        """Call a method for rows; a file is read block by block."""
        if not isinstance(table, str | os.PathLike):
            return np.asarray(ask(table))
        from mercer.data import read_blocks  # noqa: PLC0415  only where a file is asked about

        blocks = read_blocks(table, self.schema.without_identifiers())
        parts = [np.asarray(ask(rows)) for rows in blocks]
        if not parts:
            raise ValueError(f"{table}: the table has no rows")
        return np.concatenate(parts)

    def _decider(self) -> Decider:
        return Decider(self.task, self.classes, self.threshold)

    def __str__(self) -> str:
        lines = [f"{self.task} of {self.target!r}: {self.machine}", *self.notes]
        lines += ["", str(self.evaluation), "", str(self.certificate)]
        return "\n".join(lines)
