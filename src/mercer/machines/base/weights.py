"""Sample weights mean repetition: a row of weight 2 is that row twice, of weight 0 not there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.points import is_objects, is_sparse, take


def check_weights(machine: Any, sample_weight: Any, n: int) -> Array:
    """Return float64 weights for n rows; ones when none are given."""
    if sample_weight is None:
        return np.ones(n)
    name = type(machine).__name__
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: sample_weight must hold numbers only: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"{name}: sample_weight must be 1D array or scalar, got {weights.ndim}D")
    if len(weights) != n:
        raise ValueError(f"{name}: sample_weight has {len(weights)} entries, but X has {n} rows")
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(
            f"{name}: sample_weight must be finite and nonnegative; entry {bad[0]} is "
            f"{weights[bad[0]]}"
        )
    if not weights.any():
        raise ValueError(f"{name}: all entries of sample_weight are zero: no rows to learn from")
    return weights


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows of equal points and labels taken together, those of one label side by side.

    Attributes
    ----------
    first : (m,) int array
        One row number for each distinct row, in an order that does not depend on row order.
    weight : (m,) array
        Total weight of each distinct row.
    group : (n,) int array
        For each row, which distinct row it is; -1 for rows of weight zero.
    """

    first: Array
    weight: Array
    group: Array

    def total(self, values: Array) -> Array:
        """Add up values of rows over their copies; the order of rows changes no bit of it."""
        kept = np.flatnonzero(self.group >= 0)
        if len(kept) == len(self.first):
            return np.asarray(values[self.first])
        order = kept[np.lexsort((values[kept], self.group[kept]))]
        return np.bincount(self.group[order], values[order], minlength=len(self.first))

    def spread(self, coef: Array, weights: Array) -> Array:
        """Divide coefficients of distinct rows, (m,) or (m, k), among their copies, by weight."""
        kept = np.flatnonzero(self.group >= 0)
        group = self.group[kept]
        full = np.zeros((len(weights), *coef.shape[1:]))
        if len(kept) == len(self.first):
            full[kept] = coef[group]
            return full
        shares = weights[kept] / self.total(weights)[group]
        full[kept] = coef[group] * (shares if coef.ndim == 1 else shares[:, None])
        return full

    def reordered(self, order: Array) -> DistinctRows:
        """Return the same rows in another order."""
        place = np.empty(len(order) + 1, dtype=np.intp)
        place[order] = np.arange(len(order))
        place[-1] = -1  # so that rows of weight zero stay what they are
        return DistinctRows(self.first[order], self.weight[order], place[self.group])


def distinct_rows(X: Points, labels: Array, weights: Array) -> DistinctRows:
    """Merge equal rows with equal labels, adding up their weights.

    A fit to merged rows cannot tell repetition from weight, nor one row order from another: the
    promise holds to the last bit, not only to the solver's tolerance.
    """
    kept = np.flatnonzero(weights > 0)
    key, number = _projection(X), np.zeros(len(weights), dtype=np.intp)
    order = kept[np.lexsort((key[kept], labels[kept]))]
    alike = _repeats(key[order]) & _repeats(labels[order])
    if alike.any():  # equal, or projected to one point by chance: only these are looked at closely
        close = order[np.append(alike, False) | np.append(False, alike)]
        number[close] = _numbers(take(X, close))
        order = kept[np.lexsort((number[kept], key[kept], labels[kept]))]
        alike &= _repeats(number[order])
    starts = np.append(True, ~alike)
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = np.cumsum(starts) - 1
    merged = DistinctRows(order[starts], np.empty(0), group)
    return DistinctRows(merged.first, merged.total(weights), group)


def rows_as_they_are(labels: Array, weights: Array) -> DistinctRows:
    """Sort rows by label and drop those of weight zero, without comparing them: given matrices."""
    kept = np.flatnonzero(weights > 0)
    first = kept[np.argsort(labels[kept], kind="stable")]
    group = np.full(len(weights), -1, dtype=np.intp)
    group[first] = np.arange(len(first))
    return DistinctRows(first, weights[first], group)


def _repeats(values: Array) -> Array:
    """Return which values equal the one before: (n - 1,)."""
    return np.asarray(values[1:] == values[:-1])


def _numbers(X: Points) -> Array:
    """Return every row a number, equal rows the same, whatever their order."""
    rows = _hashable(X)
    known = sorted(set(rows), key=repr if is_objects(X) else None)
    number = {row: i for i, row in enumerate(known)}
    return np.array([number[row] for row in rows], dtype=np.intp)


def _hashable(X: Points) -> list[Any]:
    if is_objects(X):
        return list(X)
    if is_sparse(X):  # canonical: sorted, nothing twice, no zeros
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        return [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends]
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 + 0.0 is 0.0
    as_bytes: list[Any] = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).tolist()
    return [row for (row,) in as_bytes]


def _projection(X: Points) -> Array:
    """Return a sorting key that dense and CSR rows share, so that both are solved in one order."""
    if is_objects(X):
        return np.zeros(len(X))
    direction = _direction(X.shape[1])
    if is_sparse(X):
        return np.asarray(np.nan_to_num(X @ direction))
    key = np.empty(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, len(X), 4096):  # row by row: a matrix product may round equal rows apart
            key[i : i + 4096] = (X[i : i + 4096] * direction).sum(axis=1)
    return np.nan_to_num(key)


@lru_cache(maxsize=8)
def _direction(d: int) -> Array:
    return np.random.default_rng(0).standard_normal(d)
