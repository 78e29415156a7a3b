"""Rows with missing entries as they come in: NaN where a machine allows it, infinity never."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.points import is_sparse


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
