"""The last digits: Newton steps on the set of free variables.

Near the optimum it is almost known which variables are at a bound. With those held, the rest solve
a linear system, one Cholesky factor for it:

    K_WW s + r_g = F_W - epsilon * sign,    sum of s over each group = 0.

Variables that would leave the box are put on its edge, and the others solved for again, until all
are inside; then comes a step towards that point, never beyond the best on the way, and held
variables that the conditions pull away join W. The objective only falls. Still it is a finish, not
a start: from far away most of the work is spent on sets that are wrong.

The compiled descent has Newton steps of its own (`native/src/svm/newton`), on the K it is given.
Those save pair steps; these take K in float64 from the points, where the stored K is in float32 or
there is none. Processor time of support vector regression, Gaussian kernel of scale 1, K in
float32; to a violation of 1e-3 (1500 rows), and to a relative gap of 1e-9 (1200; 1500):

    violation                          C = 100         C = 10^4
    as it is                           0.09 s          0.11 s
    without those of the descent       0.11 s          0.58 s (of scale 10: not in 10^6 steps)

    gap                                C = 100         C = 10^4, 1200   C = 10^4, 1500
    as it is                           0.09 s          0.10 s           not solved, 0.25 s
    without these                      not, 0.27 s     not, 0.25 s
    the descent on K_WW in float64,
    to 1e-2 of the violation a round   0.13 s          0.17 s           0.30 s
    to 1e-4                            0.14 s          not, 0.24 s      not, 0.39 s

So those cannot go. A descent on K_WW could take the place of these at up to 1.7 times the cost, but
only with a tolerance found by trial, and not without the compiled core, which alone has such steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram.accurate_products import exact_block, exact_rows
from mercer.machines.svm.descent import Criterion
from mercer.machines.svm.problem import BoxQP
from mercer.resources import square_side

_LARGEST = 4000  # free variables; the factor of more takes longer than pair steps
_COPIES = 4  # of K between them, held at once: as it is, of those inside the box, and two factors
_SHARE = 0.5  # of the memory budget; the rest is for a K that is stored
_STEPS = 6
_CLIPS = 8  # times that variables are put on the edge within a step
_JITTER = (1e-12, 1e-10, 1e-8)  # of the mean diagonal, tried in turn
_ENTERING = 1e-3  # of the largest violation: less does not pull a variable off its bound
_PROGRESS = 0.3  # what a step must leave at most of the measure


@dataclass(frozen=True)
class Finish:
    """Where Newton steps ended: variables, their exact gradient, and whether the measure is met."""

    b: Array
    F: Array
    reached: bool


def largest() -> int:
    """Return how many free variables there may be: by time, and by memory."""
    return min(_LARGEST, square_side(_COPIES * 8, _SHARE))


def newton(
    problem: BoxQP, b: Array, F: Array, criterion: Criterion, allowed: float
) -> Finish | None:
    """Step from a feasible b, whose exact gradient is F, until what is measured is allowed.

    Returns
    -------
    Finish or None
        None if no step leads to anything better than b.
    """
    best, before = None, criterion.measure(problem, b, F)
    for _ in range(_STEPS):
        step = _step(problem, b, F)
        if step is None:
            break
        b = b + step
        np.clip(b, problem.lower, problem.upper, out=b)
        F = F - exact_rows(problem.gram, np.arange(len(b)), step)
        after = criterion.measure(problem, b, F)
        if after <= allowed:
            return Finish(b, F, True)
        if after < before:
            best = Finish(b, F, False)
        if not after < _PROGRESS * before:
            break
        before = after
    return best


def _step(problem: BoxQP, b: Array, F: Array) -> Array | None:
    """Return a step to, or towards, the optimum over the variables that are free or should be."""
    r = problem.spread(problem.offsets(b, F))
    rising, falling = problem.rising(b, F), problem.falling(b, F)
    inside, least = rising == falling, _ENTERING * max(0.0, problem.violation(b, F))
    W = np.flatnonzero(inside | (rising > r + least) | (falling < r - least))
    if not len(W) or len(W) > largest():
        return None
    # at zero a variable moves to the side that its condition pulls it to
    side = np.where(b[W] != 0, np.sign(b[W]), np.where(rising[W] > r[W], 1.0, -1.0))
    epsilon, lower, upper = problem.epsilons[W], problem.lower[W], problem.upper[W]
    lower = np.where((epsilon > 0) & (side > 0), np.maximum(lower, 0.0), lower) - b[W]
    upper = np.where((epsilon > 0) & (side < 0), np.minimum(upper, 0.0), upper) - b[W]
    group = np.zeros(len(W), np.int64) if problem.group is None else problem.group[W]
    K, g = exact_block(problem.gram, W), F[W] - epsilon * side
    owed = problem.totals - [b[m].sum() for m in problem.members()]  # by rounding
    move = _inside(K, g - r[W], group, owed, lower, upper)
    if move is None:
        return None
    bend, slope = float(move @ (K @ move)), float(g @ move)
    if not slope > 0:
        return None
    move *= min(1.0, slope / max(bend, np.finfo(float).tiny))
    step = np.zeros(len(b))
    # what ends on an edge is there exactly
    step[W] = np.where(move == lower, lower, np.where(move == upper, upper, move))
    return step


def _inside(
    K: Array, g: Array, group: Array, owed: Array, lower: Array, upper: Array
) -> Array | None:
    """Solve for a move, putting what leaves the box on its edge and solving for the rest again."""
    move, left = np.zeros(len(g)), np.ones(len(g), dtype=bool)
    for _ in range(_CLIPS):
        W = np.flatnonzero(left)
        if not len(W):
            return None
        fixed = np.flatnonzero(~left)
        rest = g[W] - K[np.ix_(W, fixed)] @ move[fixed] if len(fixed) else g[W]
        missing = owed - np.bincount(group[fixed], move[fixed], len(owed))
        solved = _solve(K[np.ix_(W, W)] if len(fixed) else K, rest, group[W], missing)
        if solved is None:
            return None
        move[W] = np.clip(solved, lower[W], upper[W])
        out = (solved < lower[W]) | (solved > upper[W])
        if not out.any():
            return move
        left[W[out]] = False
    return None


def _solve(K: Array, g: Array, group: Array, missing: Array) -> Array | None:
    """Solve K s + r_g = g with given sums of s over the groups."""
    present, diagonal = np.unique(group), np.diagonal(K).copy()
    sides = np.column_stack([g, *(group == k for k in present)]).astype(np.float64)
    for jitter in _JITTER:
        factor = np.array(K, order="C")
        factor.flat[:: len(K) + 1] = diagonal + jitter * float(diagonal.mean())
        if choose_backend().cholesky(factor) != 0:
            continue
        solved = linalg.cho_solve((factor.T, False), sides, check_finite=False)
        E = sides[:, 1:]
        try:
            r = np.linalg.solve(E.T @ solved[:, 1:], E.T @ solved[:, 0] - missing[present])
        except np.linalg.LinAlgError:
            continue
        s = solved[:, 0] - solved[:, 1:] @ r
        # an almost singular K leaves the sums inexact
        count = np.bincount(group, minlength=len(missing))
        s += ((missing - np.bincount(group, s, len(missing))) / np.maximum(count, 1))[group]
        return np.asarray(s) if np.isfinite(s).all() else None
    return None
