"""Log-scores of rows under a naive Bayes model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.machines.bayes.class_counts import (
    ClassCounts,
    Layout,
    binary_block,
    count_block,
    refuse_text,
)
from mercer.machines.bayes.columns import Table
from mercer.machines.bayes.values import slots
from mercer.points import is_sparse
from mercer.problems.bayes.class_tables import LOG_ZERO, ClassModel

FAR = 1e140  # standard deviations; beyond, squares overflow, and all is said
_BLOCK = 1 << 17  # entries of a block of Gaussian columns


@dataclass(frozen=True, eq=False)
class Coded:
    """Rows in the terms of a model.

    Attributes
    ----------
    slots : list of pairs of int arrays
        For each categorical column, codes (n,), and the place in the model's tables that each code
        stands for; the place after the last is "missing".
    binary, counts, gaussian : Points
        The other columns.
    """

    n: int
    slots: list[tuple[Array, Array]]
    binary: Points | None
    counts: Points | None
    gaussian: Array | None


def coded(machine: Any, layout: Layout, table: Table, held: ClassCounts) -> Coded:
    """Look up the values of categorical columns, and check the others."""
    last = sum(len(values) + 1 for values in held.values)
    found, start = [], 0
    for j, values in zip(layout.categorical, held.values, strict=True):
        codes, place = slots(table.column(j), values)
        found.append((codes, np.where(place > len(values), last, start + place)))
        start += len(values) + 1
    refuse_text(machine, layout.gaussian, table, "gaussian")
    return Coded(
        table.shape[0],
        found,
        binary_block(machine, layout.binary, table) if len(layout.binary) else None,
        count_block(machine, layout.count, table) if len(layout.count) else None,
        table.block(layout.gaussian, sparse_too=False) if len(layout.gaussian) else None,
    )


def scores(machine: Any, rows: Coded, model: ClassModel, prior: Array) -> Array:
    """Return log P(c) + sum_j log P(x_j | c) for every row and class: (n, k), all finite."""
    k = len(model.prior)
    out = np.zeros((rows.n, k))
    if rows.slots:
        table = np.vstack([model.tables.T, np.zeros(k)])
        for codes, place in rows.slots:
            out += table[place].take(codes, axis=0)
    if rows.binary is not None:
        out += _of_bits(rows.binary, model)
    if rows.counts is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            out += rows.counts @ model.words.T
    if rows.gaussian is not None:
        _add_bells(out, rows.gaussian, model)
    _refuse_overflow(machine, out)
    out += model.prior
    if not prior.all():  # a class of no probability stays far below the others, whatever X says
        out[:, prior == 0] = out[:, prior > 0].max(axis=1, keepdims=True) + LOG_ZERO
    return out


def _of_bits(X: Points, model: ClassModel) -> Array:
    step = (model.ones - model.zeros).T
    if is_sparse(X) or X.dtype.kind != "f" or not np.isnan(X).any():
        return np.asarray(X @ step + model.zeros.sum(axis=1))
    gaps = np.isnan(X)
    return np.asarray(np.where(gaps, 0.0, X) @ step + ~gaps @ model.zeros.T)


def _add_bells(out: Array, X: Array, model: ClassModel) -> None:
    """Add Gaussian log-densities, in blocks of rows."""
    width = 1.0 / np.sqrt(model.variance)
    constant = 0.5 * np.log(2.0 * np.pi * model.variance)
    step = max(1, _BLOCK // X.shape[1])
    for first in range(0, len(X), step):
        rows = X[first : first + step]
        with np.errstate(over="ignore", invalid="ignore"):
            some = bool(np.isnan(rows.sum()))
        gaps = np.isnan(rows) if some else None
        for c in range(len(width)):
            with np.errstate(over="ignore"):
                z = rows - model.mean[c]
                z *= width[c]
                if gaps is not None:
                    z[gaps] = 0.0
                squares = np.einsum("ij,ij->i", z, z)
            if not np.isfinite(squares).all():
                z = np.clip(z, -FAR, FAR)
                squares = np.einsum("ij,ij->i", z, z)
            constants = constant[c].sum() if gaps is None else ~gaps @ constant[c]
            out[first : first + step, c] -= 0.5 * squares + constants


def _refuse_overflow(machine: Any, out: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(out).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{type(machine).__name__}: the scores of {len(bad)} row(s) of X overflow, the first "
            f"in row {bad[0]}; counts are too large: scale them"
        )
