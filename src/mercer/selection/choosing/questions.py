"""Rows and answers as `choose` takes them: checked, in a form to choose from, a sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.data import Table
from mercer.machines.base.parameters import is_real
from mercer.points import is_sparse
from mercer.selection.running.rows import count_rows, indexable, shuffled

_FEW = 10  # rows of each class that a sample has at least


def answers(y: Any) -> Array:
    """Return labels or targets as an array; objects that are all numbers become numbers."""
    found: Array = np.asarray(y)
    if found.ndim == 1 and found.dtype.kind in "fO":
        lacking = [k for k, one in enumerate(found.tolist()) if _is_missing(one)]
        if lacking:
            raise ValueError(
                f"choose: y has {len(lacking)} missing entries, the first in row {lacking[0]}; "
                "leave these rows out"
            )
        if found.dtype == object and all(is_real(one) for one in found):
            return np.array(found.tolist())
    return found


def _is_missing(entry: Any) -> bool:
    nothing = entry is None or type(entry).__name__ == "NAType"  # of pandas, which may not be there
    return nothing or (is_real(entry) and bool(np.isnan(float(entry))))


def refuse(X: Any, y: Array, machine: Any, max_rows: int, scoring: Any) -> None:
    """Raise if rows, answers or options are none that kernels can be compared on."""
    n = count_rows(X)
    if y.ndim != 1 or n != len(y) or not n:
        raise ValueError(
            f"choose: X has {n} rows and y has shape {y.shape}; one entry per row, and at least "
            "one row, is needed"
        )
    if isinstance(machine, type) or not hasattr(machine, "get_params"):
        raise TypeError(f"choose: machine={machine!r} must be an estimator, such as SVC()")
    if isinstance(scoring, list | tuple | set | frozenset | dict):
        raise ValueError(f"choose: scoring={scoring!r} must be one score, or None")
    if "kernel" not in machine.get_params():
        raise ValueError(
            f"choose: machine={type(machine).__name__} has no parameter `kernel` to choose"
        )
    if not is_real(max_rows) or max_rows % 1 or max_rows < 10:
        raise ValueError(f"choose: max_rows={max_rows!r} must be a whole number of at least 10")


def sample(y: Array, labels: bool, most: int, seed: int) -> tuple[Array, list[str]]:
    """Return rows to compare on, with every class in its share, and a few of each."""
    n, most = len(y), int(most)
    if n <= most:
        return np.arange(n), []
    order = shuffled(np.random.default_rng(seed), n, y if labels else None, _FEW)
    note = f"Compared on {most} of {n} rows (max_rows); fitted to all of them."
    return np.sort(order[:most]), [note]


def rows_of(X: Any) -> Any:
    """Return rows in a form that can be chosen from; mixed columns and gaps make a table."""
    if isinstance(X, Table):
        return X
    if hasattr(X, "columns"):
        return Table.of(X)
    X = indexable(X)
    if not are_strings(X) and (_are_objects(X) or _have_gaps(X)):
        return Table.of(X)
    return X


def are_strings(X: Any) -> bool:
    """Return whether every row is a string."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(row, str) for row in X)
    return getattr(X, "ndim", 2) == 1 and all(isinstance(row, str) for row in X)


def _are_objects(X: Any) -> bool:
    if hasattr(X, "dtype"):
        return bool(X.dtype.kind in "OUS")
    return bool(np.asarray(X, dtype=object).ndim == 2) and any(
        isinstance(entry, str) or entry is None for row in X for entry in row
    )


def _have_gaps(X: Any) -> bool:
    """Return whether an array of numbers has missing entries."""
    return not is_sparse(X) and bool(np.isnan(np.asarray(X, dtype=np.float64)).any())
