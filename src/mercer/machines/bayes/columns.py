"""Columns of naive Bayes: values of categories, tables as read, and kinds of columns."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    numbers_of,
    refuse_nonfinite,
    refuse_twin_columns,
    remember_columns,
)
from mercer.machines.base.parameters import refuse
from mercer.resources import require_memory
from mercer.rows.points import as_points, is_sparse, refuse_broken_sparse

# --- values --------------------------------------------------------------------------------------
#
# The values of a categorical attribute, numbered as they appear.

_RANGE = 1024  # integers that are looked up in a list rather than searched for


@dataclass(frozen=True, eq=False)
class Values:
    """Distinct values, each with its number.

    Attributes
    ----------
    listed : tuple
        The values, in the order of their numbers.
    """

    listed: tuple[Any, ...] = ()
    _place: dict[Any, int] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.listed)

    def extended(self, values: Sequence[Any]) -> Values:
        """Add the values that are new, in an order that does not depend on that of the rows."""
        new = [value for value in dict.fromkeys(values) if value not in self._place]
        if not new:
            return self
        listed = self.listed + tuple(sorted(new, key=_rank))
        return Values(listed, {value: i for i, value in enumerate(listed)})

    def numbers(self, values: Sequence[Any]) -> Array:
        """Return the number of each value; the number after the last for values not listed."""
        last = len(self.listed)
        return np.array([self._place.get(value, last) for value in values], dtype=np.intp)


def _rank(value: Any) -> tuple[Any, ...]:
    return (0, value, "") if isinstance(value, Real | np.bool_) else (1, 0.0, repr(value))


def tabulated(
    column: AttributeColumn, labels: Array, weights: Array | None, k: int
) -> tuple[Array, list[Any]]:
    """Count the distinct values of a column in each class: a (k, V) table, and the values.

    Only values with some weight are listed, unless the data declare more.
    """
    labels, weights, codes, values = _coded(column, labels, weights)
    size = len(values)
    flat = np.bincount(labels * size + codes, weights, minlength=k * size) if size else np.zeros(0)
    table = flat.astype(np.float64, copy=False).reshape(k, size)
    if column.declared:
        return table, list(values)
    used = np.flatnonzero(table.any(axis=0))
    return table[:, used], [values[i] for i in used]


def _coded(
    column: AttributeColumn, labels: Array, weights: Array | None
) -> tuple[Array, Array | None, Array, Any]:
    """Return codes of the entries that are there, with their labels and weights, and the values."""
    if column.codes is not None:
        codes, values = column.codes, column.values
        there: Array | None = codes >= 0
    else:
        codes, values, there = _numbered(column)
    if there is not None and not there.all():
        labels, codes = labels[there], codes[there]
        weights = None if weights is None else weights[there]
    return labels, weights, codes, values


def _numbered(column: AttributeColumn) -> tuple[Array, Any, Array | None]:
    """Return codes, the values they stand for, and where entries are there (None: everywhere)."""
    x = np.asarray(column.numbers)
    there = ~np.isnan(x) if x.dtype.kind == "f" else None
    if there is not None and there.all():
        there = None
    known = x if there is None else x[there]
    if not len(known):
        return np.zeros(len(x), dtype=np.intp), [], np.zeros(len(x), dtype=bool)
    low, high = column.bounds or (known.min(), known.max())
    if _is_short(known, low, high):
        codes = _whole(x if there is None else np.where(there, x, low), low)
        return codes, range(int(low), int(high) + 1), there
    values, codes = np.unique(x, return_inverse=True)  # NaN comes last, once
    return codes, values.tolist(), there


def _is_short(x: Array, low: Any, high: Any) -> bool:
    """Return whether values are integers of a short range, for which lists serve as well."""
    if x.dtype.kind == "f":
        if not (abs(low) < 2**53 and abs(high) < 2**53) or float(high) - float(low) > _RANGE:
            return False
        return bool((x == np.rint(x)).all())
    return int(high) - int(low) <= _RANGE


def _whole(x: Array, low: Any) -> Array:
    if x.dtype.kind == "f":
        return np.asarray((x - low).astype(np.intp))
    if x.dtype.kind == "u":
        return np.asarray((x - low).astype(np.intp))
    codes = x.astype(np.intp, copy=False)  # first: a difference of small integers may not be small
    return codes - int(low) if low else codes


def slots(column: AttributeColumn, values: Values) -> tuple[Array, Array]:
    """Return codes of the entries, and the number of the value that each code stands for.

    The number is V for values not listed, V + 1 where an entry is missing.
    """
    missing = len(values) + 1
    if column.codes is not None:
        return column.codes, np.append(values.numbers(column.values), missing)
    codes, distinct, there = _numbered(column)
    known = np.append(values.numbers(distinct), missing)
    return codes if there is None else np.where(there, codes, len(distinct)), known


# --- columns -------------------------------------------------------------------------------------
#
# Tables as they come in: arrays, sparse matrices and data frames, column by column.
#
# A column is numbers (NaN where missing), codes of distinct values (-1 where missing), or both:
# numbers that are declared categories, and integers that float64 cannot hold.

_NUMBERS = re.compile(r"(u?int\d+|float\d*|bool|boolean|double|halffloat)(\[pyarrow\])?")
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_EXACT = 2**53  # integers up to here are exact in float64


@dataclass(frozen=True, eq=False)
class AttributeColumn:
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
class AttributeTable:
    """Rows of attributes, all of them numbers in one matrix, or as columns.

    Attributes
    ----------
    matrix : array, CSR array or None
        All columns, if they are numbers of one type.
    columns : tuple of Column
        The columns otherwise.
    """

    matrix: Points | None
    columns: tuple[AttributeColumn, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Count rows and columns."""
        if self.matrix is not None:
            return int(self.matrix.shape[0]), int(self.matrix.shape[1])
        first = self.columns[0]
        held = first.codes if first.numbers is None else first.numbers
        return len(held), len(self.columns)  # type: ignore[arg-type]

    def column(self, j: int) -> AttributeColumn:
        """Return one column."""
        if self.matrix is None:
            return self.columns[j]
        if is_sparse(self.matrix):
            return AttributeColumn(self.matrix[:, [j]].toarray()[:, 0])
        bounds = None if self._bounds is None else (self._bounds[0][j], self._bounds[1][j])
        return AttributeColumn(self.matrix[:, j], bounds=bounds)

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
            "kinds='count' or 'binary' for columns of these kinds, or smaller batches",
        )
        return picked.toarray()

    def rows(self, index: Array) -> AttributeTable:
        """Return some rows."""
        if self.matrix is not None:
            return AttributeTable(self.matrix[index])
        return AttributeTable(None, tuple(_part(column, index) for column in self.columns))


