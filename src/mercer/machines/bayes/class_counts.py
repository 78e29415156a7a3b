"""What naive Bayes has seen: counts and moments for each class, which add up over batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from mercer.array_types import Array, Points
from mercer.machines.bayes.columns import Table
from mercer.machines.bayes.gaussian_scores import warn_of_small
from mercer.machines.bayes.values import Values, tabulated
from mercer.points import is_sparse
from mercer.problems.bayes.class_tables import ClassTables, ColumnMoments


@dataclass(frozen=True, eq=False)
class Layout:
    """Which columns are of which kind."""

    kinds: Array

    @cached_property
    def categorical(self) -> Array:
        """Columns with named values."""
        return np.flatnonzero(self.kinds == "categorical")

    @cached_property
    def binary(self) -> Array:
        """Columns of zeros and ones."""
        return np.flatnonzero(self.kinds == "binary")

    @cached_property
    def count(self) -> Array:
        """Columns of counts."""
        return np.flatnonzero(self.kinds == "count")

    @cached_property
    def gaussian(self) -> Array:
        """Columns of measurements."""
        return np.flatnonzero(self.kinds == "gaussian")


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Counts and moments of a sample.

    Attributes
    ----------
    weight : (k,) array
        Total weight of each class.
    values : tuple of Values
        The values of each categorical column.
    tables : tuple of (k, V) arrays
        Their weight in each class.
    hits, seen : (k, b) arrays
        Weight of ones, and of entries that are there, in binary columns.
    counts : (k, m) array
        Totals of count columns.
    moments : ColumnMoments
        Of Gaussian columns.
    """

    weight: Array
    values: tuple[Values, ...]
    tables: tuple[Array, ...]
    hits: Array
    seen: Array
    counts: Array
    moments: ColumnMoments

    def merged(self, other: ClassCounts) -> ClassCounts:
        """Add another sample of the same columns and classes."""
        pairs = zip(self.values, self.tables, other.values, other.tables, strict=True)
        joined = [_joined(*pair) for pair in pairs]
        return ClassCounts(
            self.weight + other.weight,
            tuple(values for values, _ in joined),
            tuple(table for _, table in joined),
            self.hits + other.hits,
            self.seen + other.seen,
            self.counts + other.counts,
            self.moments.merged(other.moments),
        )

    def problem(self, alpha: float, share: float, prior: Array) -> ClassTables:
        """Ask for the most likely probabilities; `share` sets the smallest variances."""
        sizes = np.array([len(values) + 1 for values in self.values], dtype=np.intp)
        starts = np.cumsum(sizes) - sizes
        flat = np.zeros((len(self.weight), int(sizes.sum())))
        for start, table in zip(starts, self.tables, strict=True):
            flat[:, start : start + table.shape[1]] = table
        floors = self.moments.floors(share)
        parts = (self.hits, self.seen, self.counts, self.moments)
        return ClassTables(flat, starts, *parts, float(alpha), floors, prior)


def _joined(mine: Values, table: Array, others: Values, other: Array) -> tuple[Values, Array]:
    values = mine.extended(others.listed)
    joined = np.zeros((len(table), len(values)))
    joined[:, : len(mine)] = table
    joined[:, values.numbers(others.listed)] += other  # distinct, so each is added to once
    return values, joined


def count(
    machine: Any, layout: Layout, table: Table, labels: Array, weights: Array, k: int
) -> ClassCounts:
    """Count a batch; rows of weight zero are not in it."""
    even = bool((weights == 1.0).all())
    total = np.bincount(labels, weights, minlength=k)
    n = len(labels)
    # one row per class; its product with a block of columns adds up the rows of each class
    adder = sparse.csc_array((weights, labels, np.arange(n + 1)), shape=(k, n))
    values, tables = [], []
    for j in layout.categorical:
        counted, named = tabulated(table.column(j), labels, None if even else weights, k)
        listed = Values().extended(named)
        values.append(listed)
        tables.append(_sorted(counted, listed, named))
    hits, seen = _ones(machine, layout.binary, table, adder, total)
    return ClassCounts(
        total,
        tuple(values),
        tuple(tables),
        hits,
        seen,
        _totals(machine, layout.count, table, labels, weights, adder),
        _moments(machine, layout.gaussian, table, labels, adder, total),
    )


def _sorted(counted: Array, listed: Values, named: Sequence[Any]) -> Array:
    order = listed.numbers(named)
    if (order == np.arange(len(order))).all():
        return counted
    out = np.empty_like(counted)
    out[:, order] = counted
    return out


def binary_block(machine: Any, which: Array, table: Table) -> Points:
    """Return columns of zeros and ones, and refuse any other number."""
    refuse_text(machine, which, table, "binary")
    block = table.block(which)
    held = block.data if is_sparse(block) else block
    with np.errstate(over="ignore"):
        good = held * held == held  # of numbers, zero and one only
    if not good.all() and held.dtype.kind == "f":
        good |= np.isnan(held)
    if not good.all():
        column, entry = _where(block, ~good, which)
        raise ValueError(
            f"{type(machine).__name__}: {entry:g} in column {column} of X, which is of the kind "
            "'binary' (so given, or only zeros and ones were seen in it at first); give another "
            f"kind, e.g. kinds={{{column}: 'gaussian'}}"
        )
    return block


