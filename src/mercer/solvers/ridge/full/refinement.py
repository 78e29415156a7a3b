"""Corrections by block steps, the true residual looked at after every few passes over K.

A method of block steps improves a correction with entries of K in float32; this adds it up, forms
the residual of all rows in float64, and asks for the next. What it stops by is what certificates
measure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.gram import Gram, ShiftedGram
from mercer.problems import Coefficients, LinearSystem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.full.bordered import Bordered
from mercer.solvers.ridge.full.products import in_float32

_PASSES = 8  # before the first look, ...
_MOST_PASSES = 16  # ... and at most, later: a look costs a pass, and momentum starts anew
_GOAL = 0.3  # of the tolerance: residuals met in a pass for which it is worth to look
_STALLED = 4  # looks without a smaller residual
_SMALLER = 0.99  # times the smallest residual so far counts as none


@dataclass
class Seen:
    """Residuals that block steps met on their way, as a guess of all of them."""

    squares: float = 0.0
    rows: int = 0

    def meet(self, residual: Array) -> None:
        """Count the residual of some rows."""
        self.squares += float(np.square(residual).sum())
        self.rows += len(residual)

    def norm(self, n: int) -> float:
        """Guess the norm of the residual of all n rows; infinite if none was met."""
        return sqrt(self.squares * n / self.rows) if self.rows else inf


class BlockSteps(ABC):
    """A way to improve x in (K + diag(shift)) x = r by some rows of K at a time."""

    @abstractmethod
    def passes(self, gram: Gram, R: Array, watch: Watch) -> Iterator[tuple[Array, Seen]]:
        """Improve a correction for the residuals R; after each pass over all rows, hand it out.

        With it go the residuals that were met in the pass. Where the time is over, a pass ends.
        """

    @abstractmethod
    def calm(self) -> bool:
        """Take shorter or plainer steps from now on; return whether there are any."""


@dataclass
class Refinement:
    """The loop around block steps, for all right-hand sides of one matrix.

    Attributes
    ----------
    bordered : Bordered
        The right-hand sides.
    exact : Gram
        K + diag(shift) in float64.
    steps : BlockSteps
        What finds corrections.
    tol : float
        Relative residual to stop at.
    max_iter : int
        The most passes over K.
    """

    bordered: Bordered
    exact: ShiftedGram
    steps: BlockSteps
    tol: float
    max_iter: int
    done: int = 0
    best: float = inf
    idle: int = 0
    X: Array = field(default_factory=lambda: np.empty((0, 0)))

    def run(self, start: Array | None, watch: Watch) -> Status:
        """Improve until the true residual is small, or the best that can be had."""
        base = self.exact.base
        X = np.zeros_like(self.bordered.right) if start is None else start
        gram, self.X = in_float32(base) or base, X
        while True:
            R, true = self._look(X, watch)
            if R is None:  # the time was over: what is known to be best is kept
                return Status.TIME_LIMIT
            ended = self._ended(true, watch)
            if ended is not None:
                return ended
            if not true <= 2 * self.best or self.idle >= _STALLED:  # off the way, or none left
                if not self._goes_on(gram is base):
                    return Status.INACCURATE if np.isfinite(self.best) else Status.NOT_FINITE
                gram, X, self.idle = base, self.X, 0
                R = self._residual(X)
            seen = Seen()
            with watch.keeping(), one_blas_thread():  # its threads would spin where ours work
                change, seen = self._correction(gram, R, true, watch)
                X = X + change
            if watch.late:
                if seen.norm(len(R)) < np.linalg.norm(R):
                    self.X = X
                return Status.TIME_LIMIT

    def _residual(self, X: Array) -> Array:
        B = self.bordered.right
        return B - self.exact @ X if np.any(X) else B.copy()

    def _look(self, X: Array, watch: Watch) -> tuple[Array | None, float]:
        """Return the residual of all rows in float64, and note whether it is the smallest."""
        R, true = None, inf
        with watch.keeping():
            R = self._residual(X)
            true = self.bordered.measure(X, R)
        self.idle = 0 if true <= _SMALLER * self.best else self.idle + 1
        if true < self.best:
            self.best, self.X = true, X
        return R, true

    def _ended(self, true: float, watch: Watch) -> Status | None:
        if true <= self.tol:
            return Status.SOLVED
        if watch.tick(self.done, true):
            return watch.stopped or Status.STOPPED
        return Status.ITERATION_LIMIT if self.done >= self.max_iter else None

    def _goes_on(self, in_float64: bool) -> bool:
        """Return whether there is another way: plainer steps, or entries of K in float64."""
        return self.steps.calm() or not in_float64

    def _correction(self, gram: Gram, R: Array, true: float, watch: Watch) -> tuple[Array, Seen]:
        count = min(max(_PASSES, min(self.done, _MOST_PASSES)), self.max_iter - self.done)
        goal = _GOAL * self.tol / true * float(np.linalg.norm(R))
        passes = self.steps.passes(gram, R, watch)
        while True:
            change, seen = next(passes)
            self.done += 1
            count -= 1
            if count == 0 or seen.norm(len(R)) <= goal or watch.late:
                return change, seen


def solve_by_blocks(
    solver: Any, problem: LinearSystem, make: Any, watch: Watch, start: Any
) -> Solution:
    """Run block steps for each group of targets that share a matrix.

    Parameters
    ----------
    solver : Solver
        With `tol` and `max_iter`.
    problem : LinearSystem
        What is asked.
    make : callable
        Returns the `BlockSteps` for a Gram and the diagonal that is added to it.
    watch : Watch
        The clock.
    start : Coefficients or None
        An earlier answer.
    """
    n, t = problem.targets.shape
    coef, intercept, status, done = np.empty((n, t)), np.zeros(t), Status.SOLVED, 0
    for columns in problem.groups():
        shift = problem.shift(columns[0])
        bordered = Bordered.of(problem, columns)
        exact, steps = ShiftedGram(problem.gram, shift), make(problem.gram, shift)
        loop = Refinement(bordered, exact, steps, solver.tol, solver.max_iter)
        ended = loop.run(None if start is None else bordered.start(start.coef[:, columns]), watch)
        coef[:, columns], intercept[columns] = bordered.answer(loop.X)
        done += loop.done
        status = status if ended is Status.SOLVED else ended
    return report(solver, Coefficients(coef, intercept), status, done, watch)


def needs_penalty(solver: Solver, problem: LinearSystem) -> str | None:
    """Return why a system without a positive diagonal added is refused; None if it has one."""
    if (problem.penalties > 0).all():
        return None
    return f"{type(solver).__name__} needs a positive penalty; use solver=Cholesky()"
