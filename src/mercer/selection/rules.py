"""Rules for the chosen candidate: the best, or the simplest within one standard error of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.parameters import is_real
from mercer.selection.task import Point

__all__ = ["best", "one_standard_error"]

Rule = Callable[[Sequence[Point], Array], int]
"""Selects a candidate by its index, given candidates and scores (points, folds); NaN is missing."""

# Whether a larger value makes a simpler (-1) or a richer (+1) function; others do not count.
_RICHER = {
    "C": 1,
    "degree": 1,
    "n_components": 1,
    "n_clusters": 1,
    "max_iter": 1,
    "scale": -1,
    "penalty": -1,
    "epsilon": -1,
    "nu": -1,
    "alpha": -1,
    "smoothing": -1,
    "n_neighbors": -1,
    "gamma": 1,
}


def best(points: Sequence[Point], scores: Array) -> int:
    """Select the highest mean score; the first if tied.

    Points without a score on every fold (dropped on the way, or failed) are not taken.

    Parameters
    ----------
    points : sequence of dict
        The points.
    scores : (points, folds) array
        The larger, the better; NaN where there is none.

    Returns
    -------
    int
        Position of the chosen point.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import rules
    >>> rules.best([{"C": 1}, {"C": 10}], np.array([[0.7, 0.8], [0.9, 0.8]]))
    1
    """
    whole = _whole(scores)
    if not len(whole):
        raise ValueError("no candidate has a score on every fold")
    return int(whole[np.argmax(_means(scores)[whole])])


def one_standard_error(points: Sequence[Point], scores: Array) -> int:
    """Select the simplest candidate within one standard error of the best.

    Simple means smaller C, degree, number of components or clusters, and larger scale, penalty,
    epsilon, nu, number of neighbours: each counts by its rank among the values tried. Of equally
    simple points the best is taken.

    Parameters
    ----------
    points : sequence of dict
        The points.
    scores : (points, folds) array
        The larger, the better; NaN where there is none.

    Returns
    -------
    int
        Position of the chosen point.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.selection import rules
    >>> scores = np.array([[0.5, 0.5], [0.85, 0.75], [0.9, 0.8]])
    >>> rules.one_standard_error([{"C": 0.1}, {"C": 1}, {"C": 10}], scores)
    1
    """
    means, top = _means(scores), best(points, scores)
    folds = scores.shape[1]
    with np.errstate(invalid="ignore"):  # scores may be infinite
        error = float(scores[top].std(ddof=1) / np.sqrt(folds)) if folds > 1 else 0.0
    least = means[top] - error if np.isfinite(error) else means[top]
    good = [k for k in _whole(scores) if means[k] >= least]
    richness = _richness(points)
    return int(min(good, key=lambda k: (richness[k], -means[k], k)))


def rule_of(rule: str | Rule) -> Rule:
    """Return the rule of a name, or the user's own."""
    named = {"best": best, "one_standard_error": one_standard_error}
    if isinstance(rule, str) and rule in named:
        return named[rule]
    if callable(rule):
        return rule
    raise ValueError(
        f"rule={rule!r} must be one of {', '.join(map(repr, named))}, or a function of "
        "candidates and scores that returns the index of the selected candidate"
    )


def _means(scores: Array) -> Array:
    """Return the mean of each point, -inf where there is none."""
    with np.errstate(invalid="ignore"):  # infinite scores of both signs
        means = scores.mean(axis=1)
    return np.where(np.isnan(means), -np.inf, means)


def _whole(scores: Array) -> Array:
    """Return the points that have all their scores."""
    return np.flatnonzero(~np.isnan(scores).any(axis=1))


def _richness(points: Sequence[Point]) -> Array:
    """Return how rich the functions of each point are: ranks of its values, from 0 to 1, summed."""
    flat = [_flat(point) for point in points]
    total = np.zeros(len(points))
    for name in sorted({name for values in flat for name in values}):
        column = np.array([values.get(name, np.nan) for values in flat])
        levels = np.unique(column[~np.isnan(column)])
        if len(levels) > 1:
            rank = np.searchsorted(levels, column) / (len(levels) - 1)
            total += np.where(np.isnan(column), 0.5, rank)
    return total


def _flat(point: Point) -> dict[str, float]:
    """Return the numbers of a point that say how rich its functions are, the richer the larger."""
    found: dict[str, float] = {}
    for name, value in point.items():
        inner: dict[str, Any] = {name: value}
        if isinstance(value, Kernel):
            inner = {f"{name}__{key}": one for key, one in value.get_params().items()}
        for key, one in inner.items():
            direction = _RICHER.get(key.rpartition("__")[2])
            if direction and is_real(one):
                found[key] = direction * float(one)
    return found