def count_block(machine: Any, which: Array, table: Table) -> Points:
    """Return columns of counts, zero where missing, and refuse negative ones."""
    refuse_text(machine, which, table, "count")
    block = table.block(which)
    held = block.data if is_sparse(block) else block
    least = held.min() if held.size else 0  # NaN if anything is missing
    gaps = bool(least != 0) and held.dtype.kind == "f" and bool(np.isnan(least))
    if least < 0 or (gaps and (held < 0).any()):
        column, entry = _where(block, held < 0, which)
        raise ValueError(
            f"Negative values in data passed to {type(machine).__name__}: {entry:g} in column "
            f"{column}, which is of the kind 'count'"
        )
    return np.nan_to_num(block, nan=0.0) if gaps else block


def refuse_text(machine: Any, which: Array, table: Table, kind: str) -> None:
    """Raise if a column that must hold numbers holds something else."""
    if table.matrix is not None:
        return
    for j in which:
        column = table.columns[j]
        if column.numbers is None:
            texts = [value for value in column.values if not isinstance(value, Real)]
            text = texts[0] if texts else column.values[0]
            raise ValueError(
                f"{type(machine).__name__}: column {j} of X holds {text!r}, but its kind is "
                f"{kind!r}: numbers only; give another kind, e.g. kinds={{{j}: 'categorical'}}"
            )


def _where(block: Points, bad: Array, which: Array) -> tuple[int, float]:
    if is_sparse(block):
        first = int(np.flatnonzero(bad)[0])
        return int(which[block.indices[first]]), float(block.data[first])
    row, column = np.argwhere(bad)[0]
    return int(which[column]), float(block[row, column])


def _ones(
    machine: Any, which: Array, table: Table, adder: Any, total: Array
) -> tuple[Array, Array]:
    k = len(total)
    if not len(which):
        return np.zeros((k, 0)), np.zeros((k, 0))
    block = binary_block(machine, which, table)
    if is_sparse(block):
        return (adder @ block).toarray(), np.repeat(total[:, None], len(which), axis=1)
    some = block.dtype.kind == "f" and bool(np.isnan(block.sum()))
    if not some:
        return np.asarray(adder @ block), np.repeat(total[:, None], len(which), axis=1)
    gaps = np.isnan(block)
    return np.asarray(adder @ np.where(gaps, 0.0, block)), np.asarray(adder @ ~gaps)


def _totals(
    machine: Any, which: Array, table: Table, labels: Array, weights: Array, adder: Any
) -> Array:
    k, m = adder.shape[0], len(which)
    if not m:
        return np.zeros((k, 0))
    block = count_block(machine, which, table)
    if not is_sparse(block):
        return np.asarray(adder @ block)
    entries = np.diff(block.indptr)  # a third of the time of a product of sparse matrices
    place = np.repeat(labels * m, entries) + block.indices
    data = block.data if (weights == 1.0).all() else block.data * np.repeat(weights, entries)
    return np.bincount(place, data, minlength=k * m).reshape(k, m)


def _moments(
    machine: Any, which: Array, table: Table, labels: Array, adder: Any, total: Array
) -> ColumnMoments:
    """Return means, then squares around them: two passes, so that nothing cancels."""
    k = len(total)
    if not len(which):
        return ColumnMoments(*(np.zeros((k, 0)) for _ in range(3)))
    refuse_text(machine, which, table, "gaussian")
    X = table.block(which, sparse_too=False).astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        some = bool(np.isnan(X.sum()))
    gaps = np.isnan(X) if some else None
    weight = np.repeat(total[:, None], len(which), axis=1) if gaps is None else adder @ ~gaps
    known = np.where(weight > 0, weight, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = adder @ (X if gaps is None else np.where(gaps, 0.0, X)) / known
        left = X - mean[labels]
        if gaps is not None:
            left[gaps] = 0.0
        slip = adder @ left / known  # what rounding left of the mean
        scatter = np.maximum(adder @ np.square(left, out=left) - weight * slip**2, 0.0)
        return ColumnMoments(weight, mean + slip, scatter)


def check_range(machine: Any, layout: Layout, held: ClassCounts) -> None:
    """Refuse totals and squares beyond float64; warn of columns whose squares vanish in it."""
    name = type(machine).__name__
    with np.errstate(over="ignore"):
        totals = [held.weight.sum(), held.counts.sum()]
    if not np.isfinite(totals).all():
        raise ValueError(
            f"{name}: {'counts in X' if np.isfinite(totals[0]) else 'sample_weight'} add up to "
            "more than float64 holds; scale them down"
        )
    if not len(layout.gaussian):
        return
    every = held.moments.total()
    bad = layout.gaussian[~np.isfinite(every.scatter[0])]
    if len(bad):
        raise ValueError(f"{name}: the squares of column {bad[0]} of X overflow; scale that column")
    warn_of_small(machine, layout.gaussian, every.mean[0], every.scatter[0], every.weight[0])
