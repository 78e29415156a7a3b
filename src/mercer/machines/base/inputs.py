"""Read and check the rows and targets of `fit` and `predict`, with errors that locate the entry."""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_X_y, validate_data

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.data.table import Table
from mercer.expression import reads_columns
from mercer.kernels import Kernel, Precomputed, resolve
from mercer.rows.blocks import RowBlocks
from mercer.rows.chunks import chunked
from mercer.rows.dask.chunks import is_dask
from mercer.rows.device_rows import CardRows
from mercer.rows.points import (
    as_points,
    column_names,
    is_sequence_data,
    is_sparse,
    mixed_rows,
    refuse_broken_sparse,
    to_host,
)

# --- explaining ----------------------------------------------------------------------------------
#
# Errors of rows that cannot be read as numbers: which entry it is, and what to do.


@contextmanager
def explaining(owner: str, X: Any, y: Any = None, what: str = "X") -> Iterator[None]:
    """Refuse what must not reach scikit-learn, and say where what it refuses is."""
    refuse_dates(owner, X)
    if is_sparse(X):
        refuse_broken_sparse(X)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # long doubles beyond float64 are found
            yield
    except (ValueError, OverflowError) as error:
        raise _explained(owner, error, X, y, what) from error


def _explained(owner: str, error: Exception, X: Any, y: Any, what: str) -> Exception:
    """Return which entry could not be read as a number."""
    unread = "could not convert" in str(error) or isinstance(error, OverflowError)
    if not unread or is_sparse(X):
        return error
    values = np.asarray(X, dtype=object)
    for row, column in np.ndindex(values.shape) if values.ndim == 2 else ():
        problem = _not_a_number(values[row, column])
        if problem:
            shown = _shown(values[row, column])
            return ValueError(f"{owner}: {shown} in row {row}, column {column} of {what} {problem}")
    for row, value in enumerate(np.asarray(y, dtype=object).ravel()):
        if _not_a_number(value):
            return ValueError(f"{owner}: {_shown(value)} in row {row} of y is not a number")
    return ValueError(f"{owner}: {what} holds an entry that is not a number ({error})")


def _not_a_number(value: Any) -> str:
    """Return why a value is no float64, and the remedy; nothing if it is one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return (
            "is not a number; encode such columns first, e.g. with "
            "sklearn.preprocessing.OneHotEncoder. Kernels of strings take a list of strings: "
            "one column, X[:, 0].tolist()"
        )
    except OverflowError:
        return "is beyond float64; scale that column, or take its logarithm"
    return ""


def _shown(value: Any) -> str:
    """Write a value, cut short where it is long: integers may have thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- refusals ------------------------------------------------------------------------------------
#
# What rows must not hold: dates, twin names, infinities, scales that drown others.

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


# --- kept ----------------------------------------------------------------------------------------
#
# What a fit keeps of rows on a card: copies on the host, unless the machine is to be dropped.

_PASSING = ContextVar("passing", default=False)  # of each thread


_ON_THE_HOST = frozenset({np.ndarray, float, int, bool, str, type(None)})


@contextmanager
def passing_fits() -> Iterator[None]:
    """Let rows that machines keep stay on the card: these are asked for answers, and dropped."""
    token = _PASSING.set(True)
    try:
        yield
    finally:
        _PASSING.reset(token)


def at_rest(value: Any, known: dict[int, Any] | None = None) -> Any:
    """Return what a fit found with its rows in the memory of the processor, wherever they stand.

    Records and sequences are looked into, and replaced where something in them is; whatever two of
    them shared, they share still (`known`). A certificate that waits keeps its rows: it is made
    where they lie, and lets them go (`keeps_card_rows`).

    Examples
    --------
    >>> at_rest((1, "rows"))
    (1, 'rows')
    """
    if type(value) in _ON_THE_HOST:
        return value
    if isinstance(value, CardRows):
        return value if _PASSING.get() else value.on_host()
    if hasattr(value, "keeps_card_rows"):
        rows = getattr(getattr(value, "source", None), "X", None)
        if isinstance(rows, CardRows):
            rows.forget_given()
        return value
    kind: Any = type(value)
    names = _fields(kind)  # type: ignore[arg-type,unused-ignore]  # classes are hashable
    if names is None and kind not in (tuple, list):
        return value
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = value, _rested(value, known, names)  # held, so that no other has its id
    return known[id(value)][1]


def _rested(value: Any, known: dict[int, Any], names: tuple[str, ...] | None) -> Any:
    if names is None:
        parts = [at_rest(part, known) for part in value]
        same = all(map(operator.is_, parts, value))
        return value if same else type(value)(parts)
    held = {name: getattr(value, name, None) for name in names}
    found = {name: at_rest(part, known) for name, part in held.items()}
    changed = {name: part for name, part in found.items() if part is not held[name]}
    return replace(value, **changed) if changed else value