def _stacked(columns: list[AttributeColumn], n: int) -> Array:
    out = np.empty((n, len(columns)), order="F")
    for j, column in enumerate(columns):
        out[:, j] = column.numbers
    return out


def _part(column: AttributeColumn, index: Array) -> AttributeColumn:
    numbers = None if column.numbers is None else column.numbers[index]
    codes = None if column.codes is None else column.codes[index]
    return AttributeColumn(numbers, codes, column.values, column.declared, column.whole)


def read_table(
    machine: Any, X: Any, fitting: bool, y: Any = "no_validation", *, sparse_too: bool = True
) -> AttributeTable:
    """Check a table; let the estimator remember its columns, or compare them.

    Parameters
    ----------
    machine : estimator
        The estimator that receives the table.
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
        return AttributeTable(None, tuple(read(machine, X, j) for j in range(X.shape[1])))
    if X.dtype == object:
        return AttributeTable(
            None, tuple(_from_objects(machine, X[:, j], j) for j in range(X.shape[1]))
        )
    _refuse_infinity(machine, X)
    return AttributeTable(X)


def _from_table(machine: Any, table: data.Table, fitting: bool) -> AttributeTable:
    """Read a table of `mercer.data`: numbers, and words as strings."""
    if not all(table.shape):
        raise ValueError(f"{type(machine).__name__}: X has shape {table.shape}; it needs rows")
    remember_columns(machine, table, fitting)
    if table.csr is not None:
        rows = numbers_of(machine, table)
        refuse_nonfinite(machine, rows)
        return AttributeTable(rows)
    columns = []
    for j, name in enumerate(table.columns):
        values = table[name]
        if values.dtype.kind == "M":
            raise dates(type(machine).__name__, name)
        read = _as_numbers if values.dtype.kind == "f" else _from_objects
        columns.append(read(machine, values, j))
    return AttributeTable(None, tuple(columns))


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


def _from_frame(machine: Any, X: Any, j: int) -> AttributeColumn:
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


def _from_arrow(machine: Any, X: Any, j: int) -> AttributeColumn:
    column, kind = X.column(j), str(X.schema.field(j).type)
    if kind.startswith(("date", "time", "duration", "month")):
        raise dates(type(machine).__name__, X.column_names[j])
    if _NUMBERS.fullmatch(kind) and not column.null_count:
        return _as_numbers(machine, column.to_numpy(), j)
    return _from_objects(machine, column.to_pylist(), j)


def _from_objects(machine: Any, entries: Any, j: int) -> AttributeColumn:
    """Return numbers where all entries are, else codes."""
    place: dict[Any, int] = {}
    try:
        codes = np.array([place.setdefault(entry, len(place)) for entry in entries], dtype=np.intp)
    except TypeError as error:
        raise _unhashable(machine, j, error) from error
    return _named(machine, codes, list(place), j)


def _named(
    machine: Any, codes: Array, values: list[Any], j: int, *, declared: bool = False
) -> AttributeColumn:
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
        return AttributeColumn(None, codes, kept, declared)
    whole = bool(kept) and all(isinstance(value, Integral | np.bool_) for value in kept)
    column = _as_numbers(machine, np.append(numbers, np.nan)[codes], j)
    if exact and not declared:
        return AttributeColumn(column.numbers, whole=whole)
    return AttributeColumn(column.numbers, codes, kept, declared, whole)


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


def _as_numbers(machine: Any, values: Array, j: int) -> AttributeColumn:
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"Input X contains infinity: the first in row {row}, column {j}. "
            f"{type(machine).__name__} does not accept infinite values; a missing entry is NaN"
        )
    return AttributeColumn(values)


def is_missing(value: Any) -> bool:
    """Return whether an entry stands for nothing: None, NaN, or what pandas writes for it."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType")


