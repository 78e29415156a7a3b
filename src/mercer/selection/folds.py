"""Cross-validation folds (shuffled, stratified or grouped), and how rows are taken from data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target

from mercer.array_types import Array
from mercer.rows.points import is_sparse, take

# --- folds ---------------------------------------------------------------------------------------
#
# Folds of rows: shuffled by a seed, classes in the same shares, groups never torn apart.
#
# Tables often come in some order (by label, by time of measurement, by size), and folds that are
# cut in that order judge a machine on rows unlike those that it learnt from. So a number of folds
# means shuffled ones, everywhere; a splitter of scikit-learn's decides for itself.

_FOLDS = 5  # of cv=None, as in scikit-learn
_ORDERED = 0.5  # correlation of neighbours in a table above which its order matters
_FEWEST = 20  # rows, below which such a correlation comes about by chance


def folds_of(
    machine: Any, X: Any, y: Any, cv: Any, groups: Any, random_state: Any = 0
) -> tuple[tuple[Array, Array], ...]:
    """Return the rows to learn from and to judge by of each fold."""
    with np.errstate(invalid="ignore"):  # labels that are no numbers are told of by the machine
        splitter = _splitter(cv, y, groups is not None, is_classifier(machine), random_state)
    n = count_rows(X)
    folds = tuple(
        (_positions(train, n), _positions(test, n)) for train, test in splitter.split(X, y, groups)
    )
    if not folds:
        raise ValueError(f"cv={cv!r} has no folds")
    return folds


def _splitter(cv: Any, y: Any, grouped: bool, classifier: bool, random_state: Any) -> Any:
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"cv={cv!r} must be a number, a splitter, an iterable, or 'loo'")
        return LeaveOneOut()
    if cv is not None and not isinstance(cv, Integral):
        return check_cv(cv, y, classifier=classifier)
    count = _FOLDS if cv is None else int(cv)
    labels = classifier and y is not None and type_of_target(y) in ("binary", "multiclass")
    if grouped:
        kind: Any = StratifiedGroupKFold if labels else GroupKFold
    else:
        kind = StratifiedKFold if labels else KFold
    return kind(count, shuffle=True, random_state=_seed(random_state))


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return random_state


def _positions(index: Any, n: int) -> Array:
    """Return rows of a fold as whole numbers from 0 to n - 1."""
    index = np.asarray(index)
    if index.dtype == bool and index.shape == (n,):
        return np.flatnonzero(index)
    if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
        raise ValueError(
            f"cv: the rows of a fold must be a list of positions, whole numbers, or a mask of {n} "
            f"truth values; got {index.dtype} of shape {index.shape}"
        )
    index = index.astype(np.intp)
    if len(index) and not (-n <= index.min() and index.max() < n):
        far = index.max() if index.max() >= n else index.min()
        raise IndexError(f"cv: a fold has row {far}, but there are {n} rows")
    return np.asarray(np.where(index < 0, index + n, index))


def note_on_order(folds: tuple[tuple[Array, Array], ...], y: Any) -> str:
    """Return a note that folds were cut in the order of rows that look ordered; else ""."""
    blocks = all(len(test) > 1 and np.all(np.diff(test) == 1) for _, test in folds)
    if not blocks or y is None or not _look_ordered(np.asarray(y)):
        return ""
    return (
        "The rows look ordered by their targets, and the folds are cut in that order, so that each "
        "has held-out rows unlike its training rows. Pass an integer, which shuffles, or a "
        "splitter with shuffle=True; keep this one if new rows have the same order."
    )


def _look_ordered(y: Array) -> bool:
    """Return whether neighbours in the table are much more alike than any two rows."""
    if y.ndim != 1 or len(y) < _FEWEST:
        return False
    if y.dtype.kind == "f":
        around = y - y.mean()
        spread = float(around @ around)
        return spread > 0 and 1 - float(np.sum(np.diff(y) ** 2)) / (2 * spread) > _ORDERED
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    by_chance = float(np.sum((counts / len(y)) ** 2))
    alike = float(np.mean(codes[1:] == codes[:-1]))
    return by_chance < 1 and (alike - by_chance) / (1 - by_chance) > _ORDERED


# --- rows ----------------------------------------------------------------------------------------
#
# Rows in any form, and how to choose among them.


@dataclass(frozen=True, eq=False)
class FitRows:
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
    def of(machine: Any, X: Any) -> FitRows:
        """Take rows as they are; the matrix of a precomputed kernel is known by the machine."""
        return FitRows(machine, X, bool(get_tags(machine).input_tags.pairwise))

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
