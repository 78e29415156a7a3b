"""Rows and targets as they come in: checked once, with errors that say where and what to do."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from mercer._points import as_points, is_sequence_data, is_sparse
from mercer._types import Array, Points

_SPREAD = 1e8  # ratio of column scales beyond which one column drowns the others in float64
_ROWS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # looked at afterwards, by code that says where
}


def training_rows(
    machine: Any, X: Any, y: Any, precomputed: bool, **target: Any
) -> tuple[Points, Array]:
    """Check training rows and targets, and let the machine remember the columns."""
    if is_sequence_data(X):
        return _training_sequences(machine, X, y, **target)
    refuse_twin_columns(machine, X)
    accept = {"accept_sparse": False if precomputed else "csr"}
    try:
        with np.errstate(over="ignore"):  # long doubles beyond float64 are found below
            rows, targets = validate_data(machine, X, y, **accept, **_ROWS, **target)
            targets = targets.astype(np.float64) if target.get("y_numeric") else targets
    except ValueError as error:
        raise _explained(machine, error, X, y) from error
    rows = as_points(rows)
    refuse_nonfinite(machine, rows)
    if not precomputed:
        warn_of_spread(machine, rows)
    return rows, targets


def training_rows_alone(machine: Any, X: Any, precomputed: bool) -> Points:
    """Check training rows that have no targets, and let the machine remember the columns."""
    if is_sequence_data(X):
        for name in ("n_features_in_", "feature_names_in_"):
            machine.__dict__.pop(name, None)
        return as_points(X)
    refuse_twin_columns(machine, X)
    accept = {"accept_sparse": False if precomputed else "csr"}
    try:
        with np.errstate(over="ignore"):
            rows = as_points(validate_data(machine, X, **accept, **_ROWS))
    except ValueError as error:
        raise _explained(machine, error, X) from error
    refuse_nonfinite(machine, rows)
    if not precomputed:
        warn_of_spread(machine, rows)
    return rows


def _training_sequences(machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
    machine.__dict__.pop("n_features_in_", None)
    rows = as_points(X)
    y = validate_data(machine, y=y, **target)  # forgets names of columns, too
    check_consistent_length(rows, y)
    return rows, y


def new_rows(machine: Any, X: Any, precomputed: bool) -> Points:
    """Check rows to predict for against what the machine was fitted to."""
    sequences, name = is_sequence_data(X), type(machine).__name__
    if sequences == hasattr(machine, "n_features_in_"):
        fitted, got = "strings or lists of tokens", "rows of numbers"
        if sequences:
            fitted, got = got, fitted
        raise TypeError(f"{name} was fitted to {fitted}, but X holds {got}")
    if sequences:
        return as_points(X)
    accept = {"accept_sparse": False if precomputed else "csr"}
    if precomputed:
        _refuse_wrong_rectangle(machine, X)
    try:
        with np.errstate(over="ignore"):
            rows = validate_data(machine, X, reset=False, **accept, **_ROWS)
    except ValueError as error:
        raise _explained(machine, error, X) from error
    rows = as_points(rows)
    refuse_nonfinite(machine, rows)
    return rows


def _refuse_wrong_rectangle(machine: Any, X: Any) -> None:
    """Explain the matrix that a machine with a precomputed kernel predicts from."""
    K, n, name = check_array(X, **_ROWS), machine.n_features_in_, type(machine).__name__
    refuse_nonfinite(machine, K)
    if K.shape[1] != n:
        transposed = " It looks transposed." if len(K) == n else ""
        raise ValueError(
            f"X has {K.shape[1]} features, but {name} is expecting {n} features as input: with a "
            "precomputed kernel, pass the matrix of new points (rows) against all training points "
            f"(columns), of shape (n_new, {n}), not {K.shape}.{transposed}"
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


def refuse_nonfinite(machine: Any, X: Points) -> None:
    """Raise if X holds NaN or infinity, saying how many and where the first one is."""
    values = X.data if is_sparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)) or np.isfinite(values).all():
            return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    row, column = _first(X, bad)
    raise ValueError(
        f"Input X contains {kind}: {int(bad.sum())} bad value(s), the first in row {row}, "
        f"{_called(machine, column)}. {type(machine).__name__} does not accept missing or infinite "
        "values; remove those rows or fill them in, e.g. with sklearn.impute.SimpleImputer."
    )


def _first(X: Points, bad: Array) -> tuple[int, int]:
    """Give row and column of the first bad value."""
    if is_sparse(X):
        first = int(np.flatnonzero(bad)[0])
        return int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first])
    row, column = np.argwhere(bad)[0]
    return int(row), int(column)


def _called(machine: Any, column: int) -> str:
    names = getattr(machine, "feature_names_in_", None)
    return f"column {column}" + (f" ({str(names[column])!r})" if names is not None else "")


def _explained(machine: Any, error: ValueError, X: Any, y: Any = None) -> ValueError:
    """Say which column holds the text that could not be read as a number."""
    if "could not convert" not in str(error) or is_sparse(X):
        return error
    name, values = type(machine).__name__, np.asarray(X, dtype=object)
    for row, column in np.ndindex(values.shape) if values.ndim == 2 else ():
        if not _is_number(values[row, column]):
            return ValueError(
                f"{name}: {values[row, column]!r} in row {row}, column {column} of X is not a "
                "number; encode such columns first, e.g. with sklearn.preprocessing.OneHotEncoder"
            )
    for row, value in enumerate(np.asarray(y, dtype=object).ravel()):
        if not _is_number(value):
            return ValueError(f"{name}: {value!r} in row {row} of y is not a number")
    return error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


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
    """Give the largest magnitude of each column."""
    if is_sparse(X):  # by the entries that are there; the library's own way turns X over first
        largest = np.zeros(X.shape[1], dtype=X.dtype)
        np.maximum.at(largest, X.indices, np.abs(X.data))
        return largest
    # not the maximum of abs(X), which would copy X
    return np.asarray(np.maximum(X.max(axis=0), -X.min(axis=0)))


def refuse_overflown(machine: Any, values: Array) -> Array:
    """Give predictions back if they are numbers; else say where the kernel overflows."""
    bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
    if not len(bad):
        return values
    shown = ", ".join(map(str, bad[:5])) + (", ..." if len(bad) > 5 else "")
    raise ValueError(
        f"{type(machine).__name__}: kernel value not finite: {machine.kernel_!r} overflows on "
        f"{len(bad)} new row(s) of X ({shown}). Scale the features, or use a smaller degree."
    )