@cache
def _fields(kind: Any) -> tuple[str, ...] | None:
    """Return the names of the fields of a dataclass; None of any other class."""
    if not is_dataclass(kind):
        return None
    return tuple(each.name for each in fields(kind) if each.init)


# --- reading -------------------------------------------------------------------------------------
#
# Rows and targets as they come in: checked once, with errors that say where and what to do.

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
    mixed = _mixed_points(machine, X, "kernel", "kernel_x", "kernels")
    if mixed is not None or is_sequence_data(X):
        rows, y = _training_sequences(machine, X if mixed is None else mixed, y, **target)
        if mixed is not None:
            _remember_mixed(machine, X, mixed, True)
        return rows, y
    accept: dict[str, Any] = {"accept_sparse": False if precomputed else "csr"}
    rows, targets = read_rows(machine, X, y, **accept, **target)
    rows = to_host(rows) if precomputed else choose_backend().placed(rows)
    refuse_nonfinite(machine, rows)
    if not precomputed:
        warn_of_spread(machine, rows)
    return rows, targets


def training_rows_alone(machine: Any, X: Any, precomputed: bool) -> Points:
    """Check training rows that have no targets, and let the machine remember the columns."""
    mixed = _mixed_points(machine, X, "kernel", "kernel_x", "kernels")
    if mixed is not None:
        _remember_mixed(machine, X, mixed, True)
        return mixed
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


def _mixed_points(machine: Any, X: Any, *names: str) -> Points | None:
    """Return rows with text in some columns, if a kernel, by its name, reads columns; else None."""
    given = next((getattr(machine, name) for name in names if hasattr(machine, name)), None)
    if not _reads_columns(given):
        return None
    try:
        return mixed_rows(X)
    except ValueError as error:
        raise ValueError(f"{type(machine).__name__}: {error}") from error


def _reads_columns(kernel: Any) -> bool:
    """Return whether a kernel, written down or not, or each of several, chooses columns first."""
    if isinstance(kernel, list | tuple):
        return bool(kernel) and all(map(_reads_columns, kernel))
    if isinstance(kernel, ApproximateKernel):
        return _reads_columns(kernel.kernel)
    if isinstance(kernel, str) and "[" in kernel:
        return _reads_columns(resolve(kernel))
    if not isinstance(kernel, Kernel) or isinstance(kernel, Precomputed):
        return False
    return reads_columns(kernel.expression())


def _remember_mixed(machine: Any, X: Any, rows: Points, fitting: bool) -> None:
    """Let the machine remember the columns of mixed rows, or compare them with those of the fit."""
    names, width, name = column_names(X), len(rows[0]), type(machine).__name__
    if fitting:
        machine.__dict__.pop("feature_names_in_", None)
        machine.n_features_in_ = width
    elif machine.__dict__.get("n_features_in_") != width:
        raise ValueError(
            f"X has {width} features, but {name} is expecting "
            f"{machine.__dict__.get('n_features_in_', 'strings of')} features as input"
        )
    if names is not None:
        refuse_twin_columns(machine, X)
        _remember_names(machine, names, fitting)


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
    mixed = _mixed_points(machine, X, "kernel_", "kernel_x_")
    if mixed is not None:
        _remember_mixed(machine, X, mixed, False)
        return mixed
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


# --- table columns -------------------------------------------------------------------------------
#
# Columns of a table as a machine sees them: numbers, by the names of the fit.


def numbers_of(machine: Any, table: Table) -> Points:
    """Return the columns of a table as rows of numbers; another kind of column is named."""
    try:
        return table.matrix()
    except TypeError as error:
        raise TypeError(f"{type(machine).__name__}: {error}") from error


def remember_columns(machine: Any, table: Table, fitting: bool) -> None:
    """Let the machine remember the columns of a table, or compare them with those of the fit."""
    if fitting:
        machine.n_features_in_ = len(table.columns)
    _remember_names(machine, table.columns, fitting)


def _remember_names(machine: Any, names: list[str], fitting: bool) -> None:
    known = getattr(machine, "feature_names_in_", None)
    if fitting:
        machine.feature_names_in_ = np.array(names, dtype=object)
    elif known is not None and list(known) != names:
        unseen = [name for name in names if name not in set(known)]
        lacking = [name for name in known if name not in set(names)]
        what = "they come in another order"
        if unseen or lacking:
            what = f"new: {_some(unseen)}; lacking: {_some(lacking)}"
        raise ValueError(
            f"{type(machine).__name__}: the feature names should match those that were passed "
            f"during fit ({what}); choose the columns by name, table[list(names)]"
        )


def _some(names: list[str]) -> str:
    return (", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")) or "none"
