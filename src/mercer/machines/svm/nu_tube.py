"""nu regression by way of the tube: the width at which the coefficients have the required sum.

The nu form has two variables for each row, above and below the tube, which pull at one f. Pair
steps move one of them at a time, and where K is nearly singular they crawl. For a given half-width
eps there is one variable for each row, and Newton's steps work. The eps of the nu form is the one
with

    sum_i |b_i(eps)| = nu sum_i C_i,

the left side falling with eps; or 0, if even there it is less: then what is missing is added above
and below alike, which moves no f. It is found between bounds, each answer the start of the next.
The result starts another descent on the nu form, which decides.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram import PartGram
from mercer.machines.svm.descent import BoxState, Criterion, Engine, begin
from mercer.machines.svm.problem import BoxQP
from mercer.machines.svm.refinement import converge
from mercer.solvers.base import Status

# Pair steps on the nu form before this is tried: well-conditioned ones take some 1000 per variable.
STEPS_FIRST, STEPS_FIRST_PER_VARIABLE = 50_000, 2000
_WIDTHS = 40  # tried at most
_FINER = 0.3  # of the tolerance: what answers for a width are solved to
_NARROW = 0.1  # of the tolerance, in units of the problem: eps known to this is known
_HALVED = 3  # widths by the secant before one is taken in the middle


def is_nu_tube(problem: BoxQP) -> bool:
    """Return whether each row has a variable above a tube and one below, with opposite sums."""
    n, odd = divmod(len(problem.linear), 2)
    index, totals = problem.unwrapped.index, problem.totals
    if odd or problem.group is None or index is None or len(totals) != 2 or np.any(problem.epsilon):
        return False
    return bool(
        totals[0] == -totals[1] > 0
        and np.array_equal(problem.group, np.repeat([0, 1], n))
        and np.array_equal(index[:n], index[n:])
        and np.array_equal(problem.linear[:n], problem.linear[n:])
        and np.array_equal(problem.upper[:n], -problem.lower[n:])
        and not problem.lower[:n].any()
        and not problem.upper[n:].any()
        and problem.unwrapped.shift is None
    )


def restart(engine: Engine, part: BoxState, criterion: Criterion, tol: float) -> None:
    """Move a part of the nu form to the answer of the tube that has its sum, if that is better."""
    found = _Widths(engine, part, criterion, tol).search()
    if found is None:
        return
    b = _above_and_below(part.problem, found)
    used = np.flatnonzero(b)
    F = part.problem.linear - engine.applied(part, used, b[used])
    if b @ (part.problem.linear + F) >= part.b @ (part.problem.linear + part.F):
        part.b, part.F, part.error = b, F, np.inf
        part.violation = part.problem.violation(b, F)


def _above_and_below(problem: BoxQP, b: Array) -> Array:
    """Return the variables of the nu form, feasible, that stand for one variable of each row."""
    total = 2 * float(problem.totals[0])
    size = float(np.abs(b).sum())
    b = b * min(1.0, total / size) if size > 0 else b
    room = problem.upper[: len(b)] - np.abs(b)
    missing = 0.5 * (total - float(np.abs(b).sum()))
    both = room * min(1.0, max(0.0, missing) / max(float(room.sum()), np.finfo(float).tiny))
    spread = np.concatenate([np.maximum(b, 0.0) + both, np.minimum(b, 0.0) - both])
    return problem.feasible_near(spread)


class _Widths:
    """Answers for one width of the tube after another."""

    def __init__(self, engine: Engine, part: BoxState, criterion: Criterion, tol: float) -> None:
        problem = part.problem
        self.engine, self.part, self.criterion, self.tol = engine, part, criterion, _FINER * tol
        n = len(problem.linear) // 2
        self.gram = PartGram(problem.gram, np.arange(n))
        self.targets, self.C = problem.linear[:n], problem.upper[:n]
        self.total, self.scale = 2 * float(problem.totals[0]), problem.scale or 1.0

    def search(self) -> Array | None:
        """Return coefficients whose magnitudes have the sum; None if a width was not solved."""
        low = self._solved(0.0, None)  # where the nu form stands is far from it
        if low is None or self._sum(low) <= self.total:
            return low
        high = np.zeros_like(low)  # the widest tube holds a constant
        narrow, wide = 0.0, 0.5 * float(np.ptp(self.targets))
        for k in range(_WIDTHS):
            if wide - narrow <= _NARROW * self.tol * self.scale:
                break
            share = (self._sum(low) - self.total) / max(self._sum(low) - self._sum(high), 1e-300)
            share = 0.5 if k % (_HALVED + 1) == _HALVED else min(max(share, 0.02), 0.98)
            eps = narrow + share * (wide - narrow)
            b = self._solved(eps, low if share < 0.5 else high)
            if b is None:
                return None
            if self._sum(b) > self.total:
                narrow, low = eps, b
            else:
                wide, high = eps, b
        share = (self._sum(low) - self.total) / max(self._sum(low) - self._sum(high), 1e-300)
        return low + share * (high - low)

    def _sum(self, b: Array) -> float:
        return float(np.abs(b).sum())

    def _solved(self, eps: float, start: Array | None) -> Array | None:
        problem = BoxQP(self.gram, self.targets, -self.C, self.C, 0.0, eps, scale=self.scale)
        one = begin(self.engine, problem, start)
        one.steps, one.rounds = self.part.steps, self.part.rounds
        (end,) = converge(self.engine, [one], self.criterion, self.tol)
        self.part.steps, self.part.rounds = one.steps, one.rounds
        return one.b if end in (Status.SOLVED, Status.INACCURATE) else None
