"""Parameters of spectral clustering, checked alone and beside the data."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from mercer.array_types import Points
from mercer.machines.base.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_limits,
    check_optional_count,
    check_real,
    check_seed,
    is_real,
    refuse,
)
from mercer.points import is_sparse


def check_parameters(
    machine: Any, normalizations: tuple[str, ...], weights: tuple[str, ...]
) -> None:
    """Refuse parameters that mean nothing."""
    check_choice(machine, "normalization", normalizations)
    check_choice(machine, "weights", weights)
    check_choice(machine, "assign", ("kmeans", "sign"))
    check_optional_count(machine, "neighbors")
    check_count(machine, "n_init")
    check_count(machine, "max_clusters")
    check_flag(machine, "self_loops")
    check_real(machine, "tol", above=0)
    check_seed(machine)
    check_limits(machine)
    count = machine.n_clusters
    whole = is_real(count) and isinstance(count, Integral) and int(count) > 0
    if not whole and not (isinstance(count, str) and count == "eigengap"):
        refuse(machine, "n_clusters", count, "be a positive integer or 'eigengap'")
    if isinstance(count, str) and machine.max_clusters < 2:
        refuse(machine, "max_clusters", machine.max_clusters, "be at least 2 for 'eigengap'")
    if machine.assign == "sign" and count != 2:
        refuse(machine, "assign", machine.assign, "be 'kmeans' unless n_clusters=2")


def check_against(machine: Any, X: Points) -> None:
    """Refuse what only shows beside the data, before the matrix is made."""
    n = X.shape[0]
    if not isinstance(machine.n_clusters, str) and n < machine.n_clusters:
        raise ValueError(
            f"{type(machine).__name__}: n_samples={n} should be >= n_clusters={machine.n_clusters}"
        )
    if machine.neighbors is not None and machine.neighbors >= n:
        must = f"be below the number of rows: n_samples={n}"
        refuse(machine, "neighbors", machine.neighbors, must)
    if machine.neighbors is not None and machine._is_precomputed() and is_sparse(X):
        refuse(
            machine,
            "neighbors",
            machine.neighbors,
            "be None for a sparse affinity, a graph as it is",
        )
