"""Labelings that a class of hypotheses gives to points: shattering, growth, VC dimension.

A set of m points is shattered by a class if all 2^m labelings are there; the Vapnik-Chervonenkis
dimension is the size of the largest shattered set; the growth function counts labelings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from mercer.array_types import Array
from mercer.theory.bounds import check_count

_MOST_POINTS = 20  # 2^20 labelings; more would never end
_AT_ONCE = 3  # points that labelings grow by: a class is asked less often about few of them
Draw = Callable[[np.random.Generator, int], Array]


class Hypotheses(ABC):
    """A class of functions from points to two labels."""

    @abstractmethod
    def realises(self, points: Array, labels: Array) -> bool:
        """Return whether some hypothesis gives these labels (m,) of True and False."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw m points that the class may shatter with positive probability: (m, d)."""

    def dichotomies(self, points: npt.ArrayLike) -> Array:
        """List the labelings of the points that some hypothesis gives.

        A few points at a time: what no hypothesis gives to some points, none gives to more of
        them. So the work is that of the labelings there are: few where the VC dimension is small.

        Parameters
        ----------
        points : (m, d) array-like
            Points with at most 2^20 labelings.

        Returns
        -------
        (count, m) bool array
            Distinct labelings.
        """
        rows = as_rows(points)
        kept = [np.zeros(0, dtype=bool)]
        for start in range(0, len(rows), _AT_ONCE):
            m = min(start + _AT_ONCE, len(rows))
            ends = list(product([False, True], repeat=m - start))
            longer = (np.append(labels, end) for labels in kept for end in ends)
            kept = [labels for labels in longer if self.realises(rows[:m], labels)]
            if len(kept) > 2**_MOST_POINTS:
                raise ValueError(
                    f"{m} of these {len(rows)} points have {len(kept)} labelings; pass fewer"
                )
        return np.array(kept, dtype=bool).reshape(len(kept), len(rows))


@dataclass(frozen=True)
class Intervals(Hypotheses):
    """x is positive if it lies in one of `count` intervals of the line; VC dimension 2 count."""

    count: int = 1

    def realises(self, points: Array, labels: Array) -> bool:
        """Count the runs of positive points in order; equal points must have equal labels."""
        order = np.argsort(points[:, 0], kind="stable")
        x, y = points[order, 0], labels[order]
        if np.any((x[1:] == x[:-1]) & (y[1:] != y[:-1])):
            return False
        runs = np.count_nonzero(np.diff(np.concatenate([[0], y.astype(int)])) == 1)
        return bool(runs <= self.count)

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw points of the line."""
        return rng.standard_normal((m, 1))


@dataclass(frozen=True)
class Rectangles(Hypotheses):
    """x is positive if it lies in a box with sides along the axes; VC dimension 2 dimension."""

    dimension: int = 2

    def realises(self, points: Array, labels: Array) -> bool:
        """See whether the tightest box around the positive points holds no negative one."""
        if not labels.any():
            return True
        low, high = points[labels].min(axis=0), points[labels].max(axis=0)
        inside = np.all((points >= low) & (points <= high), axis=1)
        return not bool(np.any(inside & ~labels))

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw points near a sphere, each extreme in some direction."""
        points = rng.standard_normal((m, self.dimension))
        # boxes shatter what sticks out along the axes: make each point large in one of them
        points[np.arange(m), rng.integers(0, self.dimension, m)] *= 10.0
        return points


@dataclass(frozen=True)
class HalfSpaces(Hypotheses):
    """x is positive if w'x + b > 0; VC dimension dimension + 1."""

    dimension: int = 2

    def realises(self, points: Array, labels: Array) -> bool:
        """Look for a separating hyperplane by a linear program."""
        signs = np.where(labels, 1.0, -1.0)
        away = points - points.mean(axis=0) if len(points) else points
        largest = np.abs(away).max(axis=0, initial=0.0)  # units do not matter, but to tolerances
        away = away / np.where(largest > 0, largest, 1.0)
        A = -signs[:, None] * np.column_stack([away, np.ones(len(points))])
        found = linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(A)), bounds=(None, None))
        return bool(found.status == 0)

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Draw points in general position."""
        return rng.standard_normal((m, self.dimension))


@dataclass(frozen=True)
class Sines(Hypotheses):
    """x is positive if sin(w x) > 0: one parameter, and yet any number of points is shattered.

    The points 10^-1, ..., 10^-m are given the labels y by
    w = pi (1 + sum over negative points of 10^i).
    """

    def realises(self, points: Array, labels: Array) -> bool:
        """Try the frequency that is known for powers of ten; other points are not decided."""
        with np.errstate(all="ignore"):
            powers = np.rint(-np.log10(points[:, 0]))
        if (
            not np.allclose(points[:, 0], 10.0**-powers)
            or powers.max(initial=0) > _MOST_POINTS // 2
        ):
            raise ValueError("Sines: labelings are known for points 10^-1 ... 10^-10 only")
        w = np.pi * (1.0 + np.sum(np.where(labels, 0.0, 10.0**powers)))
        return bool(np.array_equal(np.sin(w * points[:, 0]) > 0, labels))

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Return 10^-1, ..., 10^-m."""
        return 10.0 ** -np.arange(1.0, m + 1.0)[:, None]


