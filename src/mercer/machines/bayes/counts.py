"""Class counts, log-scores and smoothing of naive Bayes, and solutions computed on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mercer.array_types import Array, Points
from mercer.machines.base.certificate import Certified, LazyDataCertificate
from mercer.machines.base.parameters import is_real, refuse
from mercer.machines.base.targets import normalised, prior_of
from mercer.machines.bayes.columns import AttributeTable, Values, slots, tabulated
from mercer.machines.bayes.gaussian_scores import warn_of_small
from mercer.machines.bayes.problem import LOG_ZERO, ClassModel, ClassTables, ColumnMoments
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solution
from mercer.solvers.certificate import certify
from mercer.solvers.dispatch import solve

# --- lazy solution -------------------------------------------------------------------------------
#
# A problem that is solved when its solution is first used: streams learn more often than they
# predict.
#
# The solution is cached in here, so that access leaves the estimator itself unchanged.


class LazySolution:
    """A problem and, once asked for, its solution.

    Parameters
    ----------
    problem : object
        The problem.
    """

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._solution: Solution | None = None

    @property
    def solution(self) -> Solution:
        """The solution, found when first asked for."""
        if self._solution is None:
            self._solution = solve(self.problem)
        return self._solution

    def kept(self) -> LazyDataCertificate:
        """Return the data of a certificate."""
        return LazyDataCertificate(self.problem, self.solution.value, certify)


class SolvedLater(Certified):
    """An estimator that keeps counts, and computes the solution when it is used."""

    _asked: LazySolution

    def _ask(self, problem: Any) -> None:
        """Put a problem in the place of the one before."""
        self._asked = LazySolution(problem)
        self.__dict__.pop("_judgement", None)

    @property
    def solution_(self) -> Solution:
        """The solution, computed from the counts at first access."""
        check_is_fitted(self, "_asked")
        return self._asked.solution

    @property
    def certificate_(self) -> Any:
        """The certificate of the solution, computed from the counts at first access."""
        if "_asked" in self.__dict__ and "_judgement" not in self.__dict__:
            self._judgement = self._asked.kept()
        return super().certificate_

    def __sklearn_is_fitted__(self) -> bool:
        return "_asked" in self.__dict__


# --- class counts --------------------------------------------------------------------------------
#
# What naive Bayes has seen: counts and moments for each class, which add up over batches.


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
    machine: Any, layout: Layout, table: AttributeTable, labels: Array, weights: Array, k: int
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


def binary_block(machine: Any, which: Array, table: AttributeTable) -> Points:
    """Return columns of zeros and ones; raise for any other number."""
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


def count_block(machine: Any, which: Array, table: AttributeTable) -> Points:
    """Return columns of counts, zero if missing; raise for negative ones."""
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


def refuse_text(machine: Any, which: Array, table: AttributeTable, kind: str) -> None:
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
    machine: Any, which: Array, table: AttributeTable, adder: Any, total: Array
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
    machine: Any, which: Array, table: AttributeTable, labels: Array, weights: Array, adder: Any
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
    machine: Any, which: Array, table: AttributeTable, labels: Array, adder: Any, total: Array
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
    """Raise for totals and squares beyond float64; warn of columns whose squares underflow."""
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


# --- class scores --------------------------------------------------------------------------------
#
# Log-scores of rows under a naive Bayes model.

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


def coded(machine: Any, layout: Layout, table: AttributeTable, held: ClassCounts) -> Coded:
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


# --- smoothing -----------------------------------------------------------------------------------
#
# The smoothing of naive Bayes by cross-validation: counts of folds add up, so none is refitted.
#
# Folds are alike in every class and made of distinct rows: copies of a row are in one fold, so
# that a row of weight two is that row twice.

FOLDS = 5
ALPHAS = 10.0 ** np.arange(-3, 2.25, 0.5)
LARGEST = 1e100  # sums of larger terms overflow float64


def is_smoothing(alpha: Any) -> bool:
    """Return whether something can be added to counts."""
    return is_real(alpha) and 0 <= float(alpha) <= LARGEST


def check_smoothing(machine: Any) -> None:
    """Require a count that can be added to each value."""
    if not is_smoothing(machine.alpha):
        must = f"be a finite number of at least 0 and at most {LARGEST:g}"
        refuse(machine, "alpha", machine.alpha, must)


def best_alpha(
    machine: Any,
    layout: Layout,
    table: AttributeTable,
    labels: Array,
    weights: Array,
    whole: ClassCounts,
) -> tuple[float, Array]:
    """Return the candidate with the smallest loss on rows left out, and the loss of each.

    The loss is the mean of -log P(class of the row | row); of equal candidates the largest wins.
    """
    fold = folds(coded(machine, layout, table, whole), labels)
    k, candidates = len(whole.weight), candidates_of(machine)
    used = [f for f in range(FOLDS) if (fold == f).any()]
    parts = {}
    for f in used:
        mine = np.flatnonzero(fold == f)
        parts[f] = count(machine, layout, table.rows(mine), labels[mine], weights[mine], k)
    losses = np.zeros(len(candidates))
    for f in used if len(used) > 1 else []:
        held = np.flatnonzero(fold == f)
        learnt = reduce(ClassCounts.merged, [parts[g] for g in used if g != f])
        prior = prior_of(machine, learnt.weight)
        rows = coded(machine, layout, table.rows(held), learnt)
        for i, alpha in enumerate(candidates):
            model = solve(learnt.problem(alpha, machine.var_smoothing, prior)).value
            found = normalised(scores(machine, rows, model, prior))
            losses[i] -= weights[held] @ found[np.arange(len(held)), labels[held]]
    losses /= weights.sum()
    least = losses.min()
    return float(candidates[losses <= least + 1e-12 * abs(least)].max()), losses


def candidates_of(machine: Any) -> Array:
    """Return the candidates: those given, or eleven from 0.001 to 100."""
    return ALPHAS if machine.alphas is None else np.asarray(machine.alphas, dtype=np.float64)


def folds(rows: Coded, labels: Array) -> Array:
    """Return the fold of each row, by its content and not by its position."""
    key = _key(rows)
    order = np.lexsort((key, labels))
    new = np.append(True, (np.diff(key[order]) != 0) | (np.diff(labels[order]) != 0))
    rank = np.cumsum(new) - 1  # of distinct rows, those of one class side by side
    out = np.empty(len(labels), dtype=np.intp)
    out[order] = rank % FOLDS
    return out


def _key(rows: Coded) -> Array:
    """Return a number for each row, equal for equal rows."""
    rng = np.random.default_rng(0)
    key = np.zeros(rows.n)
    for codes, place in rows.slots:
        key += (rng.standard_normal() * np.sin(place)).take(codes)
    for block in (rows.binary, rows.counts, rows.gaussian):
        if block is None:
            continue
        direction = rng.standard_normal(block.shape[1])
        if is_sparse(block):
            key += block @ direction
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(0, rows.n, 4096):  # row by row: a product may round equal rows apart
                part = np.nan_to_num(block[i : i + 4096].astype(np.float64), nan=-1.5)
                key[i : i + 4096] += (part * direction).sum(axis=1)
    return np.nan_to_num(key)
