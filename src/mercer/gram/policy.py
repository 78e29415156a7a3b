"""Thresholds for the storage of K and its precision, each with its reason, and sizes in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.array_types import Points
from mercer.backends.contract import StoredMatrix
from mercer.expression import bind_columns
from mercer.gram.evaluated import Source
from mercer.kernels import Kernel, Precomputed
from mercer.kernels.features import feature_map
from mercer.resources import memory_budget, square_side, thread_limit, within_budget
from mercer.rows.points import is_objects

# --- policy --------------------------------------------------------------------------------------
#
# Storage and precision are decided by them in `build`, algorithms in
# `solvers/dispatch.py`. Times were measured on one core of a server, best of several, 20 columns,
# Gaussian kernel unless said otherwise; thresholds are rounded, as times move by half between
# machines.


# --- precision -----------------------------------------------------------------------------------

# Rows up to which K is stored in float64: single precision saves nothing worth its care. A fit of
# SVC takes 26 ms in float64 and 20 ms in float32 at 1000 rows, 140 and 85 ms at 4000.
FLOAT64_ROWS = 1000

# The same for a matrix that all folds and costs of a grid descend on. Time does not ask for another
# number (12 points in 5 folds: 59 ms in float32 and 58 in float64 at 600 rows, 112 and 82 at 950);
# tuned scores do, as another precision moves answers within their tolerance.
SHARED_FLOAT64_ROWS = 500

# Times all entries of such a matrix: what folds ask for in float64 before a copy of K in float64 is
# worth its memory.
FLOAT64_COPY = 4.0

# Kernel values that float32 holds with all digits, with room for sums and differences of them.
FLOAT32_RANGE = 1e-30, 1e30

# The least tolerance of eigenpairs that a float32 K may serve. Solvers of principal components go
# on in float64 where it does not; those of cuts do not, and ask for ten times as much.
FLOAT32_TOL_COMPONENTS = 1e-6
FLOAT32_TOL_CUTS = 1e-5

# Of the tolerance: what float32 may get wrong in the row sums of a graph, found by a sample.
FLOAT32_SHARE = 0.25

# Of the trace: what must be scatter about the mean. Where less is, distances to means are small
# differences of large numbers, and float32 leaves too few digits of them.
FLOAT32_SCATTER = 0.05


# --- descents on K, or work with features --------------------------------------------------------

# f moves by this much with one coefficient at its bound, C k(x, x): pair steps on K crawl from here
# on, and an interior point method on features does not care.
STIFF = 1e4

# Below this C k(x, x) pair steps on a K that several programmes share beat an interior point method
# for each, where none has more than this part of the rows. Processor time of the linear kernel at
# C = 1: letter, 1500 rows, 0.07 s and 1.4 s; pendigits, 5000 rows, 0.03 s and 0.40 s.
MILD = 1e3
PART_OF_ROWS = 0.5

# Rows of a box programme whose K is stored, where it fits the budget, without a look at how many of
# them matter. Beyond, a solver finds that out on a sample, and stores K if many do.
STORED_UNSEEN = 5_000

# Rows up to which it stores K at once then. Beyond, storing costs more than it saves (fresh pages
# alone: a second for each 20000 rows squared), until entries have been evaluated twice over: on 16
# cores and 100 GB, 92962 rows like covertype's took 3.1 s by working sets, 5.6 s with K at once.
LARGEST_STORED = 30_000

# Features up to which F'F is formed and factored in less time than it saves.
SQUARED = 2000

# Features up to which an interior point method on F'F beats descents on a stored K, too, ...
NARROW = 500
# ... with as many rows at least: below, those are done before F'F pays, ...
NARROW_ROWS = 1000
# ... and rows of all folds together when a grid is tuned. With 1000 here as well, five costs of a
# linear SVC in 5 folds take 44 ms at 700 rows in place of 225 (SVR: 33 in place of 252), but scores
# move within the tolerance of the fits (those of SVR by up to 6e-4).
SHARED_NARROW_ROWS = 500

# Rows for each feature, at least, for box programmes: with fewer K is as small as F'F.
ROWS_PER_FEATURE = 4
# The same where a factor of F'F serves all penalties of a fold.
SHARED_ROWS_PER_FEATURE = 2

# Rows of a stiff programme whose features are found by decomposing K: eigh takes half a second at
# 1000 rows, and grows with the cube.
DECOMPOSED_ROWS = 1000

# Times an entry of K: what a nonzero of a sparse feature costs in a product.
NONZERO_COST = 10

# Entries of sparse features up to which they are written out where work with dense ones is shorter:
# 40 MB.
WRITTEN_OUT = 5_000_000


# --- LAPACK or iterations ------------------------------------------------------------------------

# Rows up to which LAPACK is done before an iteration would start, be it for a few pairs or for all:
# ten of 600 rows take 37 ms, and 49 ms by Lanczos steps; of 1000 rows 142 and 72 ms.
LAPACK_ROWS = 600

# Rows up to which K is factored to show that it is positive semidefinite: 6000 take seconds, and
# the time grows with the cube.
PROVEN_ROWS = 6000


# --- rows that are too many ---------------------------------------------------------------------

# Rows beyond which nobody is given an exact answer unasked where K is not stored: one product alone
# is 10^10 kernel evaluations, ten seconds, and answers take dozens.
LARGEST_UNASKED = 100_000


# --- memory --------------------------------------------------------------------------------------

# Rows of which nobody is refused a handful of matrices: eight are 64 MB.
FREE_ROWS = 1000

# Times K between all variables: the smaller matrices that a descent goes on with, and the factor of
# Newton's steps; the most that was seen is 1.6, where all variables are free.
DESCENT_COPIES = 1.7

# Columns that a factorisation copies at a time, all threads together.
PANEL_COLUMNS = 800

# Of the budget: K between the rows of a working set, and a descent on it.
WORKING_SET_SHARE = 0.4


# --- sizes ---------------------------------------------------------------------------------------
#
# Bytes and types of stored matrices, and how much of them a memory budget allows.


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
