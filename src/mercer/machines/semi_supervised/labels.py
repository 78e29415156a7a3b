"""Rows with and without a label, told apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.machines.base.parameters import refuse
from mercer.machines.base.targets import classes_of
from mercer.machines.semi_supervised.graph import rows_and_labels


def check_unlabelled(machine: Any) -> None:
    """Require an integer or a string."""
    value = machine.unlabelled
    if isinstance(value, bool) or not isinstance(value, int | str | np.integer | np.str_):
        refuse(machine, "unlabelled", value, "be an integer or a string, the mark in y")


def classes_and_codes(machine: Any, y: Array) -> tuple[Array, Array, Array]:
    """Return the classes, the class of each row (-1 for none), and which rows have a label.

    Where all rows but those with the mark have one label, the mark is a label itself: a classifier
    needs two, and y of -1 and 1 is a way to write them.
    """
    marked = _is(y, machine.unlabelled)
    if marked.any() and len(np.unique(y[~marked])) == 1:
        marked = np.zeros(len(y), dtype=bool)
    if marked.all():
        raise ValueError(
            f"{type(machine).__name__}: no row has a label: y holds unlabelled="
            f"{machine.unlabelled!r} alone"
        )
    classes, found = classes_of(machine, y[~marked], np.ones(int((~marked).sum())))
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[~marked] = found
    return classes, codes, ~marked


def indicators(codes: Array, count: int) -> Array:
    """Return a column for each class: one at its rows, zero at others and those without a label."""
    Y = np.zeros((len(codes), count))
    rows = np.flatnonzero(codes >= 0)
    Y[rows, codes[rows]] = 1.0
    return Y


def read_targets(
    machine: Any, X: Any, y: Any, *, multi_output: bool = False
) -> tuple[Points, Array]:
    """Check training rows and targets, of which some are NaN."""
    options: dict[str, Any] = {"y_numeric": True}
    if multi_output:
        options["multi_output"] = True
    try:
        values = np.asarray(y)
        values = values if values.dtype.kind == "c" else values.astype(np.float64)
    except (TypeError, ValueError):
        return rows_and_labels(machine, X, y, **options)  # which says what is wrong
    gaps = np.isnan(values)
    if values.ndim and gaps.any() and gaps.all():
        name = type(machine).__name__
        raise ValueError(
            f"{name}: y contains NaN only, which stands for rows without a target; at least one "
            "row needs one"
        )
    if values.ndim == 0:
        return rows_and_labels(machine, X, y, **options)
    X, filled = rows_and_labels(machine, X, np.where(gaps, 0.0, values), **options)
    return X, np.where(gaps.reshape(filled.shape), np.nan, filled)


def known_targets(machine: Any, y: Array) -> Array:
    """Return which rows have a target, of shape (n,) or (n, t): NaN stands for none."""
    name = type(machine).__name__
    table = y.reshape(len(y), -1)
    gaps = np.isnan(table)
    missing = gaps.all(axis=1)
    partly = np.flatnonzero(gaps.any(axis=1) & ~missing)
    if len(partly):
        raise ValueError(
            f"{name}: row {partly[0]} of y has some targets and lacks others; NaN must stand for "
            "all of them. Fit one machine for each target"
        )
    return np.asarray(~missing)


def _is(y: Array, mark: Any) -> Array:
    """Return which entries are the mark; a string is no number, nor a number a string."""
    if y.dtype.kind == "O":
        return np.array([type(label) is type(mark) and label == mark for label in y.tolist()])
    if isinstance(mark, str) != (y.dtype.kind in "US"):
        return np.zeros(len(y), dtype=bool)
    return np.asarray(y == mark)
