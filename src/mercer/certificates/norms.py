"""Sizes of errors: norms that neither overflow nor vanish, and maxima that no NaN slips through."""

from __future__ import annotations

from math import isnan

import numpy as np

from mercer.array_types import Array


def norms(A: Array) -> Array:
    """Return the norms of columns, also where squares would overflow or vanish."""
    largest = np.abs(A).max(axis=0, initial=0.0)
    return np.asarray(largest * np.linalg.norm(A / np.where(largest > 0, largest, 1.0), axis=0))


def larger(one: float, other: float) -> float:
    """Return the larger of two errors: infinity where either is no number, unlike `max`.

    Examples
    --------
    >>> max(0.5, float("nan")), larger(0.5, float("nan"))
    (0.5, inf)
    """
    return float("inf") if isnan(one) or isnan(other) else max(one, other)
