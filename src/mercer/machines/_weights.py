"""Sample weights mean repetition: a row of weight 2 is that row twice, of weight 0 not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._points import is_objects, is_sparse
from mercer._types import Array, Points


def check_weights(machine: Any, sample_weight: Any, n: int) -> Array:
    """Give float64 weights for n rows; ones when none are given."""
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


@dataclass(frozen=True)
class DistinctRows:
    """Rows of equal points and labels taken together.

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

    def spread(self, coef: Array, weights: Array) -> Array:
        """Divide coefficients of distinct rows among their copies, by weight."""
        shares = np.zeros(len(weights))
        kept = self.group >= 0
        shares[kept] = weights[kept] / self.weight[self.group[kept]]
        return np.asarray(np.where(kept, coef[self.group] * shares, 0.0))


def distinct_rows(X: Points, labels: Array, weights: Array) -> DistinctRows:
    """Merge equal rows with equal labels, adding up their weights.

    A fit to merged rows cannot tell repetition from weight, nor one row order from another: the
    promise holds to the last bit, not only to the solver's tolerance.
    """
    kept = np.flatnonzero(weights > 0)
    numbers = _numbers(X)
    # weights come last: their sum over a group must not depend on the order of rows either
    keys = (weights, numbers, _projection(X), labels)
    order = kept[np.lexsort([key[kept] for key in keys])]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (np.diff(numbers[order]) != 0) | (np.diff(labels[order]) != 0)
    places = np.cumsum(starts) - 1
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = places
    total = np.bincount(places, weights=weights[order])
    return DistinctRows(order[starts], total, group)


def _numbers(X: Points) -> Array:
    """Give every row a number, equal rows the same, whatever their order."""
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
    return [(row + 0.0).tobytes() for row in X]  # -0.0 + 0.0 is 0.0


def _projection(X: Points) -> Array:
    """Give a sorting key that dense and CSR rows share, so that both are solved in one order."""
    if is_objects(X):
        return np.zeros(len(X))
    direction = np.random.default_rng(0).standard_normal(X.shape[1])
    if is_sparse(X):
        return np.asarray(np.nan_to_num(X @ direction))
    key = np.empty(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(0, len(X), 4096):  # row by row: a matrix product may round equal rows apart
            key[i : i + 4096] = (X[i : i + 4096] * direction).sum(axis=1)
    return np.nan_to_num(key)
