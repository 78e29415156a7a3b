"""The inputs of a formula: rows after the steps of a leaf, and whether they are packed densely."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.expression import (
    Columns,
    LinearMap,
    Mapped,
    NearOne,
    Squarable,
    Statistic,
    Step,
    Steps,
    Stretch,
)
from mercer.rows.device_rows import CardRows
from mercer.rows.points import as_points, chosen_columns, is_objects, is_sparse, to_host


def apply_steps(steps: Steps, X: Points) -> Points:
    """Send rows through the steps, first step first."""
    for step in steps:
        X = apply_step(step, X)
    return X


def operand(leaf: Statistic, X: Points) -> Points:
    """Return the rows that a statistic compares, checked against what it accepts."""
    rows = apply_steps(leaf.steps, X)
    if is_objects(rows):
        raise TypeError(
            "the kernel compares rows of numbers, but X holds strings or lists; use "
            "Spectrum(3).normalized() or another kernel of strings, choose columns of numbers with "
            "k.on([...]), or map the rows to numbers with k.after(phi)"
        )
    if leaf.needs_nonnegative:
        _refuse_negative(leaf, rows)
    return rows


def _refuse_negative(leaf: Statistic, rows: Points) -> None:
    values = rows.data if is_sparse(rows) else rows
    if values.size and values.min() < 0:
        raise ValueError(
            f"{type(leaf).__name__} is defined for nonnegative features (histograms, counts); "
            f"the smallest value in X is {values.min():g}"
        )


@singledispatch
def apply_step(step: Step, X: Points) -> Points:
    """Send rows through one step."""
    raise TypeError(f"unknown step {step!r}")


@apply_step.register
def _(step: Columns, X: Points) -> Points:
    if is_objects(X):
        return chosen_columns(X, [_known_number(name) for name in step.names])
    index = np.array([_column_number(name, X) for name in step.names], dtype=np.intp)
    return as_points(X[:, index])


@apply_step.register
def _(step: Stretch, X: Points) -> Points:
    factors = step.factors.array
    if factors.ndim == 0:
        return as_points(X.astype(np.float64) * float(factors))  # out of the range of float32
    if factors.shape != (X.shape[1],):
        raise ValueError(
            f"the kernel has {factors.shape[0]} scales, one per feature, but X has "
            f"{X.shape[1]} features"
        )
    if is_sparse(X):
        return as_points(X.multiply(factors[None, :]).astype(X.dtype))
    return (X * factors).astype(X.dtype, copy=False)


@apply_step.register
def _(step: LinearMap, X: Points) -> Points:
    matrix = step.matrix.array
    if matrix.shape[0] != X.shape[1]:
        raise ValueError(
            f"the kernel's matrix has {matrix.shape[0]} rows, but X has {X.shape[1]} features"
        )
    mapped: Any = np.asarray(X @ matrix)
    return mapped.astype(X.dtype, copy=False)


@apply_step.register
def _(step: Mapped, X: Points) -> Points:
    there = _mapped_on_card(step, X)
    mapped = as_points(step.function(to_host(X))) if there is None else there
    if mapped.shape[0] != X.shape[0]:
        raise ValueError(
            f"the map {step.function!r} turned {X.shape[0]} rows into {mapped.shape[0]}; "
            "it must keep one row per sample"
        )
    return mapped


def _mapped_on_card(step: Mapped, X: Points) -> Points | None:
    """Return what a map that can makes of rows on a card, made there; None for all others."""
    verb = getattr(step.function, "features_on_card", None)
    return verb(X) if isinstance(X, CardRows) and verb is not None else None


@apply_step.register
def _(step: NearOne, X: Points) -> Points:
    far, exponents = _unsquarable(X)
    if not far.any():
        return X
    shift = np.where(far, -exponents, 0)
    if not is_sparse(X):
        return np.asarray(np.ldexp(X, shift[:, None]))
    scaled = X.copy()
    scaled.data = np.ldexp(X.data, np.repeat(shift, np.diff(X.indptr)))
    return scaled


@apply_step.register
def _(step: Squarable, X: Points) -> Points:
    far, exponents = _unsquarable(X)
    if far.any():
        row = int(np.argmax(far))
        raise ValueError(
            f"{step.owner}: the largest entry of row {row} is about 2^{exponents[row]}, so that "
            "its square is out of the range of numbers; multiply all rows by one number that "
            "brings them nearer to 1, which does not change the kernel"
        )
    return X


def _unsquarable(X: Points) -> tuple[Array, Array]:
    """Return which rows have squares out of range, and the exponent of each row's largest entry."""
    if is_objects(X) or X.dtype.kind != "f" or not X.shape[1]:
        return np.zeros(X.shape[0], dtype=bool), np.zeros(X.shape[0], dtype=int)
    largest = abs(X).max(axis=1)
    largest = largest.toarray().ravel() if is_sparse(largest) else np.asarray(largest)
    exponents = np.frexp(largest)[1].astype(int)
    # a square, and a sum of many, keep their distance from both ends of the range
    limit = np.finfo(X.dtype).maxexp * 7 // 16
    return (np.abs(exponents) > limit) & np.isfinite(largest), exponents


def _known_number(name: int | str) -> int:
    if isinstance(name, str):
        raise ValueError(f"the kernel speaks of a column {name!r}, but X has no column names")
    return name


def _column_number(name: int | str, X: Points) -> int:
    name = _known_number(name)
    if not -X.shape[1] <= name < X.shape[1]:
        raise ValueError(f"the kernel speaks of column {name}, but X has {X.shape[1]} columns")
    return name


# --- whether the compiled core walks over nonzeros or packs rows densely -------------------------

_SPARSE_BELOW = 0.2  # density from which walking nonzeros costs more than packed rows
_DENSE_COPY = 1 << 30  # bytes; wider CSR rows stay sparse at any density


def stays_sparse(X: Points, Y: Points | None, dtype: Any) -> bool:
    """Decide between walking nonzeros and packed dense rows, from what each would cost."""
    both = [X] if Y is None else [X, Y]
    if not any(is_sparse(points) for points in both):
        return False
    entries = sum(math.prod(points.shape) for points in both)
    filled = sum(points.nnz if is_sparse(points) else points.size for points in both)
    too_large = entries * np.dtype(dtype).itemsize > _DENSE_COPY
    return bool(too_large or filled < _SPARSE_BELOW * entries)
