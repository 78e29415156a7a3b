"""Linear systems with K = F F' by products with F alone: conjugate gradients in the features.

With features of landmarks this is the form of Falkon (Rudi, Carratino and Rosasco, 2017): an
iteration is one pass over the rows, k(x, landmarks) is never written out where the budget forbids
it, and the preconditioner is a Cholesky factor of what a sample of the rows makes of F'SF.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram, StreamedGram
from mercer.gram.policy import FLOAT32_RANGE
from mercer.points import is_sparse
from mercer.problems import Coefficients, LinearSystem
from mercer.resources import within_budget
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.normal_equations import CardEquations, NormalEquations, centred_targets
from mercer.solvers.ridge.normal_matrix import NormalMatrix, Preconditioner, is_mixed_late
from mercer.solvers.ridge.primal import Primal

_TINY = float(np.finfo(float).tiny)
_STEPS = 80  # with one preconditioner; a better one costs less than many more
_GROWTH = 4  # times the rows of a sample that did not serve
_RESTARTS = 8  # each must halve the true residual
# Nanoseconds on one core: an entry of a row b read from memory in a pass, or evaluated (Gaussian),
# and a row of the preconditioner over m^2, twice that where it is mixed first. A sample of 6 rows
# for each feature leaves 45 passes to do, twice as many where a few rows are unlike all others.
_READ, _EVALUATED, _ROW = 0.55, 3.0, 0.022
_FEW, _PASSES = 6, 90
_SINGLE = 2.5e-7  # of an entry: what float32 and sums in it get wrong
_MOVED = 0.3  # of the equations, preconditioned: each round in float64 leaves this share of errors
_SERVES = 0.1  # of the residual before: with less left, refinement needs no conjugate directions
_ROUND = 1e-4  # of the residual at its start: where a round in float32 ends
_LAST = 2e-5  # of it: where the last one may end, since a residual costs as much as ten steps
_SURE = 10  # times the drift that was seen: what a round is believed to drift at most
_LEAST_GOAL = 0.1  # of the tolerance: with less left beside the drift, the residual is looked at
_WRITTEN = 4  # times the features: what work with all of them at once takes
_HELD = 1.2  # times the rows b: what holding them takes


@dataclass(frozen=True)
class PrimalConjugateGradient(Solver):
    """Solve (G'SG + penalty I) w = G'S y for the features G = F, centred when there is a bias.

    All targets and penalties share every pass over the rows. The rows of features, or of the
    kernel's values at landmarks, are held where they fit the memory budget, and evaluated anew in
    every pass where they do not.

    Parameters
    ----------
    tol : float
        Stop when the error of f, in the norm of the problem, is below tol times f, as the
        preconditioner measures it; and the residual of the equations below tol times their
        right-hand side.
    max_iter : int
        Largest number of passes.
    sample : int or None
        Rows that the preconditioner is first made of; None weighs what they cost against what the
        passes cost that they save.
    random_state : int
        Draws them.
    """

    answers = LinearSystem

    tol: float = 1e-8
    max_iter: int = 1000
    sample: int | None = None
    random_state: int = 0

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with dense features and a penalty."""
        if not isinstance(problem.gram, FactoredGram) or is_sparse(problem.gram.written):
            return (
                "PrimalConjugateGradient needs a LinearSystem whose kernel has dense features, "
                "such as those of approximation=Nystrom(1000)"
            )
        if not (problem.penalties > 0).all():
            return "PrimalConjugateGradient needs a positive penalty; use solver=Primal()"
        return None

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Descend with a preconditioner of some rows, then of more, until of all."""
        problem, scales = _scaled(problem)
        found = self._on_card(problem, watch, None if start is None else start.weights, scales)
        if found is not None:
            return found
        gram: Any = problem.gram
        rows, n = self.sample or sample_rows(problem), gram.shape[0]
        if rows < n:
            precondition = Preconditioner.of(problem, rows, self.random_state)
            system = NormalEquations.of(held(gram, precondition), problem)
        else:
            centre, pulled = centred_targets(problem)
            whole = NormalMatrix.of(problem, np.column_stack([pulled, problem.row_weights]))
            precondition = Preconditioner.of_matrix(whole.matrix, problem)
            system = NormalEquations.from_sums(whole.gram, problem, centre, pulled, whole.sums)
        W = np.zeros_like(system.right)
        if start is not None and start.weights is not None:
            W = start.weights / scales
        descent = _Descent(self, system, watch, W)
        while True:
            ended = descent.run(precondition, rows >= n)
            if ended is not Status.INACCURATE or descent.steps >= self.max_iter:
                break
            if descent.system.is_rough:  # float32 did not serve
                descent.system = replace(system, quick=gram)
            elif rows < n:
                rows *= _GROWTH
                precondition = Preconditioner.of(problem, min(rows, n), self.random_state)
            else:
                break
        if ended is Status.INACCURATE and rows >= n and _can_be_written(gram):
            return self._written_out(problem, scales, watch)
        weights, intercept = scales * descent.W, scales * system.intercept(descent.W)
        value = Coefficients(np.zeros((0, weights.shape[1])), intercept, weights)
        return report(self, value, ended, descent.steps, watch)

    def _on_card(
        self, problem: LinearSystem, watch: Watch, weights: Array | None, scales: Array
    ) -> Solution | None:
        """Descend with rows that stay on a card; None without one, and where float32 fails."""
        system = CardEquations.of(problem)
        if system is None:
            return None
        n = problem.gram.shape[0]
        rows = self.sample or system.first_sample()
        W = np.zeros_like(system.right) if weights is None else weights / scales
        descent = _Descent(self, system, watch, W)
        while True:
            precondition = Preconditioner(list(system.factors(rows, self.random_state)))
            ended = descent.run(precondition, is_whole=False)
            if ended is not Status.INACCURATE or rows >= n or descent.steps >= self.max_iter:
                break
            rows = system.larger_sample(rows)
        if ended is Status.INACCURATE:
            return None
        found, intercept = scales * descent.W, scales * system.intercept(descent.W)
        value = Coefficients(np.zeros((0, found.shape[1])), intercept, found)
        return report(self, value, ended, descent.steps, watch)

    def _written_out(self, problem: LinearSystem, scales: Array, watch: Watch) -> Solution:
        """Answer by features written out, which are known to more digits than products with R."""
        found = Primal().run(problem, watch)
        value = found.value
        forms = (scales * value.coef, scales * value.intercept, scales * value.weights)
        return replace(found, value=Coefficients(*forms))


def _can_be_written(gram: Any) -> bool:
    return within_budget(_WRITTEN * 8.0 * gram.shape[0] * gram.rank)


def _scaled(problem: LinearSystem) -> tuple[LinearSystem, Array]:
    """Divide targets by powers of two, so that squares of them are numbers."""
    largest = np.abs(problem.targets).max(axis=0, initial=0.0)
    scales = np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1])
    return replace(problem, targets=problem.targets / scales), scales


def sample_rows(problem: LinearSystem) -> int:
    """Return how many rows the preconditioner is made of: few and many passes, or all and few."""
    gram: Any = problem.gram
    n, m = int(gram.shape[0]), int(gram.rank)
    entry = _READ if _is_held(gram) or _fits(gram, np.float32) else _EVALUATED
    few = min(n, _FEW * m)
    passes = _PASSES * entry * float(n) * m
    row = _ROW * float(m) ** 2 * (1 if is_mixed_late(problem) else 2)
    return few if (n - few) * row > passes else n


def held(gram: FactoredGram, precondition: Preconditioner) -> FactoredGram:
    """Return the Gram with rows that are read from memory, if they fit the budget.

    In float32 where its rounding moves the equations by less than they are preconditioned to.
    """
    if not isinstance(gram, StreamedGram) or _is_held(gram):
        return gram
    size = float(np.sqrt(gram.longest().max(initial=0.0)))
    rounding = _SINGLE * size * np.sqrt(gram.shape[0]) * precondition.amplified(gram.map.mixing)
    in_range = FLOAT32_RANGE[0] < size**2 < FLOAT32_RANGE[1]
    for dtype in (np.float32, np.float64) if rounding < _MOVED and in_range else (np.float64,):
        if _fits(gram, dtype):
            return gram.hold(dtype)
    return gram


def _is_held(gram: FactoredGram) -> bool:
    return gram.written is not None or gram.nbytes > 0


def _fits(gram: Any, dtype: Any) -> bool:
    needed = _HELD * np.dtype(dtype).itemsize * gram.shape[0] * gram.width
    return bool(gram.on_card or within_budget(needed))


class _Descent:
    """Conjugate gradients, one recurrence per column, all sharing each pass."""

    def __init__(
        self,
        solver: PrimalConjugateGradient,
        system: NormalEquations | CardEquations,
        watch: Watch,
        W: Array,
    ) -> None:
        self.solver, self.system, self.watch = solver, system, watch
        self.W, self.steps = W, 0

    def run(self, precondition: Preconditioner, is_whole: bool) -> Status:
        """Descend, look at the true residual, and descend again from there if it is not small."""
        right = self.system.right
        sizes = np.maximum(_sizes(right, precondition(right)), _TINY)
        ended = self._refine(precondition, sizes) if is_whole else None
        if ended is not None:
            return ended
        before, drift, expected = np.inf, np.inf, right
        for _ in range(_RESTARTS):
            R, worst = self._look_in_time(precondition, sizes)
            if R is None:
                return Status.TIME_LIMIT
            if not np.isfinite(worst):
                return Status.NOT_FINITE
            if worst <= self.solver.tol:
                return Status.SOLVED
            if worst > 0.5 * before:
                return Status.INACCURATE
            # Products were off by this share of where their round began. What float64 itself gets
            # wrong of W is not seen by this, and far less than what float32 does.
            if np.isfinite(before) and self.system.is_rough:
                off = R - expected
                drift = float((_sizes(off, precondition(off)) / sizes).max(initial=0.0)) / before
            before = worst
            unseen = _SURE * drift * worst
            ended, expected, reached = self._descend(
                R, sizes, self._goal(worst, unseen), precondition
            )
            if ended is not Status.SOLVED or reached + unseen <= self.solver.tol:
                return ended
        return Status.INACCURATE

    def _goal(self, worst: float, unseen: float) -> float:
        """Return where a round ends: far enough that no look is needed after it, where it can."""
        tol = self.solver.tol
        if self.system.is_rough and 0.5 * tol < _LAST * worst:  # more would be lost again
            return max(0.5 * tol, _ROUND * worst)
        return min(0.5 * tol, tol - unseen) if unseen <= (1 - _LEAST_GOAL) * tol else 0.5 * tol

    def _look_in_time(
        self, precondition: Preconditioner, sizes: Array
    ) -> tuple[Array | None, float]:
        """Look; None where the time was over before, and there is an answer to be kept."""
        R, worst = None, np.inf
        with self.watch.keeping(lambda: bool(np.any(self.W))):
            R, worst = self._look(precondition, sizes)
        return R, worst

    def _look(self, precondition: Preconditioner, sizes: Array) -> tuple[Array, float]:
        """Return the true residual, and the largest of its sizes."""
        right = self.system.right
        R = self.system.residual(self.W) if np.any(self.W) else right.copy()
        R[:, ~right.any(axis=0)] = 0.0
        return R, float((_sizes(R, precondition(R)) / sizes).max(initial=0.0))

    def _refine(self, precondition: Preconditioner, sizes: Array) -> Status | None:
        """Solve with the factor of all rows, as long as each time leaves a tenth; None if not."""
        before, worst = 1.0 / _SERVES, 0.0
        if not np.any(self.W):
            self.W = precondition(self.system.right)
        for _ in range(_RESTARTS):
            R, worst = self._look(precondition, sizes)
            if worst <= self.solver.tol:
                return Status.SOLVED
            if not worst < _SERVES * before:
                break
            self.W, before = self.W + precondition(R), worst
            self.steps += 1
            if self.watch.tick(self.steps, worst):
                return self.watch.stopped or Status.STOPPED
            if self.steps >= self.solver.max_iter:
                return Status.ITERATION_LIMIT
        if not worst <= 1:
            self.W = np.zeros_like(self.W)
        return None

    def _descend(
        self, R: Array, sizes: Array, goal: float, precondition: Preconditioner
    ) -> tuple[Status, Array, float]:
        """Take steps; return how they ended, and the residual as they have it, with its size."""
        W, ended, worst = self.W.copy(), Status.TIME_LIMIT, np.inf
        with self.watch.keeping():
            Z = precondition(R)
            P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
            ended = Status.INACCURATE
            for _ in range(_STEPS):
                AP = self.system.product(P)
                curvature = np.einsum("ij,ij->j", P, AP)
                step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
                W += step * P
                R = R - step * AP
                self.steps += 1
                Z = precondition(R)
                worst = float((_sizes(R, Z) / sizes).max(initial=0.0))
                if self.watch.tick(self.steps, worst):
                    ended = self.watch.stopped or Status.STOPPED
                    break
                if not worst > goal:
                    ended = Status.SOLVED
                    break
                if self.steps >= self.solver.max_iter:
                    ended = Status.ITERATION_LIMIT
                    break
                rz, before = np.einsum("ij,ij->j", R, Z), rz
                P = Z + np.divide(rz, before, out=np.zeros_like(rz), where=before > 0) * P
        self.W = W
        return ended, R, worst


def _sizes(R: Array, Z: Array) -> Array:
    """Return the size of residuals as the preconditioner measures it: sqrt(r'P^-1 r)."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->j", R, Z), 0.0)))
