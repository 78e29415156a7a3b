"""What is to be predicted: classes or a quantity, from which rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Kind
from mercer.data.labels import FEW, ROWS, are_labels

if TYPE_CHECKING:
    from mercer.data import Table

TASKS = ("classification", "regression")
_MOST_CLASSES = 200  # words: more are names or text
_SMALLEST = ROWS  # of a class: two to learn from, one to judge by
_SHOWN = 6  # classes in a sentence
_LONGEST = 1000  # characters of a label


@dataclass(frozen=True)
class Target:
    """The column to predict.

    Attributes
    ----------
    table : Table
        Rows that have a target and belong to a class that is large enough.
    name : str
        Of the column.
    task : str
        "classification" or "regression".
    classes : tuple
        Labels, sorted; empty for regression.
    notes : tuple of str
        What was decided.
    left_out : tuple of str
        Sentences about rows that were left out.
    """

    table: Table
    name: str
    task: str
    classes: tuple[Any, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def read_target(table: Table, name: str, task: str | None) -> Target:
    """Decide what the target is, and leave out rows that have none.

    Parameters
    ----------
    table : Table
        With the target among its columns.
    name : str
        The target.
    task : str or None
        What the user says that it is.

    Returns
    -------
    Target
        With sentences about everything that was decided.
    """
    if name not in table.columns:
        known = ", ".join(map(repr, table.columns[:20]))
        raise ValueError(f"fit: target={name!r} is no column of the table; there are {known}")
    if task is not None and task not in TASKS:
        raise ValueError(f"fit: task={task!r} must be 'classification', 'regression' or None")
    if len(table.columns) < 2:
        raise ValueError(f"fit: the table has no column beside the target {name!r} to learn from")
    notes, left_out = [], []
    there = ~missing_of(table[name])
    if not there.any():
        raise ValueError(f"fit: the target {name!r} is missing in every row")
    if not there.all():
        left_out.append(
            f"{int((~there).sum())} of {len(table)} rows have no target and were left out."
        )
        table = table.rows(there)
    if task is None:
        task, why = _guessed(table, name)
        notes.append(why)
    if task == "regression":
        notes += _check_numbers(table, name)
        return Target(table, name, task, (), (*left_out, *notes), tuple(left_out))
    return _with_classes(table, name, notes, left_out)


def target_values(table: Table, name: str, task: str) -> Array:
    """Return the target as machines take it.

    Parameters
    ----------
    table : Table
        All rows have a target.
    name : str
        The column.
    task : {"classification", "regression"}
        Labels, or numbers.

    Returns
    -------
    (n,) array
        float64 for regression; for classification words, or whole numbers where all labels are.
    """
    values = table[name]
    if task == "regression":
        return np.asarray(values, dtype=np.float64)
    if values.dtype.kind == "f" and (values == np.rint(values)).all():
        return np.asarray(values, dtype=np.int64)
    if values.dtype != object:
        return np.asarray(values)
    # NumPy gives every entry the room of the longest: few long ones would take all memory
    longest = max(map(len, values.tolist()), default=0)
    if longest > _LONGEST:
        raise ValueError(
            f"fit: the target {name!r} has a label of {longest} characters, more than {_LONGEST}: "
            "that is text, and no class; give it a short name"
        )
    return np.asarray(values.astype(str))


def missing_of(values: Array) -> Array:
    """Return which entries of a column are missing."""
    if values.dtype == object:
        return np.array([entry is None for entry in values.tolist()], dtype=bool)
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _guessed(table: Table, name: str) -> tuple[str, str]:
    kind, values = table.kinds[name], table[name]
    if kind is Kind.DATE:
        raise ValueError(
            f"fit: the target {name!r} holds dates; turn them into a number that means something, "
            "such as days until an event"
        )
    if values.dtype.kind in "biuf" and kind is Kind.NUMBER:
        if not are_labels(values):
            return "regression", f"{name!r} is a column of numbers: regression."
        return "classification", (
            f"{name!r} has {len(np.unique(values))} different whole numbers, which are taken "
            "for classes; task='regression' takes them for a quantity."
        )
    return "classification", f"{name!r} is a column of kind {kind.value}: classification."


def _check_numbers(table: Table, name: str) -> list[str]:
    values = table[name]
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"fit: task='regression' needs numbers, and the target {name!r} is a column of kind "
            f"{table.kinds[name].value}{_odd_words(values)}"
        )
    bad = np.flatnonzero(~np.isfinite(values.astype(np.float64)))
    if len(bad):
        raise ValueError(f"fit: the target {name!r} is infinite in row {int(bad[0])}")
    different = len(np.unique(values))
    if different < 2:
        raise ValueError(
            f"fit: the target {name!r} is {values[0].item()!r} in every row; there is nothing to "
            "learn"
        )
    if different <= min(FEW, len(values) // 2):
        return [f"{name!r} has only {different} different values; predictions lie between them."]
    return []


def _with_classes(table: Table, name: str, notes: list[str], left_out: list[str]) -> Target:
    labels = target_values(table, name, "classification")
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) > _MOST_CLASSES:
        raise ValueError(
            f"fit: the target {name!r} has {len(classes)} different values, too many for classes "
            f"(at most {_MOST_CLASSES}); task='regression' takes numbers for a quantity"
        )
    small = classes[counts < _SMALLEST]
    if len(small) and len(classes) - len(small) >= 2:
        lost = int(counts[counts < _SMALLEST].sum())
        left_out.append(
            f"Classes with fewer than {_SMALLEST} rows cannot be learnt and judged: "
            f"{_words(small)}; their {lost} rows were left out."
        )
        table = table.rows(~np.isin(labels, small))
        labels = target_values(table, name, "classification")
        classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"fit: the target {name!r} is {classes[0].item()!r} in every row; two classes are "
            "needed"
        )
    if counts.min() < _SMALLEST:
        raise ValueError(
            f"fit: class {classes[counts.argmin()].item()!r} of the target {name!r} has "
            f"{counts.min()} row(s); at least {_SMALLEST} rows of two classes are needed"
            f"{_odd_words(table[name])}"
        )
    notes.append(_shares(classes, counts))
    found, lost_rows = tuple(classes.tolist()), tuple(left_out)
    return Target(table, name, "classification", found, (*lost_rows, *notes), lost_rows)


def _odd_words(values: Array) -> str:
    """Return which words keep a column from being numbers, where nearly all entries are some."""
    if values.dtype != object:
        return ""
    odd = [word for word in values.tolist() if word is not None and not _is_number(word)]
    if not odd or 2 * len(odd) > len(values):
        return ""
    word = odd[0][:30]
    return (
        f"; {len(values) - len(odd)} of its {len(values)} entries are numbers, and {len(odd)} are "
        f"not, such as {word!r}: if that means none, pass missing={word!r}"
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _shares(classes: Array, counts: Array) -> str:
    order = np.argsort(-counts, kind="stable")
    shown = ", ".join(f"{classes[k]} ({counts[k]} rows)" for k in order[:_SHOWN])
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    text = f"Classes: {shown}{more}."
    if counts.max() > 3 * counts.min():
        text += (
            " They are uneven: look at the balanced accuracy and the area under the ROC curve; "
            "scoring='balanced_accuracy' chooses by the first."
        )
    return text


def _words(labels: Array) -> str:
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return ", ".join(map(str, labels[:_SHOWN].tolist())) + more


def rows_with_target(table: Table, target: str, *, task: str | None = None) -> Table:
    """Return the rows that `mercer.fit` learns from and judges by.

    Parameters
    ----------
    table : Table
        Any rows.
    target : str
        The column that is predicted.
    task : {"classification", "regression"} or None
        What the target is; None decides by its kind.

    Returns
    -------
    Table
        Without rows that have no target, and without classes of fewer than three rows.

    Examples
    --------
    >>> from mercer.data import Table
    >>> from mercer.fitting import rows_with_target
    >>> table = Table.of({"x": range(8), "y": ["a", "b"] * 3 + [None, "a"]})
    >>> len(rows_with_target(table, "y"))
    7
    """
    return read_target(table, target, task).table
