"""Bytes and types of stored matrices, and how much of them a memory budget allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Points
from mercer.backends.stored import StoredMatrix
from mercer.expression import bind_columns
from mercer.gram.policy import (
    DESCENT_COPIES,
    FLOAT64_ROWS,
    LARGEST_STORED,
    NARROW,
    PANEL_COLUMNS,
    SHARED_FLOAT64_ROWS,
    SHARED_NARROW_ROWS,
    STIFF,
    WORKING_SET_SHARE,
)
from mercer.gram.source import Source
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import feature_map
from mercer.points import is_objects
from mercer.resources import (
    memory_budget,
    square_side,
    thread_limit,
    within_budget,
)


def stored_dtype(rows: int, serves: Callable[[], bool] = lambda: True) -> Any:
    """Return the type to store K of so many rows in.

    Parameters
    ----------
    rows : int
        Rows of K.
    serves : callable
        Whether float32 is precise enough; asked only where it would save something.

    Returns
    -------
    numpy dtype
    """
    single = rows > FLOAT64_ROWS and serves()
    return np.dtype(np.float32 if single else np.float64)


def dense_bytes(n: int, dtype: Any = np.float64) -> int:
    """Return the size of an n by n matrix."""
    return int(n * n * np.dtype(dtype).itemsize)


def factor_bytes(n: int) -> int:
    """Return what the factor of an n by n matrix takes, with what is copied on the way to it."""
    return dense_bytes(n) + panel_bytes(n)


def panel_bytes(n: int) -> int:
    """Return what panels of a factorisation take beside the matrix."""
    return PANEL_COLUMNS * n * np.dtype(np.float64).itemsize


def box_bytes(points: int, variables: int, dtype: Any) -> int:
    """Return what a box programme on a stored K takes, with what its descent works on."""
    return dense_bytes(points, dtype) + descent_bytes(variables, dtype)


def descent_bytes(variables: int, dtype: Any) -> int:
    """Return what a descent takes beside K: smaller matrices, and a factor for Newton's steps."""
    return int(DESCENT_COPIES * dense_bytes(variables, dtype))


def descents_at_once(K: StoredMatrix, variables: int) -> int:
    """Return how many descents on a stored K, one for each thread, fit the budget beside it."""
    if K.descends_elsewhere:
        return sys.maxsize  # not in the memory that the budget is about
    each, threads = descent_bytes(variables, K.dtype), thread_limit()
    if within_budget(K.nbytes + threads * each):
        return sys.maxsize  # threads take the next when they are done with one
    return max(1, (memory_budget() - K.nbytes) // max(1, each))


def largest_set(dtype: Any) -> int:
    """Return the most variables of a working set whose K, and a descent on it, fit the budget."""
    copies = 2 + DESCENT_COPIES  # K twice: rows that stand for several variables are copied
    return square_side(copies * np.dtype(dtype).itemsize, WORKING_SET_SHARE)


def stored_below(
    kernel: Kernel, X: Points, n: int, names: list[str] | None, budget: float
) -> float:
    """Return the cost below which all box programmes of a grid descend on one stored K.

    Descents on it have one lowest point to end at, wherever they start.

    Parameters
    ----------
    kernel : Kernel
        What similarity is.
    X : Points
        The points.
    n : int
        How many of them there are, in all folds together.
    names : list of str or None
        Names of the columns of X.
    budget : float
        Bytes that may be taken.

    Returns
    -------
    float
        Zero where fits of all costs would do otherwise, infinity where none would.
    """
    dtype = np.dtype(np.float64 if n <= SHARED_FLOAT64_ROWS else np.float32)
    if n > LARGEST_STORED or box_bytes(n, n, dtype) > budget or not kernel.psd:
        return 0.0
    if isinstance(kernel, Precomputed) or is_objects(X):
        return np.inf
    expression = bind_columns(kernel.expression(), names)
    features = feature_map(expression, X.shape[1])
    if features is None:
        return np.inf
    if features.dimension <= NARROW and n >= SHARED_NARROW_ROWS:
        return 0.0
    largest = float(Source(expression, X).diag().max(initial=0.0))
    return np.inf if features.dimension >= n or largest == 0 else STIFF / largest
