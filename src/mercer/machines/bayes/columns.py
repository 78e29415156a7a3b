"""Tables as they come in: arrays, sparse matrices and data frames, column by column.

A column is numbers (NaN where missing), codes of distinct values (-1 where missing), or both:
numbers that are declared categories, and integers that float64 cannot hold.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from mercer import data
from mercer.array_types import Array, Points
from mercer.machines.base.inputs import (
    dates,
    refuse_nonfinite,
    refuse_twin_columns,
)
from mercer.machines.base.table_columns import numbers_of, remember_columns
from mercer.points import as_points, is_sparse
from mercer.resources import require_memory
from mercer.sparse_format import refuse_broken_sparse

_NUMBERS = re.compile(r"(u?int\d+|float\d*|bool|boolean|double|halffloat)(\[pyarrow\])?")
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_EXACT = 2**53  # integers up to here are what they were as float64


@dataclass(frozen=True, eq=False)
class Column:
    """One attribute of all rows.

    Attributes
    ----------
    numbers : (n,) array or None
        Its values, if they are numbers; NaN where missing.
    codes : (n,) int array or None
        The place of each in `values`, -1 where missing; if given, they tell values apart.
    values : list
        The distinct values.
    declared : bool
        Whether `values` is the complete list, given with the data.
    whole : bool
        Whether all numbers are integers by type, held as float64 because entries are missing.
    bounds : pair of int or None
        The smallest and the largest number, where known.
    """

    numbers: Array | None
    codes: Array | None = None
    values: Sequence[Any] = ()
    declared: bool = False
    whole: bool = False
    bounds: tuple[Any, Any] | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of attributes, all of them numbers in one matrix, or as columns.

    Attributes
    ----------
    matrix : array, CSR array or None
        All columns, if they are numbers of one type.
    columns : tuple of Column
        The columns otherwise.
    """

    matrix: Points | None
    columns: tuple[Column, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Count rows and columns."""
        if self.matrix is not None:
            return int(self.matrix.shape[0]), int(self.matrix.shape[1])
        first = self.columns[0]
        held = first.codes if first.numbers is None else first.numbers
        return len(held), len(self.columns)  # type: ignore[arg-type]

    def column(self, j: int) -> Column:
        """Return one column."""
        if self.matrix is None:
            return self.columns[j]
        if is_sparse(self.matrix):
            return Column(self.matrix[:, [j]].toarray()[:, 0])
        bounds = None if self._bounds is None else (self._bounds[0][j], self._bounds[1][j])
        return Column(self.matrix[:, j], bounds=bounds)

    @cached_property
    def _bounds(self) -> tuple[Array, Array] | None:
        """Return the extremes of all columns of integers; one by one takes four times as long."""
        if self.matrix is None or self.matrix.dtype.kind not in "iu":
            return None
        return self.matrix.min(axis=0), self.matrix.max(axis=0)

    def block(self, which: Array, sparse_too: bool = True) -> Points:
        """Return some columns, all of them numbers, as a matrix."""
        if self.matrix is None:
            return _stacked([self.columns[j] for j in which], self.shape[0])
        held = self.matrix
        picked = held if len(which) == held.shape[1] else held[:, which]
        if not is_sparse(picked) or sparse_too:
            return picked
        require_memory(
            8 * picked.shape[0] * picked.shape[1],
            f"NaiveBayes: {picked.shape[1]} columns of measurements as a dense matrix",
            "kinds='count' or 'binary' where that is what they are, or smaller batches",
        )
        return picked.toarray()

    def rows(self, index: Array) -> Table:
        """Return some rows."""
        if self.matrix is not None:
            return Table(self.matrix[index])
        return Table(None, tuple(_part(column, index) for column in self.columns))


def _stacked(columns: list[Column], n: int) -> Array:
    out = np.empty((n, len(columns)), order="F")
    for j, column in enumerate(columns):
        out[:, j] = column.numbers
    return out


def _part(column: Column, index: Array) -> Column:
    numbers = None if column.numbers is None else column.numbers[index]
    codes = None if column.codes is None else column.codes[index]
    return Column(numbers, codes, column.values, column.declared, column.whole)


def read_table(
    machine: Any, X: Any, fitting: bool, y: Any = "no_validation", *, sparse_too: bool = True
) -> Table:
    """Check a table, and let the machine remember its columns, or compare them.

    Parameters
    ----------
    machine : estimator
        Whose table it is.
    X : array-like, sparse matrix or data frame
        Rows.
    fitting : bool
        Whether to remember the columns.
    y : array-like, optional
        Labels, only looked at for being there.
    sparse_too : bool
        Whether the matrix may be sparse.
    """
    if isinstance(X, data.Table):
        return _from_table(machine, X, fitting)
    refuse_twin_columns(machine, X)
    arrow = hasattr(X, "column_names") and hasattr(X, "schema")
    frame = arrow or (hasattr(X, "columns") and hasattr(X, "dtypes"))
    if not frame:
        X = _checked(machine, X, sparse_too)
    elif not all(X.shape):
        what = "feature" if X.shape[0] else "sample"
        raise ValueError(
            f"{type(machine).__name__}: X has 0 {what}(s) (shape={tuple(X.shape)}) while a minimum "
            "of 1 is required."
        )
    validate_data(machine, X, y, reset=fitting, skip_check_array=True)
    if frame:
        read = _from_arrow if arrow else _from_frame
        return Table(None, tuple(read(machine, X, j) for j in range(X.shape[1])))
    if X.dtype == object:
        return Table(None, tuple(_from_objects(machine, X[:, j], j) for j in range(X.shape[1])))
    _refuse_infinity(machine, X)
    return Table(X)


def _from_table(machine: Any, table: data.Table, fitting: bool) -> Table:
    """Take a table of `mercer.data`: numbers, and words as what they are."""
    if not all(table.shape):
        raise ValueError(f"{type(machine).__name__}: X has shape {table.shape}; it needs rows")
    remember_columns(machine, table, fitting)
    if table.csr is not None:
        rows = numbers_of(machine, table)
        refuse_nonfinite(machine, rows)
        return Table(rows)
    columns = []
    for j, name in enumerate(table.columns):
        values = table[name]
        if values.dtype.kind == "M":
            raise dates(type(machine).__name__, name)
        read = _as_numbers if values.dtype.kind == "f" else _from_objects
        columns.append(read(machine, values, j))
    return Table(None, tuple(columns))


def _checked(machine: Any, X: Any, sparse_too: bool) -> Any:
    """Return a two-dimensional array, of numbers or objects, or a CSR array."""
    if is_sparse(X):
        refuse_broken_sparse(X)
    else:
        X = np.asarray(X) if hasattr(X, "__array__") else _from_lists(X)
        if X.dtype.kind in "US":
            X = X.astype(object)
        if X.dtype.kind in "mM":
            raise dates(type(machine).__name__, 0)
    accept = "csr" if sparse_too else False
    options: dict[str, Any] = {"accept_sparse": accept, "ensure_all_finite": False, "dtype": None}
    X = check_array(X, estimator=machine, input_name="X", **options)
    if is_sparse(X):
        X = as_points(X)
    elif X.dtype in (np.float16, np.longdouble):
        with np.errstate(over="ignore"):  # beyond float64 is infinity, which is found later
            X = X.astype(np.float64)
    return X


def _from_lists(X: Any) -> Array:
    plain = np.asarray(X)
    # NumPy would turn the numbers of a list that also holds text into text
    return np.array(X, dtype=object) if plain.dtype.kind in "US" else plain


def _refuse_infinity(machine: Any, X: Points) -> None:
    if is_sparse(X):
        refuse_nonfinite(machine, X)  # an entry that is missing in a sparse row cannot be told
    elif X.dtype.kind == "f" and np.isinf(X).any():
        refuse_nonfinite(machine, np.where(np.isnan(X), 0.0, X))


def _from_frame(machine: Any, X: Any, j: int) -> Column:
    column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
    kind = str(column.dtype).lower()
    if kind.startswith(("date", "time", "duration", "period")):
        raise dates(type(machine).__name__, X.columns[j])
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):
        codes = np.asarray(column.cat.codes, dtype=np.intp)
        return _named(machine, codes, column.cat.categories.tolist(), j, declared=True)
    plain = _NUMBERS.fullmatch(kind) is not None
    in_pandas = hasattr(column, "iloc")
    missing = plain and bool(column.hasnans if in_pandas else column.null_count())
    if plain and in_pandas and not (missing and "int" in kind):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan) if missing else column
        return _as_numbers(machine, np.asarray(values), j)
    if plain and not in_pandas and not missing:
        return _as_numbers(machine, column.to_numpy(), j)
    if kind.startswith("enum"):  # of polars: all values are declared
        codes = column.to_physical().cast(int).fill_null(-1).to_numpy()
        return _named(machine, codes, column.dtype.categories.to_list(), j, declared=True)
    if hasattr(column, "factorize"):
        try:
            codes, values = column.factorize()
        except TypeError as error:
            raise _unhashable(machine, j, error) from error
        return _named(machine, np.asarray(codes, dtype=np.intp), list(values), j)
    return _from_objects(machine, column.to_list(), j)


def _from_arrow(machine: Any, X: Any, j: int) -> Column:
    column, kind = X.column(j), str(X.schema.field(j).type)
    if kind.startswith(("date", "time", "duration", "month")):
        raise dates(type(machine).__name__, X.column_names[j])
    if _NUMBERS.fullmatch(kind) and not column.null_count:
        return _as_numbers(machine, column.to_numpy(), j)
    return _from_objects(machine, column.to_pylist(), j)


def _from_objects(machine: Any, entries: Any, j: int) -> Column:
    """Return numbers where all entries are, else codes."""
    place: dict[Any, int] = {}
    try:
        codes = np.array([place.setdefault(entry, len(place)) for entry in entries], dtype=np.intp)
    except TypeError as error:
        raise _unhashable(machine, j, error) from error
    return _named(machine, codes, list(place), j)


def _named(
    machine: Any, codes: Array, values: list[Any], j: int, *, declared: bool = False
) -> Column:
    """Take missing values out of a list of distinct ones; numbers become numbers again."""
    there = np.array([not is_missing(value) for value in values], dtype=bool)
    kept = [value for value, is_there in zip(values, there, strict=True) if is_there]
    if any(isinstance(value, complex) and not isinstance(value, Real) for value in kept):
        raise ValueError(f"Complex data not supported: {type(machine).__name__}, column {j} of X")
    if any(isinstance(value, _DATES) for value in kept):
        raise dates(type(machine).__name__, j)
    new = np.where(there, np.cumsum(there) - 1, -1)
    codes = np.append(new, -1)[codes]
    numbers, exact = _floats(kept)
    if numbers is None:
        return Column(None, codes, kept, declared)
    whole = bool(kept) and all(isinstance(value, Integral | np.bool_) for value in kept)
    column = _as_numbers(machine, np.append(numbers, np.nan)[codes], j)
    if exact and not declared:
        return Column(column.numbers, whole=whole)
    return Column(column.numbers, codes, kept, declared, whole)


def _floats(values: list[Any]) -> tuple[Array | None, bool]:
    """Return values as float64 if they are numbers that fit, and whether integers are exact."""
    if not all(isinstance(value, Real | np.bool_ | Decimal) for value in values):
        return None, True
    try:
        with np.errstate(over="ignore"):
            numbers = np.array([float(value) for value in values], dtype=np.float64)
    except OverflowError:  # an integer beyond all floats is a name
        return None, True
    large = [v for v in values if isinstance(v, Integral) and abs(int(v)) > _EXACT]
    return numbers, not large


def _as_numbers(machine: Any, values: Array, j: int) -> Column:
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"Input X contains infinity: the first in row {row}, column {j}. "
            f"{type(machine).__name__} does not accept infinite values; a missing entry is NaN"
        )
    return Column(values)


def is_missing(value: Any) -> bool:
    """Return whether an entry stands for nothing: None, NaN, or what pandas writes for it."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType")


def _unhashable(machine: Any, j: int, error: Exception) -> TypeError:
    return TypeError(
        f"{type(machine).__name__}: column {j} of X holds an entry that is no value ({error}): an "
        "argument must be a string or a real number, or missing (None, NaN)"
    )
