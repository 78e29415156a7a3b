"""Affinities as they come in: rows and a kernel, neighbours only, or a matrix, even sparse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.approximation import ApproximateKernel
from mercer.array_types import Array, Points
from mercer.gram import EdgeWeight, Gram, Need, make_gram, neighbour_graph
from mercer.gram.build import matrix_gram
from mercer.kernels import (
    Gaussian,
    Kernel,
    Laplacian,
    Matern,
    Precomputed,
    RationalQuadratic,
)
from mercer.machines.base.inputs import read_rows, refuse_nonfinite
from mercer.points import is_sparse
from mercer.resources import rows_at_once

_POSITIVE = (Gaussian, Laplacian, Matern, RationalQuadratic)  # nowhere negative, by their formula
_ROUNDING = 1e-12  # of the largest entry
_ENTRIES_AT_ONCE = 1 << 22
_SAMPLE = 16  # rows that tell what single precision is worth

FAINT = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)  # below, digits are lost


def sparse_matrix(machine: Any, X: Any, *, reset: bool) -> Points:
    """Check a sparse affinity matrix, or the sparse rows of new points."""
    rows: Points = read_rows(machine, X, fitting=reset, accept_sparse="csr")
    refuse_nonfinite(machine, rows)
    return rows


def affinity(
    kernel: Kernel,
    X: Points,
    neighbors: int | None,
    weight: EdgeWeight,
    *,
    names: list[str] | None,
    dtype: Any,
) -> Gram:
    """Return the weights between the rows."""
    if is_sparse(X) and isinstance(kernel, Precomputed):
        return matrix_gram(X)
    if neighbors is not None:
        return neighbour_graph(kernel, X, neighbors, weight, names)
    return make_gram(kernel, X, Need.PASSES, names=names, dtype=dtype)


def negative_entry(gram: Gram, kernel: Kernel) -> tuple[int, int, float] | None:
    """Find an entry below zero, beyond rounding: row, column, value."""
    if isinstance(kernel, _POSITIVE) or _stands_for_positive(kernel):
        return None
    if gram.csr is not None:
        return _in_sparse(gram.csr)
    n = gram.shape[0]
    step = rows_at_once(n, max(1, _ENTRIES_AT_ONCE // max(n, 1)))
    floor = -_ROUNDING * float(np.abs(gram.diag()).max(initial=0.0))
    for first in range(0, n, step):
        block = gram.rows(slice(first, first + step))
        if block.min(initial=0.0) < floor:
            row, column = np.unravel_index(int(block.argmin()), block.shape)
            return first + int(row), int(column), float(block[row, column])
    return None


def _stands_for_positive(kernel: Kernel) -> bool:
    """Return whether entries below zero are but the error of features, which is stated."""
    return isinstance(kernel, ApproximateKernel) and isinstance(kernel.kernel, _POSITIVE)


def refuse_negative(machine: Any, gram: Gram) -> None:
    """Raise if a graph to be cut has negative weights, saying where, and what to do instead."""
    found = negative_entry(gram, machine.kernel_)
    if found is None:
        return
    row, column, value = found
    raise ValueError(
        f"Negative values in data passed to {type(machine).__name__}: the similarity of rows {row} "
        f"and {column} is {value:.3g}, but normalization={machine.normalization!r} cuts a graph, "
        "whose weights must not be negative. Use a kernel that is nowhere negative, such as "
        f"Gaussian, in place of {machine.kernel_!r}, or normalization='plain', which takes any "
        "valid kernel"
    )


def refuse_negative_rows(machine: Any, rows: Points) -> None:
    """Raise if affinities of new rows to training rows are negative, as for the training rows."""
    values = rows.data if is_sparse(rows) else rows
    if values.min(initial=0.0) >= 0.0:
        return
    worst = int(values.argmin())
    if is_sparse(rows):
        row = int(np.searchsorted(rows.indptr, worst, side="right")) - 1
    else:
        row = worst // rows.shape[1]
    raise ValueError(
        f"Negative values in data passed to {type(machine).__name__}: row {row} has an affinity of "
        f"{float(values.ravel()[worst]):.3g} to a training row, but weights of a graph that is cut "
        "must not be negative"
    )


def warn_of_strangers(machine: Any, sums: Array) -> None:
    """Warn that new rows have nothing in common with any training row."""
    strangers = np.flatnonzero(~sums.any(axis=1))
    if not len(strangers):
        return
    shown = ", ".join(map(str, strangers[:5])) + (", ..." if len(strangers) > 5 else "")
    warnings.warn(
        f"{type(machine).__name__}: {len(strangers)} new row(s) of X ({shown}) have no similarity "
        "to any training row: nothing tells their place or cluster. Take a wider kernel, or fit "
        "with rows like these.",
        UserWarning,
        stacklevel=4,
    )


def float32_serves(kernel: Kernel, X: Points, names: list[str] | None, most: float) -> bool:
    """Return whether single precision gets no row's sum wrong by more than a share, by a sample.

    Groups far apart lose digits of the distances within. Features stay in double anyway.
    """
    index = np.arange(0, X.shape[0], max(1, X.shape[0] // _SAMPLE))
    rough = make_gram(kernel, X, Need.SAMPLE, names=names, dtype=np.float32)
    if rough.dtype != np.float32:
        return False
    K = make_gram(kernel, X, Need.SAMPLE, names=names).rows(index)
    wrong = np.abs(rough.rows(index) - K).sum(axis=1)
    error = (wrong / np.maximum(np.abs(K).sum(axis=1), np.finfo(float).tiny)).max()
    return bool(error <= most)


def _in_sparse(matrix: Any) -> tuple[int, int, float] | None:
    data = matrix.data
    if data.min(initial=0.0) >= 0.0:
        return None
    worst = int(data.argmin())
    row = int(np.searchsorted(matrix.indptr, worst, side="right")) - 1
    return row, int(matrix.indices[worst]), float(data[worst])


def loops(gram: Gram, *, counted: bool, positive: bool) -> tuple[Array, Array]:
    """Return what is added to the diagonal before cutting, and the degrees after that.

    Points without any edge, or with none that float64 has all digits of, get a loop of weight one,
    which is in no cut and spares every formula the division by zero.

    Parameters
    ----------
    gram : Gram
        The affinity.
    counted : bool
        Whether similarities of points with themselves count in their degrees.
    positive : bool
        Whether every point needs a loop: those without get one of half their degree.

    Returns
    -------
    shift : (n,) array
        What is added.
    degrees : (n,) array
        Row sums with it.
    """
    own = gram.diag()
    shift = np.zeros(len(own)) if counted else -own
    degrees = np.asarray(gram @ np.ones(len(own)), dtype=np.float64) + shift
    alone = degrees < FAINT
    added = np.where(alone, 1.0 - degrees, 0.0)
    if positive:
        bare = ~alone & (own + shift <= 0)
        added = np.where(bare, degrees / 2, added)
    # one where alone, exactly: added to a large negative sum, which is rounding, it would be lost
    return shift + added, np.where(alone, 1.0, degrees + added)