def _unhashable(machine: Any, j: int, error: Exception) -> TypeError:
    return TypeError(
        f"{type(machine).__name__}: column {j} of X has an invalid entry ({error}): an "
        "argument must be a string or a real number, or missing (None, NaN)"
    )


# --- kinds ---------------------------------------------------------------------------------------
#
# What kind of attribute each column is: told, or seen from its type and values.
#
# ==========================================  ===========
# text, objects, declared categories          categorical
# true/false, or no number but 0 and 1        binary
# integers, at most 20 different ones         categorical
# a sparse matrix without negative entries    count
# any other numbers                           gaussian
# ==========================================  ===========

KINDS = ("categorical", "binary", "count", "gaussian")
_FEW = 20  # different integers: more of them are measurements
_STEP = 4096  # rows of a block
_LOOK = 256  # rows that rule most columns out before all rows are looked at


def check_kinds(machine: Any) -> None:
    """Require None, a kind, a sequence of kinds, or kinds by column."""
    given = machine.kinds
    if given is None:
        return
    if isinstance(given, str):
        named = [given]
    else:
        try:
            named = list(given.values() if isinstance(given, Mapping) else given)
        except TypeError:
            named = [given]
    if any(not isinstance(kind, str) or kind not in KINDS for kind in named):
        words = ", ".join(map(repr, KINDS))
        refuse(machine, "kinds", given, f"be None, or made of {words}: one, a list, or by column")


