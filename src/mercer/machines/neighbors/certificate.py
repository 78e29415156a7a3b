"""Certificates of nearest and most similar samples, and of class means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, exact
from mercer.gram.definite import NEGATIVE
from mercer.gram.graph import ROUNDINGS, nearness
from mercer.machines.neighbors.problem import (
    ClassMeans,
    Means,
    MostSimilar,
    Nearest,
    Neighbourhoods,
    resolution,
    rounding_of_distances,
)
from mercer.resources import rows_at_once
from mercer.solvers.certificate import Certificate, certify, larger

# --- nearest samples -----------------------------------------------------------------------------
#
# Neighborhoods are verified with distances or similarities evaluated anew in float64.

_TOL = 1e-9
_HIDDEN = 1e-6  # of a distance: what rounding of kernel values may leave open
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
    hidden : float
        As `nearer_outside`, but the most that rounding of kernel values leaves open.
    """

    points: int
    nearer_outside: float
    invalid: int
    smallest_distance: float = 0.0
    hidden: float = 0.0


@certify.register
def _(problem: Nearest, value: Neighbourhoods, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, seen, least = exact(problem.gram), _Excess(0.0, 0.0), 0.0
    lengths = gram.diag()
    invalid = _invalid(value.index, problem.gram.shape[0])
    step = rows_at_once(gram.shape[0], _AT_ONCE, arrays=_ARRAYS)
    for first in range(0, 0 if invalid else len(problem.points), step):
        part = problem.points[first : first + step]
        key, rounding = nearness(gram, part)
        own = 0.5 * lengths[part] if rounding.any() else np.zeros(len(part))
        seen = seen.joined(_excess(key, value.index[first : first + step], rounding, own))
        least = min(least, _smallest(gram, part))
    complete = value.index.shape == (len(problem.points), problem.count)
    distances = least >= -NEGATIVE
    ok = seen.within(tol) and invalid == 0 and complete and distances
    found = NearestQuantities(len(problem.points), seen.sure, invalid, least, seen.possible)
    statement = (
        "the kernel matrix is not positive semidefinite: the squared distance of two points is "
        f"{least:.2g} of the longest, so none is the nearest"
        if not distances
        else _neighbours_statement(problem.count, found, ok, seen.sure <= tol, "nearer")
    )
    return Certificate(bool(ok), found, tol, statement)


@certify.register
def _(problem: MostSimilar, value: Neighbourhoods, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    gram, seen = exact(problem.gram), _Excess(0.0, 0.0)
    invalid = _invalid(value.index, gram.shape[0])
    step = rows_at_once(gram.shape[0], _AT_ONCE, arrays=_ARRAYS)
    for first in range(0, 0 if invalid else len(problem.points), step):
        part = problem.points[first : first + step]
        similarity = np.asarray(gram.rows(part), dtype=np.float64)
        rounding = ROUNDINGS * np.abs(similarity)
        none = np.zeros(len(part))
        seen = seen.joined(_excess(-similarity, value.index[first : first + step], rounding, none))
    complete = value.index.shape == (len(problem.points), problem.count)
    ok = seen.within(tol) and not invalid and complete
    found = NearestQuantities(len(problem.points), seen.sure, invalid, 0.0, seen.possible)
    statement = _neighbours_statement(problem.count, found, ok, seen.sure <= tol, "more similar")
    return Certificate(bool(ok), found, tol, statement)


def _neighbours_statement(
    count: int, found: NearestQuantities, ok: bool, in_order: bool, word: str
) -> str:
    if ok:
        return f"for {found.points} points, no other point is {word} than the {count} given"
    if in_order and not found.invalid:
        return (
            f"rounding of the kernel hides which points come first: one that was left out may be "
            f"{word} by {found.hidden:.1e} of its distance"
        )
    return f"a {word} point was left out, or the neighbourhoods are not what was asked for"


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


class _Excess(NamedTuple):
    """How much farther points taken in are than one left out, relatively: surely, and possibly."""

    sure: float
    possible: float

    def joined(self, other: _Excess) -> _Excess:
        """Return the larger of both."""
        return _Excess(larger(self.sure, other.sure), larger(self.possible, other.possible))

    def within(self, tol: float) -> bool:
        """Return whether no point left out is nearer, and rounding does not hide one."""
        return self.sure <= tol and self.possible <= max(tol, _HIDDEN)


def _excess(key: Array, index: Array, rounding: Array, own: Array) -> _Excess:
    """Compare the farthest point taken with the nearest one left out, relatively to its distance.

    Parameters
    ----------
    key : (m, n) array
        What points are ordered by.
    index : (m, count) int array
        Those taken.
    rounding : (m, n) array
        Bounds of the rounding of keys.
    own : (m,) array
        What makes a key a distance, for each row.
    """
    rows = np.arange(len(index))[:, None]
    left = key.copy()
    left[rows, index] = np.inf
    nearest = left.min(axis=1, initial=np.inf)
    there = np.isfinite(nearest)
    size = np.abs(np.where(there, nearest + own, 1.0))
    size[size == 0] = 1.0

    def over(sign: float) -> float:
        taken = (key + sign * rounding)[rows, index].max(axis=1, initial=-np.inf)
        beyond = taken - (left - sign * rounding).min(axis=1, initial=np.inf)
        return float((np.maximum(np.where(there, beyond, 0.0), 0.0) / size).max(initial=0.0))

    return _Excess(over(-1.0), over(1.0))


# --- class means ---------------------------------------------------------------------------------
#
# The shares are known; squared norms of the means are computed anew.


@dataclass(frozen=True)
class ClassMeansQuantities:
    """Measures of class means.

    Attributes
    ----------
    share_error : float
        Largest difference of a coefficient from the row's share in the mean of its class, over the
        largest share.
    length_error : float
        Largest error of a squared length, over the largest k(x, x).
    closest_pair : float
        Smallest distance between two means, over the root of the largest k(x, x); at rounding, the
        classes cannot be told apart by their means, and no answer is certified.
    smallest_square : float
        The smallest squared length of a mean, of the step between two, or from a mean to a row,
        over the largest k(x, x); below zero, beyond rounding, K is not positive semidefinite and
        there are no distances.
    rounding : float
        An estimate of what rounding of kernel values changes squared distances by, over the largest
        k(x, x).
    """

    share_error: float
    length_error: float
    closest_pair: float
    smallest_square: float = 0.0
    rounding: float = 0.0


@certify.register
def _(problem: ClassMeans, value: Means, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    shares, gram = problem.shares(), exact(problem.gram)
    rounding = rounding_of_distances(gram) / 4.0
    size = max(float(np.abs(gram.diag()).max(initial=0.0)), rounding)
    images = np.asarray(gram @ shares)
    products = shares.T @ images
    squared = products.diagonal()
    apart = squared[:, None] + squared[None, :] - 2 * products
    pairs = apart[np.triu_indices(problem.count, 1)]
    to_rows = gram.diag()[:, None] - 2 * images + squared
    least = float(min(x.min(initial=0.0) for x in (squared, pairs, to_rows))) / size
    closest = float(np.sqrt(max(pairs.min(), 0.0) / size)) if len(pairs) else float("inf")
    if size <= rounding:  # of rows far from the origin nothing is left that could be told apart
        closest, least = 0.0, 0.0
    known = 4.0 * rounding / size
    quantities = ClassMeansQuantities(
        float(np.abs(value.coef - shares).max() / shares.max()),
        float(np.abs(value.squared - squared).max() / size),
        closest,
        least if -least > known else 0.0,
        known,
    )
    lengths = quantities.smallest_square >= -NEGATIVE
    apart_enough = closest**2 * size > resolution(gram)
    ok = quantities.share_error <= tol and quantities.length_error <= tol and apart_enough
    said = f"; squared distances are known to {known:.1e} of its square" if known > tol else ""
    statement = (
        f"the {problem.count} points are the means of their classes; the closest two are "
        f"{quantities.closest_pair:.3g} apart, in units of the longest row{said}"
        if apart_enough
        else "two means are the same to rounding, which then decides between their classes"
    )
    if not lengths:
        statement = (
            "the kernel matrix is not positive semidefinite: the squared length of a mean, or of "
            f"a step to one, is {least:.2g} of the longest row, so none is the nearest"
        )
    return Certificate(bool(ok and lengths), quantities, tol, statement)
