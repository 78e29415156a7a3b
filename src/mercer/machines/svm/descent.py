"""State of a box QP during descent: stopping criteria, engines, and negative curvature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.box_programs import Box
from mercer.gram.accurate_products import exact_block, exact_rows
from mercer.gram.base import Gram, Unwrapped
from mercer.gram.precomputed import PrecomputedGram
from mercer.machines.svm.problem import HARDEST, BoxQP
from mercer.solvers.base import Watch

# --- curvature -----------------------------------------------------------------------------------
#
# Does K bend down? Looked for where it costs nothing: along the answer, and among a few points.

_CURVATURE_SAMPLE = 64
_ROUNDING = {8: 1e-9, 4: 1e-6}  # of the diagonal, by bytes: matrices may be given in float32


def curvature_along(part: BoxState, size: float) -> float | None:
    """Return the curvature b'Kb / b'b along an answer, where it is below zero beyond rounding.

    A positive semidefinite K has no such direction. With one, a descent ends at a stationary point
    that need not be the optimum. `size` is the largest entry of the diagonal. An answer whose sum
    is not zero says nothing where sums are fixed: it is no difference of two answers.
    """
    problem, b = part.problem, part.b
    if sums_are_fixed([part]) and problem.totals.sum() != 0:
        return None
    squared = float(b @ b)
    if squared == 0 or float(b @ (problem.linear - part.F)) > 1e-4 * size * squared:
        return None  # by F as it was kept; sure only from the points
    used = np.flatnonzero(b)
    bend = float(b[used] @ exact_rows(problem.gram, used, b)) / squared
    return bend if bend < -_rounding(problem.gram) * size else None


def curvature_among(parts: list[BoxState], stored: bool = False) -> float | None:
    """Return the smallest eigenvalue of K among a few points, if below zero: support vectors first.

    Where sums are fixed, only on vectors that sum to zero. With `stored`, entries are read from the
    matrix that is held, to its rounding: functions of one's own are not asked again.
    """
    gram, points = parts[0].unwrapped.base, [_points(part) for part in parts]
    used = np.unique(np.concatenate(points))
    few = used[:: max(1, len(used) // _CURVATURE_SAMPLE)][:_CURVATURE_SAMPLE]
    if not len(few):
        return None
    if len(few) < _CURVATURE_SAMPLE:  # so few say little about K
        n = gram.shape[0]
        few = np.union1d(few, np.arange(0, n, max(1, n // (_CURVATURE_SAMPLE - len(few)))))
    rounding = _ROUNDING[gram.dtype.itemsize] if stored else _rounding(gram)
    slack = rounding * len(few) * largest_diagonal(gram)
    block = _stored_block(gram, few) if stored else exact_block(gram, few)
    if sums_are_fixed(parts):
        block = block - block.mean(axis=0)
        block = block - block.mean(axis=1)[:, None]
    block.flat[:: len(few) + 1] += slack
    try:
        np.linalg.cholesky(block)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(block)[0]) - slack
        return least if least < -slack else None
    return None


def sums_are_fixed(parts: list[BoxState]) -> bool:
    """Return whether every variable is in a sum, so that answers differ by vectors of sum zero."""
    groups = (part.problem.group for part in parts)
    return all(group is None or bool((group >= 0).all()) for group in groups)


def _points(part: BoxState) -> Array:
    used, index = np.flatnonzero(part.b)[: 8 * _CURVATURE_SAMPLE], part.unwrapped.index
    return used if index is None else index[used]


def largest_diagonal(gram: Gram) -> float:
    """Return the size of K."""
    return float(np.abs(gram.diag()).max(initial=0.0))


def _stored_block(gram: Gram, few: Array) -> Array:
    return np.asarray(gram.rows(few)[:, few], dtype=np.float64)


def _rounding(gram: Gram) -> float:
    base = gram.unwrapped().base  # only a given matrix cannot be evaluated anew from points
    return _ROUNDING[np.dtype(base.dtype if isinstance(base, PrecomputedGram) else float).itemsize]


# --- descent -------------------------------------------------------------------------------------
#
# Box programmes on their way down: where each stands, what moves it, and what it aims at.
#
# `BoxState` is one programme with variables b and gradient F = p - K b. An `Engine` moves states
# that share a K: `StoredEngine` where K is a matrix, `set_engine.Sets` where its entries are made
# anew.

_DESCENT_SAMPLE = 1024  # points that stand for all where only an order is wanted


@dataclass
class BoxState:
    """A programme, where it stands, and what is known about that.

    Attributes
    ----------
    problem : BoxQP
        What is asked.
    b, F : (n,) float64
        The variables, and p - K b as last computed.
    violation : float
        Of the optimality conditions, by this F.
    error : float
        Largest error of F seen where it was compared with float64; infinite while unknown.
    aim : float
        What the violation is to come down to.
    steps : int
        Pair steps so far.
    rounds : int
        Working sets so far, where there are such.
    """

    problem: BoxQP
    b: Array
    F: Array
    violation: float = np.inf
    error: float = np.inf
    steps: int = 0
    aim: float = np.inf
    rounds: int = 0

    @property
    def unwrapped(self) -> Unwrapped:
        """Return the Gram without its wrappers."""
        return self.problem.unwrapped

    def box(self) -> Box:
        """Write the programme, from here, for a backend."""
        problem, held = self.problem, self.unwrapped
        return Box(
            np.ascontiguousarray(self.F, dtype=np.float64),
            self.b,
            problem.lower,
            problem.upper,
            problem.epsilons if np.any(problem.epsilon) else None,
            held.shift,
            problem.group,
            held.index,
        )

    def free(self) -> Array:
        """Return which variables can move both ways at the same price."""
        problem = self.problem
        inside = (self.b > problem.lower) & (self.b < problem.upper)
        return np.asarray(inside & ((self.b != 0) | (problem.epsilons == 0)))

    def near(self, width: float) -> Array:
        """Return the variables that move, or would if F were wrong by `width`."""
        problem = self.problem
        rising, falling = problem.rising(self.b, self.F), problem.falling(self.b, self.F)
        close = self.free()
        for m in problem.members():
            top, bottom = rising[m].max(initial=-np.inf), falling[m].min(initial=np.inf)
            level, other = min(top, bottom), max(top, bottom)
            close[m] |= (rising[m] > level - width) | (falling[m] < other + width)
        return np.flatnonzero(close)

    def points(self, index: Any) -> Any:
        """Return the points of the base that some variables stand at; slices stay slices."""
        return index if self.unwrapped.index is None else self.unwrapped.index[index]

    def on_base(self, changed: Array, step: Array) -> tuple[Array, Array]:
        """Return the points of the base that steps of some variables add up at, and the sums."""
        index = self.unwrapped.index
        if index is None:
            return changed, step
        points, where = np.unique(index[changed], return_inverse=True)
        return points, np.bincount(where, step, len(points))


class Engine(ABC):
    """Moves parts downhill, and multiplies by the K that they share.

    Parameters
    ----------
    watch : Watch
        Told the steps of all runs together.
    limit : int
        Pair steps allowed for each programme.
    rounding : float
        Relative rounding of an entry of K.
    """

    def __init__(self, watch: Watch, limit: int, rounding: float) -> None:
        self.watch, self.limit, self.rounding = watch, limit, rounding
        self.steps = 0

    def is_spent(self, part: BoxState) -> bool:
        """Return whether a part has had all the work that it is allowed."""
        return part.steps >= self.limit

    @abstractmethod
    def descend(self, parts: list[BoxState], tol: float) -> None:
        """Move all parts until none violates its conditions by more than `tol`."""

    @abstractmethod
    def applied(self, part: BoxState, changed: Array, step: Array) -> Array:
        """Return K times a step of some variables, for all variables of the part: a new array."""


def begin(engine: Engine, problem: BoxQP, start: Array | None) -> BoxState:
    """Return a feasible point to start from, and its gradient."""
    part = BoxState(problem, np.zeros(len(problem.linear)), problem.linear.astype(np.float64))
    part.b = problem.feasible_near(part.b if start is None else start)
    if start is None and part.b.any():
        part.b = _greedy(engine, part)
    used = np.flatnonzero(part.b)
    if len(used):
        part.F = part.F - engine.applied(part, used, part.b[used])
    return part


def _greedy(engine: Engine, part: BoxState) -> Array:
    """Fill the sums with the variables that a start spread evenly would raise first.

    Points far from the middle of the others carry most machines whose sums are not zero.
    """
    problem, spread = part.problem, part.b
    some = np.arange(0, len(spread), max(1, len(spread) // _DESCENT_SAMPLE))
    scale = spread.sum() / max(abs(spread[some].sum()), np.finfo(float).tiny)
    F = problem.linear - engine.applied(part, some, abs(scale) * spread[some])
    b = np.clip(np.zeros(len(spread)), problem.lower, problem.upper)
    for m, total in zip(problem.members(), problem.totals, strict=True):
        b[m] = filled(b[m], F[m], problem.lower[m], problem.upper[m], float(total))
    return problem.feasible_near(b)


def filled(b: Array, F: Array, lower: Array, upper: Array, total: float) -> Array:
    """Move variables to their bounds, the most willing first, until they sum to `total`."""
    missing = total - float(b.sum())
    rising = missing > 0
    room = upper - b if rising else b - lower
    order = np.argsort(-F if rising else F, kind="stable")
    reached = np.cumsum(room[order])
    step = np.clip(abs(missing) - (reached - room[order]), 0.0, room[order])
    moved = b.copy()
    moved[order] += step if rising else -step
    return np.clip(moved, lower, upper)


# --- what the tolerance of a support vector solver speaks of -------------------------------------


@dataclass(frozen=True)
class Violation:
    """The largest violation of the optimality conditions by a pair: LIBSVM's rule.

    In units of the decision function, so 10^-3 means: no point is on the wrong side of its
    condition by more than that. Where only the answer tells these units (the margin of a nu form,
    the radius of a ball) they are taken from it.
    """

    def measure(self, problem: BoxQP, b: Array, F: Array) -> float:
        """Return the largest violation."""
        return problem.violation(b, F)

    def allowed(self, problem: BoxQP, b: Array, F: Array, tol: float) -> float:
        """Return what the measure may be: `tol` in units of the problem."""
        return tol * problem.unit(b, F)

    def first(self, problem: BoxQP, F: Array, tol: float) -> float:
        """Return the violation to descend to before anything is measured in float64."""
        spread = float(np.ptp(F)) if problem.scale is None and len(F) else 0.0
        return tol * (problem.scale or spread or 1.0)

    def is_known_before(self, problem: BoxQP) -> bool:
        """Return whether what is allowed is known before there is an answer."""
        return problem.scale is not None


@dataclass(frozen=True)
class Gap:
    """The duality gap relative to the objective: a bound on what is left to gain."""

    def measure(self, problem: BoxQP, b: Array, F: Array) -> float:
        """Return the gap."""
        return problem.gap(b, F - problem.spread(problem.offsets(b, F)))

    def allowed(self, problem: BoxQP, b: Array, F: Array, tol: float) -> float:
        """Return what the gap may be: `tol` of the objective."""
        objective = 0.5 * float(b @ (problem.linear + F)) - float(problem.epsilons @ np.abs(b))
        return tol * max(abs(objective), problem.least_objective(b))

    def is_known_before(self, problem: BoxQP) -> bool:
        """Return whether what is allowed is known before there is an answer."""
        return False

    def first(self, problem: BoxQP, F: Array, tol: float) -> float:
        """Return the violation to descend to before anything is measured in float64."""
        return _START * max(float(np.ptp(F)), np.finfo(float).tiny) if len(F) else tol


Criterion = Violation | Gap
VIOLATION = Violation()

_START = 1e-3 / 2  # of the spread of F; for a classifier, whose F is from -1 to 1, LIBSVM's 10^-3


# --- hard margins: bounds that are infinite, and the proof that nothing is within them -----------
#
# With infinite bounds the objective may fall for ever: then no function meets all constraints.
# Along the ray through b it falls at most to -h with
#
#     h = (p'b - epsilon'|b|)^2 / (2 b'K b),
#
# and for a classifier sqrt(2/h) is the distance of two points of the convex hulls of the classes.
# So descents are made under a finite bound that is raised while variables press against it, until
# none does (then it did not matter), or until h says that the hulls are closer than 10^-6 of the
# longest feature vector.

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
    gain = float(problem.linear @ b - problem.epsilons @ np.abs(b))
    bend = float(b[used] @ exact_rows(problem.gram, used, b))
    limit = 0.5 * HARDEST * unit(problem) * float(np.abs(problem.linear).max(initial=0.0))
    return gain > 0 and gain >= np.sqrt(2 * limit) * np.sqrt(max(bend, 0.0))