def is_shattered(hypotheses: Any, points: npt.ArrayLike) -> bool:
    """Return whether the class gives the points all labelings.

    Parameters
    ----------
    hypotheses : Hypotheses
        The class.
    points : (m, d) array-like
        At most 20 points.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_shattered(HalfSpaces(2), [[0, 0], [1, 0], [0, 1]])
    True
    >>> is_shattered(HalfSpaces(2), [[0, 0], [1, 0], [0, 1], [1, 1]])
    False
    """
    check_class(hypotheses)
    rows = as_rows(points)
    if len(rows) > _MOST_POINTS:
        raise ValueError(
            f"{len(rows)} points have 2^{len(rows)} labelings; pass at most {_MOST_POINTS}"
        )
    everything = product([False, True], repeat=len(rows))
    return all(hypotheses.realises(rows, np.array(labels)) for labels in everything)


def growth(hypotheses: Any, m: int, *, trials: int = 50, random_state: int = 0) -> int:
    """Count the most labelings of m points that were found: the growth function from below.

    Parameters
    ----------
    hypotheses : Hypotheses
        The class; it draws candidate points.
    m : int
        Number of points.
    trials : int
        Number of sets of points.
    random_state : int
        Seed of the draws.

    Returns
    -------
    int
        The largest count; never above the growth function itself.

    Examples
    --------
    >>> [growth(Intervals(), m) for m in (1, 2, 3, 4)]  # 1 + m + m (m - 1) / 2
    [2, 4, 7, 11]
    """
    m, rng = check_count("m", m, 0), np.random.default_rng(random_state)
    check_class(hypotheses)
    best = 0
    for _ in range(check_count("trials", trials)):
        best = max(best, len(hypotheses.dichotomies(hypotheses.draw(rng, m))))
        if best == 2**m:
            break
    return best


def vc_dimension(
    hypotheses: Any, *, largest: int = 8, trials: int = 200, random_state: int = 0
) -> int:
    """Return the size of the largest set found that is shattered: the VC dimension from below.

    Parameters
    ----------
    hypotheses : Hypotheses
        The class; it draws candidate points.
    largest : int
        Look at sets of up to so many points.
    trials : int
        Number of sets of each size.
    random_state : int
        Seed of the draws.

    Returns
    -------
    int
        The dimension found; a class of larger or infinite dimension gives `largest`.

    Examples
    --------
    >>> vc_dimension(Intervals()), vc_dimension(Rectangles(2)), vc_dimension(HalfSpaces(2))
    (2, 4, 3)
    """
    check_class(hypotheses)
    rng, trials = np.random.default_rng(random_state), check_count("trials", trials)
    for m in range(1, check_count("largest", largest) + 1):
        if not any(is_shattered(hypotheses, hypotheses.draw(rng, m)) for _ in range(trials)):
            return m - 1
    return largest


def check_class(hypotheses: Any) -> None:
    """Raise unless the class can test labelings and draw candidate points."""
    if isinstance(hypotheses, type) or not isinstance(hypotheses, Hypotheses):
        raise TypeError(
            f"hypotheses={hypotheses!r} must be a class of functions such as HalfSpaces(2) or "
            "Intervals(1); for custom functions, derive a class from mercer.theory.Hypotheses "
            "with realises(points, labels) and draw(rng, m)"
        )


def as_rows(points: npt.ArrayLike) -> Array:
    """Return points as rows of finite numbers; a flat list is one column."""
    rows = np.asarray(points, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 else rows
    if not np.isfinite(rows).all():
        raise ValueError("points must be finite numbers")
    return rows
