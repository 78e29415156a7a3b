"""What rows must not hold: dates, twin names, infinities, scales that drown others."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.points import is_sparse
from mercer.row_chunks import chunked

_SPREAD = 1e8  # ratio of column scales beyond which one column drowns the others in float64


def refuse_dates(owner: str, X: Any) -> None:
    """Raise if X holds dates or times, which NumPy would turn into numbers in silence."""
    kinds = getattr(X, "dtypes", None)  # of a data frame: one for each column
    if getattr(getattr(X, "dtype", None), "kind", "") in ("m", "M"):
        raise dates(owner, 0)
    if kinds is None or not hasattr(X, "columns"):
        return
    for name, kind in zip(X.columns, kinds, strict=False):
        if getattr(kind, "kind", "") in ("m", "M"):
            raise dates(owner, name)


def dates(owner: str, column: Any) -> TypeError:
    """Return a message that a column holds dates, and what to do."""
    return TypeError(
        f"{owner}: column {column!r} of X holds dates or times; turn them into numbers (days since "
        "an origin) or categories (the month) first"
    )


def refuse_twin_columns(machine: Any, X: Any) -> None:
    """Raise if two columns of a table have one name: the fitted names would be ambiguous."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    if names is None or len(set(names)) == len(names):
        return
    twin = Counter(names).most_common(1)[0]
    raise ValueError(
        f"{type(machine).__name__}: X has {twin[1]} columns named {twin[0]!r}; rename them, or "
        "pass the values without names, e.g. X.to_numpy()"
    )


def refuse_nonfinite(machine: Any, X: Points, what: str = "X", remedy: str = "") -> None:
    """Raise if rows hold NaN or infinity, saying how many and where the first one is.

    Parameters
    ----------
    machine : estimator or str
        Whose rows they are, or its name.
    X : Points
        Rows.
    what : str
        The name of the argument.
    remedy : str
        What to do about it; by default, to drop rows or fill entries in.
    """
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    row, column = _first(X, bad)
    owner = machine if isinstance(machine, str) else type(machine).__name__
    raise ValueError(
        f"Input {what} contains {kind}: {int(bad.sum())} bad value(s), the first in row {row}, "
        f"{_called(machine, column)}. {owner} does not accept missing or infinite "
        f"values; {remedy if remedy and kind == 'NaN' else _DROP}"
    )


_DROP = "remove those rows or fill them in, e.g. with sklearn.impute.SimpleImputer."


def refuse_large_squares(machine: Any, X: Array, what: str = "X") -> None:
    """Raise if sums of squares of a column, which variances are made of, leave float64."""
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    bad = np.flatnonzero(largest > sqrt(np.finfo(np.float64).max / (4 * len(X) + 4)))
    if len(bad):
        raise ValueError(
            f"{type(machine).__name__}: the squares of column {bad[0]} of {what}, whose largest "
            f"entry is {largest[bad[0]]:.0e}, overflow; scale that column"
        )


def _first(X: Points, bad: Array) -> tuple[int, int]:
    """Return row and column of the first bad value."""
    if is_sparse(X):
        first = int(np.flatnonzero(bad)[0])
        return int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first])
    row, column = np.unravel_index(int(bad.argmax()), bad.shape)
    return int(row), int(column)


def _called(machine: Any, column: int) -> str:
    names = getattr(machine, "feature_names_in_", None)
    return f"column {column}" + (f" ({str(names[column])!r})" if names is not None else "")


def warn_of_spread(machine: Any, X: Points) -> None:
    """Warn when one column is so much larger than another that the smaller cannot matter."""
    largest = _largest(X)
    used = largest[largest > 0]
    if len(used) and used.max() / _SPREAD > used.min():
        ratio = np.log10(used.max()) - np.log10(used.min())
        warnings.warn(
            f"{type(machine).__name__}: the columns of X differ in scale by a factor of "
            f"10^{ratio:.0f}; the largest drown the others. Scale the features first, e.g. with "
            "sklearn.preprocessing.StandardScaler.",
            UserWarning,
            stacklevel=6,
        )


def _largest(X: Points) -> Array:
    """Return the largest magnitude of each column."""
    if is_sparse(X):  # by the entries that are there; the library's own way turns X over first
        largest = np.zeros(X.shape[1], dtype=X.dtype)
        np.maximum.at(largest, X.indices, np.abs(X.data))
        return largest
    if not isinstance(X, np.ndarray):
        return np.asarray(np.maximum(X.max(axis=0), -X.min(axis=0)))

    def chunk(rows: slice) -> Array:
        part = X[rows]  # not the maximum of abs(X), which would copy X
        return np.asarray(np.maximum(part.max(axis=0), -part.min(axis=0)))

    return np.asarray(np.max(chunked(chunk, len(X)), axis=0))


def refuse_overflown(machine: Any, evaluate: Callable[[], Array]) -> Array:
    """Return predictions if they are numbers; else say, and say alone, where the kernel overflows.

    Parameters
    ----------
    machine : object
        A fitted machine.
    evaluate : callable
        Computes the predictions: (n,) or (n, k).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = evaluate()
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if not len(bad):
        return values
    shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
    raise ValueError(
        f"{type(machine).__name__}: kernel value not finite: {machine.kernel_!r} overflows on "
        f"{len(bad)} new row(s) of X ({shown}). Scale the features, or use a smaller degree."
    )


def refuse_empty_columns(machine: Any, X: Points, weights: Array) -> None:
    """Raise if a column has no entry at all."""
    if is_sparse(X):
        return
    empty = np.flatnonzero(np.isnan(X[weights > 0]).all(axis=0))
    if len(empty):
        raise ValueError(
            f"{type(machine).__name__}: column {empty[0]} of X has no entry that is not missing; "
            "drop such columns"
        )
