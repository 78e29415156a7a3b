"""The values of a categorical attribute, numbered as they appear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.bayes.columns import Column

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
    column: Column, labels: Array, weights: Array | None, k: int
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
    column: Column, labels: Array, weights: Array | None
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


def _numbered(column: Column) -> tuple[Array, Any, Array | None]:
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


def slots(column: Column, values: Values) -> tuple[Array, Array]:
    """Return codes of the entries, and the number of the value that each code stands for.

    The number is V for values not listed, V + 1 where an entry is missing.
    """
    missing = len(values) + 1
    if column.codes is not None:
        return column.codes, np.append(values.numbers(column.values), missing)
    codes, distinct, there = _numbered(column)
    known = np.append(values.numbers(distinct), missing)
    return codes if there is None else np.where(there, codes, len(distinct)), known
