"""Are these the nearest, or most similar, points? All from the asked points, anew in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import larger
from mercer.gram import Gram, exact
from mercer.gram.definite import NEGATIVE
from mercer.gram.graphs.neighbours import ROUNDINGS, nearness
from mercer.problems import MostSimilar, Nearest, Neighbourhoods
from mercer.resources import rows_at_once

_TOL = 1e-9
_AT_ONCE = 256
_ARRAYS = 4  # of a block: entries of K, distances, their rounding, and their order


@dataclass(frozen=True)
class NearestQuantities:
    """Measures of neighbourhoods.

    Attributes
    ----------
    points : int
        How many points were looked at.
    nearer_outside : float
        Largest amount by which a point left out is nearer (or more similar) than one taken in,
        beyond rounding and relative to its own distance (or similarity); zero where all are right.
    invalid : int
        Numbers that are no points, or occur twice in a neighbourhood.
    smallest_distance : float
        The smallest squared distance that was met, over the largest k(x, x), where the kernel is
        not known to be one; below zero, beyond rounding, there are no distances.
    """

    points: int
    nearer_outside: float
    invalid: int
    smallest_distance: float = 0.0


@certify.register
def _(problem: Nearest, value: Neighbourhoods, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, worst, least = exact(problem.gram), 0.0, 0.0
    invalid = _invalid(value.index, problem.gram.shape[0])
    step = rows_at_once(gram.shape[0], _AT_ONCE, arrays=_ARRAYS)
    for first in range(0, 0 if invalid else len(problem.points), step):
        part = slice(first, first + step)
        key, rounding = nearness(gram, problem.points[part])
        worst = larger(worst, float(_excess(key, value.index[part], rounding).max(initial=0.0)))
        least = min(least, _smallest(gram, problem.points[part]))
    complete = value.index.shape == (len(problem.points), problem.count)
    distances = least >= -NEGATIVE
    ok = worst <= tol and invalid == 0 and complete and distances
    found = NearestQuantities(len(problem.points), worst, invalid, least)
    statement = (
        "the kernel matrix is not positive semidefinite: the squared distance of two points is "
        f"{least:.2g} of the longest, so none is the nearest"
        if not distances
        else f"for {found.points} points, no other point is nearer than the {problem.count} given"
        if ok
        else "a nearer point was left out, or the neighbourhoods are not what was asked for"
    )
    return Certificate(bool(ok), found, tol, statement)


@certify.register
def _(problem: MostSimilar, value: Neighbourhoods, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, worst = exact(problem.gram), 0.0
    invalid = _invalid(value.index, gram.shape[0])
    largest = float(np.abs(gram.diag()).max(initial=0.0))
    step = rows_at_once(gram.shape[0], _AT_ONCE, arrays=_ARRAYS)
    for first in range(0, 0 if invalid else len(problem.points), step):
        part = slice(first, first + step)
        similarity = np.asarray(gram.rows(problem.points[part]), dtype=np.float64)
        rounding = ROUNDINGS * max(largest, float(np.abs(similarity).max(initial=0.0)))
        worst = larger(
            worst, float(_excess(-similarity, value.index[part], rounding).max(initial=0))
        )
    ok = worst <= tol and not invalid and value.index.shape == (len(problem.points), problem.count)
    found = NearestQuantities(len(problem.points), worst, invalid)
    statement = (
        f"for {found.points} points, no other point is more similar than the {problem.count} given"
        if ok
        else "a more similar point was left out, or the neighbourhoods are not what was asked for"
    )
    return Certificate(bool(ok), found, tol, statement)


def _smallest(gram: Gram, points: Array) -> float:
    """Return the smallest squared distance from some points, over the largest k(x, x)."""
    if gram.valid:
        return 0.0
    lengths = gram.diag()
    longest = max(float(np.abs(lengths).max(initial=0.0)), np.finfo(float).tiny)
    rows = np.asarray(gram.rows(points), dtype=np.float64)
    return float((lengths[points, None] + lengths - 2.0 * rows).min(initial=0.0)) / longest


def _invalid(index: Array, n: int) -> int:
    ordered = np.sort(index, axis=1)
    twice = np.count_nonzero(ordered[:, 1:] == ordered[:, :-1])
    return int(twice + np.count_nonzero((index < 0) | (index >= n)))


def _excess(key: Array, index: Array, rounding: float) -> Array:
    """Return how much farther the farthest taken is than the nearest left out, relatively."""
    rows = np.arange(len(index))[:, None]
    farthest = key[rows, index].max(axis=1, initial=-np.inf)
    left = key.copy()
    left[rows, index] = np.inf
    nearest = left.min(axis=1, initial=np.inf)
    over = np.where(np.isfinite(nearest), farthest - nearest - rounding, 0.0)
    size = np.where(np.isfinite(nearest) & (nearest != 0), np.abs(nearest), 1.0)
    return np.asarray(np.maximum(over, 0.0) / size)
