"""The graph of similarities that machines with few labels read off all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer.array_types import Array, Points
from mercer.gram import EdgeWeight, Gram
from mercer.machines.base.parameters import check_choice, check_optional_count, refuse
from mercer.machines.clustering.affinity import affinity, negative_entry, sparse_matrix
from mercer.points import is_sparse, own, row_count

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
