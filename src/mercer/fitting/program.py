"""The Python program that makes the same model: what `fit` did, without its choices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

import mercer.kernels
from mercer.approximation import Approximation
from mercer.kernels import Kernel

_NAME = re.compile(r"\b[A-Z]\w*(?=\()")


def expression_of(machine: Any) -> str:
    """Write a machine as Python: its class, and the parameters that are not the default.

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
    """Write a value as Python that makes it again."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    return repr(value)


def imports_of(machine: Any) -> list[str]:
    """Return the lines that import a machine, and kernels and features in its parameters."""
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
    """Write the program of a `TableModel`.

    Parameters
    ----------
    machine : estimator
        With its parameters.
    source : str
        File of the table; "" leaves the table to the reader.
    kinds : mapping
        Kinds that the user gave.
    drop : sequence of str
        Columns that the user left out.
    target, task, test, random_state
        As in `split`.
    threshold : float or None
        Decision value of the second label from which on it is predicted.
    labels : tuple
        The labels.

    Returns
    -------
    str
        It ends with a fitted `model`.
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
        The file, and the column to predict.
    given : mapping of str to str
        Other arguments of the call, as Python.

    Returns
    -------
    str
        It ends with a fitted `model`.
    """
    arguments = "".join(f", {name}={value}" for name, value in given.items())
    names = sorted({name for value in given.values() for name in _NAME.findall(value)})
    known = [name for name in names if hasattr(mercer, name)]
    imports = [f"from mercer import {', '.join(known)}"] if known else []
    call = f"model = mercer.fit({path!r}, {target!r}{arguments})"
    return "\n".join(["import mercer", *imports, "", call]) + "\n"


def table_imports(source: str) -> list[str]:
    """Return the lines that import what reads and prepares a table."""
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
    """Return the lines that make the pipeline."""
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
