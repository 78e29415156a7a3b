"""Box programmes on their way down: where each stands, and the engine that moves them.

`BoxState` is one programme with variables b and gradient F = p - K b. An `Engine` moves states that
share a K: `StoredEngine` where K is a matrix, `working_sets.Sets` where its entries are made anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends.boxes import Box
from mercer.gram.transformed.part import Unwrapped
from mercer.problems import BoxQP
from mercer.solvers.base import Watch

_SAMPLE = 1024  # points that stand for all where only an order is wanted


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
            problem.kinks if np.any(problem.kink) else None,
            held.shift,
            problem.group,
            held.index,
        )

    def free(self) -> Array:
        """Return which variables can move both ways at the same price."""
        problem = self.problem
        inside = (self.b > problem.lower) & (self.b < problem.upper)
        return np.asarray(inside & ((self.b != 0) | (problem.kinks == 0)))

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

    def points(self, index: Array) -> Array:
        """Return the points of the base that some variables stand at."""
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
    some = np.arange(0, len(spread), max(1, len(spread) // _SAMPLE))
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