def kinds_of(machine: Any, table: AttributeTable) -> Array:
    """Return the kind of each column."""
    given, d = machine.kinds, table.shape[1]
    if isinstance(given, str):
        return np.full(d, given, dtype=object)
    if given is None or isinstance(given, Mapping):
        found = _inferred(table)
        for name, kind in (given or {}).items():
            found[_place(machine, name, d)] = kind
        return found
    if len(given) != d:
        refuse(machine, "kinds", given, f"have {d} entries, one per column")
    return np.array(list(given), dtype=object)


def _place(machine: Any, name: Any, d: int) -> int:
    names = getattr(machine, "feature_names_in_", None)
    if names is not None and name in names:
        return int(np.flatnonzero(names == name)[0])
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < d:
        return int(name)
    raise ValueError(f"{type(machine).__name__}: kinds names the column {name!r}, which X has not")


def _inferred(table: AttributeTable) -> Array:
    X = table.matrix
    if X is None:
        return np.array([_kind(column) for column in table.columns], dtype=object)
    if is_sparse(X):
        negative = X.nnz and X.data.min() < 0
        return np.full(X.shape[1], "gaussian" if negative else "count", dtype=object)
    found = np.full(X.shape[1], "gaussian", dtype=object)
    if X.dtype.kind == "b":
        found[:] = "binary"
    elif X.dtype.kind in "iu":
        found[:] = [_kind(AttributeColumn(X[:, j])) for j in range(X.shape[1])]
    else:
        possible = np.flatnonzero(_binary(X[:_LOOK]))
        for first in range(0, len(X), _STEP):
            block = X[first : first + _STEP]
            every = len(possible) == X.shape[1]
            possible = possible[_binary(block if every else block[:, possible])]
        missing = [j for j in possible if np.isnan(X[:_LOOK, j]).all() and np.isnan(X[:, j]).all()]
        found[possible] = "binary"
        found[missing] = "gaussian"
    return found


def _binary(X: Array) -> Array:
    """Return which columns hold zeros, ones and NaN only."""
    with np.errstate(over="ignore"):
        good = X * X == X  # of numbers, zero and one only
    return np.asarray(good.all(axis=0) if good.all() else (good | np.isnan(X)).all(axis=0))


def _kind(column: AttributeColumn) -> str:
    x = column.numbers
    if x is None or column.declared:
        return "categorical"
    if column.whole:
        return _whole_kind(x[~np.isnan(x)])
    if x.dtype.kind == "b":
        return "binary"
    if x.dtype.kind == "f":
        binary = bool(_binary(x[:_LOOK])) and bool(_binary(x)) and not np.isnan(x).all()
        return "binary" if binary else "gaussian"
    return _whole_kind(x)


def _whole_kind(x: Array) -> str:
    """Return the kind of a column of integers, those that are there."""
    if not len(x):
        return "gaussian"
    lowest, highest = x.min(), x.max()
    if lowest >= 0 and highest <= 1:
        return "binary"
    few = all(_different(part) <= _FEW for part in (x[:_LOOK], x))
    return "categorical" if few else "gaussian"


def _different(x: Array) -> int:
    """Count the different integers of a column."""
    lowest, highest = int(x.min()), int(x.max())
    if highest - lowest > 4 * len(x) + 1024:
        return len(np.unique(x))
    # of narrow types, differences need not fit
    steps = x.astype(np.int64, copy=False) if x.dtype.kind == "i" else x
    return int(np.count_nonzero(np.bincount((steps - lowest).astype(np.intp))))
