"""White rows for directions to be sought in: the leading principal components, of variance one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.kernels import Linear
from mercer.machines.base.parameters import refuse
from mercer.machines.projection.pca import PCA
from mercer.points import is_sparse
from mercer.resources import require_memory
from mercer.solvers import Solution

_EXACT = 1e-12  # residual of principal components, where they are iterated
_RANGE = 2.0**-900, 2.0**900  # of entries whose directions are numbers, too
_COPIES = 6  # of white rows: themselves, their directions, and values of contrasts


@dataclass(frozen=True, eq=False)
class White:
    """Rows z = (x - mean) @ whitening, of covariance I.

    Attributes
    ----------
    rows : (n, p) array
        The white rows.
    mean : (d,) array
        The mean.
    whitening : (d, p) array
        What rows less their mean are multiplied by.
    coloring : (p, d) array
        What takes white rows back.
    solution : Solution
        How the principal components were found.
    """

    rows: Array
    mean: Array
    whitening: Array
    coloring: Array
    solution: Solution


def white_rows(machine: Any, X: Points, weights: Array, count: int | None) -> White:
    """Whiten rows.

    Parameters
    ----------
    machine : estimator
        Whose `n_components`, `time_limit` and `random_state` are named in refusals.
    X : Points
        Rows of positive weight.
    weights : (n,) array
        Their weights.
    count : int or None
        How many leading principal components; None takes all that vary.
    """
    name = type(machine).__name__
    if len(weights) < 2:
        raise ValueError(
            f"{name}: rows must differ for a direction to be found, but all are equal: "
            "n_samples = 1 distinct row of positive weight"
        )
    unit = _unit(name, X)
    near = X * (1.0 / unit)
    principal = PCA(count and min(count, len(weights)), kernel=Linear(), tol=_EXACT)
    principal.fit(near, sample_weight=weights)
    rank = len(principal.solution_.value.values)
    if rank == 0:
        raise ValueError(f"{name}: rows must differ for a direction to be found; all are equal")
    if count is not None and count > rank:
        must = f"be at most {rank}, the number of directions in which the rows vary"
        refuse(machine, "n_components", machine.n_components, must)
    require_memory(8 * _COPIES * len(weights) * rank, f"{name}: white rows", "Use fewer rows.")
    axes, mean = principal.components_[:rank], principal.mean_
    share = weights / weights.sum()
    mean = mean + np.asarray(share @ (near @ axes.T) - mean @ axes.T) @ axes  # rounding of far rows
    rows = _less(near, mean, axes.T)
    # twice: what rounding of the first leaves of correlations, the second takes away
    whitening, coloring = axes.T, axes
    for _ in range(2):
        turn, back = _inverse_root((share[:, None] * rows).T @ rows)
        rows, whitening, coloring = rows @ turn, whitening @ turn, back @ coloring
    ending = principal.solution_
    return White(rows, mean * unit, whitening / unit, coloring * unit, ending)


def _unit(name: str, X: Points) -> float:
    """Return a power of two of the size of the rows."""
    values = X.data if is_sparse(X) else X
    largest = float(np.abs(values).max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    if not _RANGE[0] < unit < _RANGE[1]:
        raise ValueError(
            f"{name}: X, whose largest entry is {largest:.0e}, is at the end of float64, and its "
            "directions are beyond. Scale the features"
        )
    return float(unit)


def _less(X: Points, mean: Array, columns: Array) -> Array:
    if is_sparse(X):
        return np.asarray(X @ columns - mean @ columns)
    return np.asarray((X - mean) @ columns)


def _inverse_root(covariance: Array) -> tuple[Array, Array]:
    """Return C^-1/2 and C^1/2 of the covariance along principal axes, which is all but diagonal."""
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    return inverse / scale[:, None], root * scale
