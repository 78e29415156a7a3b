"""Rows in any form, and how to choose among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from mercer.array_types import Array
from mercer.points import is_sparse, take


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from, as a machine takes them.

    Attributes
    ----------
    machine : estimator
        What is fitted: the user's, or a copy that reads a given matrix.
    data : object
        Rows, or the matrix between all of them.
    square : bool
        Whether `data` is that matrix.
    """

    machine: Any
    data: Any
    square: bool

    @staticmethod
    def of(machine: Any, X: Any) -> Rows:
        """Take rows as they are; the matrix of a precomputed kernel is known by the machine."""
        return Rows(machine, X, bool(get_tags(machine).input_tags.pairwise))

    def train(self, index: Array) -> Any:
        """Return what `fit` takes for some rows."""
        return take_square(self.data, index, index) if self.square else take_rows(self.data, index)

    def test(self, index: Array, train: Array) -> Any:
        """Return what `predict` takes for some rows after a fit to others."""
        return take_square(self.data, index, train) if self.square else take_rows(self.data, index)


def indexable(X: Any) -> Any:
    """Return rows in a form that can be chosen from: what has no places becomes an array or CSR."""
    if is_sparse(X):
        return X.tocsr()
    if hasattr(X, "iloc") or hasattr(X, "__getitem__"):
        return X
    return np.asarray(X)


def count_rows(X: Any) -> int:
    """Count the rows; what has none is refused as scikit-learn does."""
    if hasattr(X, "shape") and len(X.shape) == 0:
        raise TypeError(f"{X!r} is one number, not a collection of rows")
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, index: Array) -> Any:
    """Choose rows of an array, a table, a sparse matrix or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if isinstance(X, list | tuple):
        return [X[i] for i in index.tolist()]
    return take(X, index)


def take_square(K: Any, rows: Array, columns: Array) -> Any:
    """Choose rows and columns of a matrix."""
    if hasattr(K, "iloc"):
        return K.iloc[rows, columns]
    if isinstance(K, list | tuple):
        K = np.asarray(K)
    return K[rows][:, columns] if is_sparse(K) else K[np.ix_(rows, columns)]


def shuffled(rng: np.random.Generator, n: int, labels: Any, few: int) -> Array:
    """Return rows in an order any beginning of which has every class in its share.

    Parameters
    ----------
    rng : numpy Generator
        What draws.
    n : int
        Number of rows.
    labels : array or None
        Their classes, if they have any.
    few : int
        So many rows of each class come first, that rare ones are there, too.

    Returns
    -------
    (n,) int array
        All rows.
    """
    order = rng.permutation(n)
    if labels is None:
        return order
    _, codes = np.unique(np.asarray(labels)[order], return_inverse=True)
    place = np.empty(n)
    for code in range(int(codes.max(initial=-1)) + 1):
        mine = np.flatnonzero(codes == code)
        place[mine] = (np.arange(len(mine)) + rng.random()) / len(mine)
        place[mine[:few]] = -1.0
    return np.asarray(order[np.argsort(place, kind="stable")])
