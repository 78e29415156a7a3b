"""Rows and targets as they come in: checked once, with errors that say where and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_X_y,
    validate_data,
)

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.blocks.base import RowBlocks
from mercer.card_rows import CardRows
from mercer.data.table import Table
from mercer.distributed.chunks import is_dask
from mercer.machines.base.inputs.explaining import explaining
from mercer.machines.base.inputs.refusals import (
    refuse_nonfinite,
    refuse_twin_columns,
    warn_of_spread,
)
from mercer.machines.base.table_columns import numbers_of, remember_columns
from mercer.points import as_points, is_sequence_data, is_sparse, to_host

_FLOATS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # looked at afterwards, by code that says where
}
_NO_TARGETS = "no_validation"  # in place of y, for scikit-learn's validation


def read_rows(
    machine: Any, X: Any, y: Any = _NO_TARGETS, *, fitting: bool = True, **options: Any
) -> Any:
    """Check rows of numbers, in the one place where they enter a machine.

    Every machine reads its rows here, so that every machine says the same of dates, of text, of a
    broken sparse matrix, of integers beyond float64: what, in which row and column, and what to do.
    Entries that are not finite are left in: see `refuse_nonfinite`.

    Parameters
    ----------
    machine : estimator
        Remembers the columns at a fit, and is named in errors.
    X : array-like, sparse matrix, Table or data frame
        Rows.
    y : array-like, optional
        Targets.
    fitting : bool
        Whether to remember the columns; else they are compared.
    **options
        Of scikit-learn's `validate_data`.

    Returns
    -------
    Points, or (Points, array) with targets
    """
    if is_dask(X):
        raise TypeError(
            f"{type(machine).__name__}: X is a Dask collection, which fit takes; for answers call "
            "mercer.distributed.predict(machine, X), or transform, decision_function there: they "
            "stay on the workers. X.compute() brings all rows here"
        )
    if isinstance(X, RowBlocks):
        raise TypeError(
            f"{type(machine).__name__}: X is rows in blocks, which fit takes; for answers call "
            "mercer.streaming.predict(machine, blocks), or transform, decision_function there"
        )
    plain = _is_plain(X) and _is_plain_target(y, X) and options.keys() <= _PLAIN_OPTIONS
    if plain and _remembers(machine, X.shape[1], fitting):
        if y is _NO_TARGETS:
            return X
        return X, y.astype(np.float64) if "y_numeric" in options else y
    options = _FLOATS | options
    if isinstance(X, Table):
        return _read_table(machine, X, y, fitting, options)
    refuse_twin_columns(machine, X)
    with explaining(type(machine).__name__, X, y):
        found = validate_data(machine, X, y, reset=fitting, **options)
        if not isinstance(found, tuple):
            return as_points(found)
        rows, targets = found
        return as_points(rows), targets.astype(np.float64) if "y_numeric" in options else targets


# Rows and targets that scikit-learn would hand back as they are: looking at them with its general
# functions, which ask several times whether they are a data frame of some kind, takes 0.15 ms, an
# eighth of a fit to a hundred rows.

_PLAIN_OPTIONS = {"accept_sparse", "multi_output", "y_numeric"}


def _is_plain(X: Any) -> bool:
    """Return whether X is an array of floats as all rooms below take it."""
    if isinstance(X, CardRows):
        return X.size > 0
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in (np.float64, np.float32):
        return False
    return X.size > 0 and X.flags.c_contiguous and X.dtype.isnative and X.flags.aligned


def _is_plain_target(y: Any, X: Array) -> bool:
    """Return whether y is not asked for, or is an array of finite numbers, one for each row."""
    if y is _NO_TARGETS:
        return True
    if type(y) is not np.ndarray or y.shape != (len(X),) or y.dtype.kind not in "biuf":
        return False
    return y.dtype.kind != "f" or bool(np.isfinite(y).all())


def _remembers(machine: Any, columns: int, fitting: bool) -> bool:
    """Remember the number of columns; of new rows, return whether it is that of the fit."""
    held = machine.__dict__
    if fitting:
        held.pop("feature_names_in_", None)
        held["n_features_in_"] = columns
        return True
    return "feature_names_in_" not in held and held.get("n_features_in_") == columns


def _read_table(machine: Any, table: Table, y: Any, fitting: bool, options: dict[str, Any]) -> Any:
    """Check the rows of a table, whose columns have names and must be numbers."""
    rows = numbers_of(machine, table)
    if fitting or not hasattr(machine, "feature_names_in_"):
        found = read_rows(machine, rows, y, fitting=fitting, **options)
        if fitting:
            remember_columns(machine, table, fitting)
        return found
    remember_columns(machine, table, fitting)
    if isinstance(y, str) and y == _NO_TARGETS:
        return as_points(read_array(type(machine).__name__, rows, "X", **options))
    with explaining(type(machine).__name__, rows, y):
        rows, targets = check_X_y(rows, y, estimator=machine, **options)
    return as_points(rows), targets.astype(np.float64) if "y_numeric" in options else targets


def read_array(owner: str, values: Any, what: str, **options: Any) -> Any:
    """Check an array beside the rows (a second view, centres, scores) as `read_rows` does.

    Parameters
    ----------
    owner : str
        The name of the machine, for errors.
    values : array-like or sparse matrix
        The array; entries that are not finite are left in.
    what : str
        The name of the argument.
    **options
        Of scikit-learn's `check_array`.
    """
    with explaining(owner, values, what=what):
        return check_array(values, input_name=what, estimator=owner, **(_FLOATS | options))


def training_rows(
    machine: Any, X: Any, y: Any, precomputed: bool, **target: Any
) -> tuple[Points, Array]:
    """Check training rows and targets, and let the machine remember the columns."""
    if is_sequence_data(X):
        return _training_sequences(machine, X, y, **target)
    accept: dict[str, Any] = {"accept_sparse": False if precomputed else "csr"}
    rows, targets = read_rows(machine, X, y, **accept, **target)
    rows = to_host(rows) if precomputed else choose_backend().placed(rows)
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
    rows: Points = read_rows(machine, X, accept_sparse=False if precomputed else "csr")
    rows = to_host(rows) if precomputed else choose_backend().placed(rows)
    refuse_nonfinite(machine, rows)
    if not precomputed:
        warn_of_spread(machine, rows)
    return rows


def rows_of_fits(X: Any) -> Any:
    """Return plain rows where those of fits are, for many that take some of them; others as is."""
    plain = type(X) is np.ndarray and X.dtype in (np.float32, np.float64)
    return choose_backend().placed(X) if plain else X


def _training_sequences(machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
    machine.__dict__.pop("n_features_in_", None)
    rows = as_points(X)
    y = validate_data(machine, y=y, **target)  # forgets names of columns, too
    check_consistent_length(rows, y)
    return rows, y


def new_rows(machine: Any, X: Any, precomputed: bool, *, stay: bool = False) -> Points:
    """Check rows to predict for against what the machine was fitted to.

    Those that `stay` are sent where rows of a fit are, for more than one answer.
    """
    sequences, name = is_sequence_data(X), type(machine).__name__
    if sequences == hasattr(machine, "n_features_in_"):
        fitted, got = "strings or lists of tokens", "rows of numbers"
        if sequences:
            fitted, got = got, fitted
        raise TypeError(f"{name} was fitted to {fitted}, but X holds {got}")
    if sequences:
        return as_points(X)
    if precomputed:
        _refuse_wrong_rectangle(machine, X)
    accept: dict[str, Any] = {"accept_sparse": False if precomputed else "csr"}
    rows: Points = read_rows(machine, X, fitting=False, **accept)
    rows = choose_backend().placed(rows) if stay else rows
    refuse_nonfinite(machine, rows)
    return rows


def _refuse_wrong_rectangle(machine: Any, X: Any) -> None:
    """Explain the matrix that a machine with a precomputed kernel predicts from."""
    n, name = machine.n_features_in_, type(machine).__name__
    K = read_array(name, X, "X")
    refuse_nonfinite(machine, K)
    if K.shape[1] != n:
        transposed = " It looks transposed." if len(K) == n else ""
        raise ValueError(
            f"X has {K.shape[1]} features, but {name} is expecting {n} features as input: with a "
            "precomputed kernel, pass the matrix of new points (rows) against all training points "
            f"(columns), of shape (n_new, {n}), not {K.shape}.{transposed}"
        )


# --- rows with missing entries as they come in: NaN where a machine allows it, infinity never ----


def rows_with_gaps(
    machine: Any, X: Any, *, gaps: bool, fitting: bool, sparse: bool = True, remedy: str = ""
) -> Points:
    """Check rows, at the fit or after it.

    Parameters
    ----------
    machine : estimator
        Remembers the columns at the fit.
    X : array-like or sparse matrix
        Rows.
    gaps : bool
        Whether NaN stands for a missing entry; else it is refused.
    fitting : bool
        Whether these are training rows.
    sparse : bool
        Whether they may be sparse.
    remedy : str
        What to do about missing entries where they are refused.
    """
    accept = "csr" if sparse else False
    rows: Points = read_rows(machine, X, fitting=fitting, accept_sparse=accept)
    if not gaps or is_sparse(rows):
        refuse_nonfinite(machine, rows, remedy=remedy)
    elif np.isinf(rows).any():
        refuse_nonfinite(machine, np.where(np.isnan(rows), 0.0, rows))
    return rows
