"""Similarity graphs of labeled and unlabeled samples, and targets with missing entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer.array_types import Array, Points
from mercer.gram import EdgeWeight, Gram
from mercer.machines.base.parameters import check_choice, check_optional_count, refuse
from mercer.machines.base.targets import classes_of
from mercer.machines.clustering.graph_cut_relaxation import affinity, negative_entry, sparse_matrix
from mercer.rows.points import is_sparse, own, row_count

# --- graph ---------------------------------------------------------------------------------------
#
# The graph of similarities of all samples.

AUTO = 10  # neighbours, or all others where there are fewer
_WEIGHTS = {"binary": EdgeWeight.BINARY, "kernel": EdgeWeight.KERNEL}


def check_graph(machine: Any) -> None:
    """Require neighbors="auto", None or a count, and weights of edges."""
    if not (isinstance(machine.neighbors, str) and machine.neighbors == "auto"):
        if isinstance(machine.neighbors, str):
            refuse(machine, "neighbors", machine.neighbors, "be 'auto', None or a positive integer")
        check_optional_count(machine, "neighbors")
    check_choice(machine, "weights", tuple(_WEIGHTS))


def rows_and_labels(machine: Any, X: Any, y: Any, **target: Any) -> tuple[Points, Array]:
    """Check training rows, or a sparse matrix of affinities, and what stands beside them."""
    if machine._is_precomputed() and is_sparse(X):
        rows = sparse_matrix(machine, X, reset=True)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(rows, labels)
        return rows, np.asarray(labels)
    points, targets = machine._training_points(X, y, **target)
    kept = points if machine._is_precomputed() else own(points)  # to join new rows to them
    return kept, targets


def graph_of(machine: Any, X: Points) -> Gram:
    """Return the graph of the rows, in the machine's kernel.

    Parameters
    ----------
    machine : KernelMachine
        With `kernel_`, `neighbors` and `weights`.
    X : Points
        All rows.
    """
    n, neighbors = row_count(X), machine.neighbors
    given = machine._is_precomputed() and is_sparse(X)
    if isinstance(neighbors, str):
        neighbors = None if given or n == 1 else min(AUTO, n - 1)
    elif neighbors is not None and given:
        refuse(machine, "neighbors", neighbors, "be None for a sparse affinity, a graph as it is")
    elif neighbors is not None and neighbors >= n:
        refuse(machine, "neighbors", neighbors, f"be below the number of rows: n_samples={n}")
    weight = _WEIGHTS[machine.weights]
    names = machine._column_names()
    graph = affinity(machine.kernel_, X, neighbors, weight, names=names, dtype=np.float64)
    _refuse_negative(machine, graph)
    return graph


def _refuse_negative(machine: Any, graph: Gram) -> None:
    found = negative_entry(graph, machine.kernel_)
    if found is None:
        return
    row, column, value = found
    raise ValueError(
        f"Negative values in data passed to {type(machine).__name__}: the similarity of rows {row} "
        f"and {column} is {value:.3g}, but weights of a graph must not be negative. Use "
        "weights='binary' with neighbors, or a kernel that is nowhere negative, such as Gaussian, "
        f"in place of {machine.kernel_!r}"
    )


# --- missing targets -----------------------------------------------------------------------------
#
# Samples with and without a target.


def check_unlabelled(machine: Any) -> None:
    """Require an integer or a string."""
    value = machine.unlabelled
    if isinstance(value, bool) or not isinstance(value, int | str | np.integer | np.str_):
        refuse(machine, "unlabelled", value, "be an integer or a string, the mark in y")


def classes_and_codes(machine: Any, y: Array) -> tuple[Array, Array, Array]:
    """Return the classes, the class of each row (-1 for none), and which rows have a label.

    Where all rows but those with the mark have one label, the mark is a label itself: a classifier
    needs two, and y of -1 and 1 is a way to write them.
    """
    marked = _is(y, machine.unlabelled)
    if marked.any() and len(np.unique(y[~marked])) == 1:
        marked = np.zeros(len(y), dtype=bool)
    if marked.all():
        raise ValueError(
            f"{type(machine).__name__}: no row has a label: y holds unlabelled="
            f"{machine.unlabelled!r} alone"
        )
    classes, found = classes_of(machine, y[~marked], np.ones(int((~marked).sum())))
    codes = np.full(len(y), -1, dtype=np.intp)
    codes[~marked] = found
    return classes, codes, ~marked


def indicators(codes: Array, count: int) -> Array:
    """Return a column for each class: one at its rows, zero at others and those without a label."""
    Y = np.zeros((len(codes), count))
    rows = np.flatnonzero(codes >= 0)
    Y[rows, codes[rows]] = 1.0
    return Y


def read_targets(
    machine: Any, X: Any, y: Any, *, multi_output: bool = False
) -> tuple[Points, Array]:
    """Check training rows and targets, of which some are NaN."""
    options: dict[str, Any] = {"y_numeric": True}
    if multi_output:
        options["multi_output"] = True
    try:
        values = np.asarray(y)
        values = values if values.dtype.kind == "c" else values.astype(np.float64)
    except (TypeError, ValueError):
        return rows_and_labels(machine, X, y, **options)  # which says what is wrong
    gaps = np.isnan(values)
    if values.ndim and gaps.any() and gaps.all():
        name = type(machine).__name__
        raise ValueError(
            f"{name}: y contains NaN only, which stands for rows without a target; at least one "
            "row needs one"
        )
    if values.ndim == 0:
        return rows_and_labels(machine, X, y, **options)
    X, filled = rows_and_labels(machine, X, np.where(gaps, 0.0, values), **options)
    return X, np.where(gaps.reshape(filled.shape), np.nan, filled)


def known_targets(machine: Any, y: Array) -> Array:
    """Return which rows have a target, of shape (n,) or (n, t): NaN stands for none."""
    name = type(machine).__name__
    table = y.reshape(len(y), -1)
    gaps = np.isnan(table)
    missing = gaps.all(axis=1)
    partly = np.flatnonzero(gaps.any(axis=1) & ~missing)
    if len(partly):
        raise ValueError(
            f"{name}: row {partly[0]} of y has some targets and lacks others; NaN must stand for "
            "all of them. Fit one machine for each target"
        )
    return np.asarray(~missing)


def _is(y: Array, mark: Any) -> Array:
    """Return which entries are the mark; a string is no number, nor a number a string."""
    if y.dtype.kind == "O":
        return np.array([type(label) is type(mark) and label == mark for label in y.tolist()])
    if isinstance(mark, str) != (y.dtype.kind in "US"):
        return np.zeros(len(y), dtype=bool)
    return np.asarray(y == mark)
