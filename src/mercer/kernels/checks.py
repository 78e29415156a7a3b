"""Checks of kernel parameters: numbers, arrays, matrices, and columns.

Each returns the value as plain numbers or raises `ValueError` or `TypeError`. The message names the
kernel, the parameter, the value and the accepted values.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.array_types import Array, FrozenArray

_LARGEST = 10**6  # degrees and lengths; beyond, powers of any number but 1 leave float64


def real(owner: str, name: str, value: Any) -> float:
    """Return a finite float."""
    number = _number(value)
    if number is None or not np.isfinite(number):
        raise ValueError(f"{owner}: {name}={value!r} must be a finite number")
    return number


def positive(owner: str, name: str, value: Any) -> float:
    """Return a finite float above zero."""
    number = _number(value)
    if number is None or not 0.0 < number < np.inf:
        raise ValueError(f"{owner}: {name}={value!r} must be a positive, finite number")
    return number


def positive_or_infinite(owner: str, name: str, value: Any) -> float:
    """Return a float above zero; infinity is meant."""
    number = _number(value)
    if number is None or not number > 0.0:
        raise ValueError(f"{owner}: {name}={value!r} must be a positive number, or infinity")
    return number


def nonnegative(owner: str, name: str, value: Any, reason: str = "") -> float:
    """Return a finite float, zero or above."""
    number = _number(value)
    if number is None or not 0.0 <= number < np.inf:
        because = f": {reason}" if reason else ""
        raise ValueError(f"{owner}: {name}={value!r} must be a finite number >= 0{because}")
    return number


def fraction(owner: str, name: str, value: Any) -> float:
    """Return a float in (0, 1]."""
    number = _number(value)
    if number is None or not 0.0 < number <= 1.0:
        raise ValueError(f"{owner}: {name}={value!r} must be above 0 and at most 1")
    return number


def whole(owner: str, name: str, value: Any, reason: str = "") -> int:
    """Return an integer from one to a million; 2.0 counts as 2."""
    number = _number(value)
    if number is None or not number >= 1.0 or number != np.floor(number) or number == np.inf:
        because = f": {reason}" if reason else ""
        raise ValueError(f"{owner}: {name}={value!r} must be an integer >= 1{because}")
    if number > _LARGEST:
        raise ValueError(f"{owner}: {name}={value!r} must be at most {_LARGEST}")
    return int(value)


def positive_each(owner: str, name: str, value: Any) -> float | FrozenArray:
    """Return one positive float, or a vector of them, one per feature."""
    if _number(value) is not None:
        return positive(owner, name, value)
    vector = _array(owner, name, value)
    if vector.array.ndim != 1 or not len(vector) or not np.all(vector.array > 0):
        raise ValueError(
            f"{owner}: {name}={value!r} must be a positive number, or a list with one per feature"
        )
    return vector


def reciprocal_each(owner: str, name: str, value: Any) -> float | Array:
    """Return 1 / value, for the scale of a decay that is given by its rate."""
    rate = positive_each(owner, name, value)
    return 1.0 / (rate.array if isinstance(rate, FrozenArray) else rate)


def nonnegative_list(owner: str, name: str, value: Any, reason: str) -> FrozenArray:
    """Return a vector of floats, zero or above."""
    vector = _array(owner, name, value)
    if vector.array.ndim != 1 or not len(vector) or not np.all(vector.array >= 0):
        raise ValueError(f"{owner}: {name}={value!r} must be a list of numbers >= 0: {reason}")
    return vector


def psd_matrix(owner: str, name: str, value: Any) -> FrozenArray:
    """Return a symmetric positive semidefinite matrix."""
    matrix = _array(owner, name, value)
    A = matrix.array
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
        raise ValueError(f"{owner}: {name} has shape {A.shape}; it must be a square matrix")
    unit = A / (np.abs(A).max() or 1.0)  # so that no size of A overflows below
    if np.abs(unit - unit.T).max() > 1e-10:
        raise ValueError(f"{owner}: {name} must be symmetric; use ({name} + {name}.T) / 2")
    eigenvalues = np.linalg.eigvalsh((unit + unit.T) / 2)
    if eigenvalues[0] < -1e-10 * eigenvalues[-1]:
        smallest = eigenvalues[0] * np.abs(A).max()
        raise ValueError(
            f"{owner}: {name} must be positive semidefinite, or x'{name}y is not a kernel; its "
            f"smallest eigenvalue is {smallest:.3g}. Add a multiple of the identity, or use B.T @ B"
        )
    return matrix


def as_columns(columns: Any) -> tuple[int | str, ...]:
    """Read ints, names, a slice, a mask or a single one of them into a tuple of ints and names.

    Examples
    --------
    >>> as_columns(slice(0, 3))
    (0, 1, 2)
    >>> as_columns("age")
    ('age',)
    """
    if isinstance(columns, slice):
        chosen: tuple[int | str, ...] = tuple(_range(columns))
    elif isinstance(columns, str | Integral):
        chosen = (_column(columns),)
    elif isinstance(columns, Iterable) and getattr(columns, "ndim", 1) > 0:
        chosen = _several(list(columns))
    else:
        raise _refusal(columns)
    if not chosen:
        raise ValueError(f"on: columns={columns!r} chooses no column; name at least one")
    return chosen


def _range(columns: slice) -> range:
    start, stop, step = columns.start or 0, columns.stop, columns.step or 1
    if stop is None or start < 0 or stop < 0 or step < 1:
        raise ValueError(
            f"on: columns={columns!r} must have an end, and count forward from the first column, "
            "since a kernel does not know how many columns X will have"
        )
    return range(start, stop, step)


def _several(columns: list[Any]) -> tuple[int | str, ...]:
    if columns and all(isinstance(c, bool | np.bool_) for c in columns):
        return tuple(int(i) for i in np.flatnonzero(columns))
    return tuple(_column(c) for c in columns)


def _column(column: Any) -> int | str:
    if isinstance(column, str):
        return str(column)
    if isinstance(column, bool) or not isinstance(column, Integral):
        raise _refusal(column)
    return int(column)


def _refusal(column: Any) -> TypeError:
    return TypeError(
        f"on: column {column!r} must be a number or a name; columns are given as a list of "
        "these, a slice, a mask, or a single one"
    )


def _number(value: Any) -> float | None:
    is_scalar = isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if not is_scalar:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):  # an object array, or 10**400
        return None


def _array(owner: str, name: str, value: Any) -> FrozenArray:
    if isinstance(value, FrozenArray):
        return value
    try:
        array = FrozenArray(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{owner}: {name}={value!r} must hold numbers only") from None
    if not np.all(np.isfinite(array.array)):
        raise ValueError(f"{owner}: {name} holds values that are not finite")
    return array
