"""Errors of rows that cannot be read as numbers: which entry it is, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mercer.machines.base.inputs.refusals import refuse_dates
from mercer.points import is_sparse
from mercer.sparse_format import refuse_broken_sparse


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
