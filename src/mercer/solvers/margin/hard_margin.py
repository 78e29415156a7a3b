"""Hard margins: bounds that are infinite, and the proof that nothing is within them.

With infinite bounds the objective may fall for ever: then no function meets all constraints. Along
the ray through b it falls at most to -h with

    h = (p'b - kink'|b|)^2 / (2 b'K b),

and for a classifier sqrt(2/h) is the distance of two points of the convex hulls of the classes. So
descents are made under a finite bound that is raised while variables press against it, until none
does (then it did not matter), or until h says that the hulls are closer than 10^-6 of the longest
feature vector.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.array_types import Array
from mercer.gram.exact import exact_rows
from mercer.problems import BoxQP
from mercer.problems.margin.costs import HARDEST

LEVELS = 6
_FIRST = 1e3  # in units of the problem; reaches HARDEST at the last level
_RAISE = 100.0


def unit(problem: BoxQP) -> float:
    """Return the size of a coefficient that moves f by as much as the linear term asks."""
    largest = float(np.abs(problem.unwrapped.base.diag()).max(initial=0.0))
    asked = float(np.abs(problem.linear).max(initial=0.0))
    return (asked or 1.0) / max(largest, np.finfo(float).tiny)


def infinite_bounds(problem: BoxQP) -> tuple[Array, Array]:
    """Return which lower and upper bounds are infinite with nothing on the diagonal to hold b."""
    shift = problem.unwrapped.shift
    loose = np.ones(len(problem.linear), dtype=bool) if shift is None else shift == 0
    return np.isinf(problem.lower) & loose, np.isinf(problem.upper) & loose


def with_finite_bounds(problem: BoxQP, level: int) -> BoxQP:
    """Return the programme with a finite bound, higher at each level, for infinite ones."""
    down, up = infinite_bounds(problem)
    if not (down.any() or up.any()):
        return problem
    cap = min(_FIRST * _RAISE**level, HARDEST) * unit(problem)
    lower, upper = np.where(down, -cap, problem.lower), np.where(up, cap, problem.upper)
    return replace(problem, lower=lower, upper=upper)


def at_artificial_bound(under: BoxQP, problem: BoxQP, b: Array) -> bool:
    """Return whether a variable is at a bound that the programme itself does not have."""
    if under is problem:
        return False
    at_upper = (b >= under.upper) & np.isinf(problem.upper)
    return bool((at_upper | ((b <= under.lower) & np.isinf(problem.lower))).any())


def unbounded(problem: BoxQP, b: Array) -> bool:
    """Return whether the ray through b shows that no hard margin exists."""
    down, up = infinite_bounds(problem)
    if ((b > 0) & ~up | (b < 0) & ~down).any():
        return False  # what has a bound cannot go on for ever
    used = np.flatnonzero(b)
    gain = float(problem.linear @ b - problem.kinks @ np.abs(b))
    bend = float(b[used] @ exact_rows(problem.gram, used, b))
    limit = 0.5 * HARDEST * unit(problem) * float(np.abs(problem.linear).max(initial=0.0))
    return gain > 0 and gain >= np.sqrt(2 * limit) * np.sqrt(max(bend, 0.0))
