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
    weights = np.array(sample_weight, dtype=np.float64)
    name = type(machine).__name__
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
    keys = _keys(X, labels)[kept]
    order = kept[np.lexsort(keys.T[::-1])]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = ~_equal_neighbours(X, labels, order)
    numbers = np.cumsum(starts) - 1
    group = np.full(len(weights), -1, dtype=np.intp)
    group[order] = numbers
    total = np.bincount(numbers, weights=weights[order])
    return DistinctRows(order[starts], total, group)


def _keys(X: Points, labels: Array) -> Array:
    """Give sorting keys: equal rows have equal keys, different rows almost never."""
    if is_objects(X):
        numbers = {item: i for i, item in enumerate(sorted(set(X.tolist()), key=repr))}
        return np.column_stack([labels, [numbers[item] for item in X.tolist()]])
    direction = np.random.default_rng(0).standard_normal(X.shape[1])
    if is_sparse(X):
        values = X.data * direction[X.indices]
        key = np.add.reduceat(np.append(values, 0.0), X.indptr[:-1])
        key[np.diff(X.indptr) == 0] = 0.0
    else:  # summed row by row: a matrix product may round equal rows differently
        key = np.empty(len(X))
        for i in range(0, len(X), 4096):
            key[i : i + 4096] = (X[i : i + 4096] * direction).sum(axis=1)
    return np.column_stack([labels, np.nan_to_num(key)])


def _equal_neighbours(X: Points, labels: Array, order: Array) -> Array:
    left, right = order[:-1], order[1:]
    same = labels[left] == labels[right]
    if is_objects(X):
        same &= np.array([X[i] == X[j] for i, j in zip(left, right, strict=True)], dtype=bool)
    elif is_sparse(X):
        differing = abs(X[left] - X[right]).max(axis=1).toarray().ravel()
        same &= differing == 0
    else:
        for i in range(0, len(left), 4096):
            part = slice(i, i + 4096)
            same[part] &= (X[left[part]] == X[right[part]]).all(axis=1)
    return np.asarray(same)
