"""Ridge equations by accelerated block coordinate steps (sketch and project), K not stored.

Each step takes some rows at random, forms their part of the residual, and solves for their
coefficients with all others held; Nesterov's acceleration ties the steps together. Memory is that
of one block. After ASkotch (Rathore, Frangella, Yang, Derezinski, Udell, Have ASkotch: a neat
solution for large-scale kernel ridge regression, arXiv 2407.10070), whose constants these are.

Conjugate gradients reach small residuals sooner. After the time of some ten products with K, block
steps often have the smaller held-out error, up to four times sooner on kin40k: a fit with a short
time limit takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import StoredMatrix
from mercer.backends.lapack import one_blas_thread
from mercer.gram import Gram, LazyGram, ShiftedGram
from mercer.machines.ridge.conjugate_gradient import Bordered, in_float32
from mercer.machines.ridge.problem import Coefficients, LinearSystem
from mercer.resources import rows_at_once, square_side
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- products ------------------------------------------------------------------------------------
#
# Products with some rows of K, whose entries are dropped after use.

_ROWS = 512  # of a Gram that hands out rows, at a time


def rows_product(gram: Gram, index: Array, V: Array) -> Array:
    """Return K[index] V.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which rows.
    V : (n, k) array
        What they are multiplied by.

    Returns
    -------
    (m, k) float64 array
    """
    if isinstance(gram, LazyGram):
        return gram.part_product(index, V)
    product = np.empty((len(index), V.shape[1]))
    step = rows_at_once(gram.shape[0], _ROWS, arrays=2)
    for first in range(0, len(index), step):
        part = slice(first, first + step)
        product[part] = gram.rows(index[part]) @ V
    return product


def stored_part(gram: Gram, index: Array) -> StoredMatrix:
    """Return K[index, index], held where the backend works with it.

    Parameters
    ----------
    gram : Gram
        K.
    index : (m,) int array
        Which rows and columns.
    """
    if isinstance(gram, LazyGram):
        return gram.stored_part(index)
    part = np.empty((len(index), len(index)))
    step = rows_at_once(gram.shape[0], _ROWS, arrays=2)
    for first in range(0, len(index), step):
        rows = slice(first, first + step)
        part[rows] = gram.rows(index[rows])[:, index]
    return choose_backend().stored(part)


# --- refinement ----------------------------------------------------------------------------------
#
# Corrections by block steps, the true residual looked at after every few passes over K.
#
# Block steps improve a correction with entries of K in float32; this adds it up, forms the
# residual of all rows in float64, and asks for the next. What it stops by is what certificates
# measure.

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


@dataclass
class Refinement:
    """The loop around block steps, for all right-hand sides of one matrix.

    Attributes
    ----------
    bordered : Bordered
        The right-hand sides.
    exact : Gram
        K + diag(shift) in float64.
    steps : Projections
        What finds corrections.
    tol : float
        Relative residual to stop at.
    max_iter : int
        The most passes over K.
    """

    bordered: Bordered
    exact: ShiftedGram
    steps: _Projections
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


# --- sketch and project --------------------------------------------------------------------------

# The factor of a block takes b^3 / 3 operations, its residual n b evaluations of about twenty
# times the time of one: up to this many times the root of n, the factor is the lesser part.
_BLOCK = 8.0
_LEAST_BLOCK = 500  # rows: up to here calls cost more than what they do
_COPIES = 3  # arrays of the size of a block's matrix
_SHARE = 0.5  # of the memory budget, for them
_ADDED = float(np.finfo(np.float32).eps)  # of the diagonal of a block, at first
_TINY = float(np.finfo(float).tiny)
_SMALLEST = 1e-8  # of k(x, x): a penalty counts as no less, or acceleration would never let go


@dataclass(frozen=True)
class SketchAndProject(Solver):
    """Accelerated block coordinate steps; memory is that of one block.

    Parameters
    ----------
    tol : float
        Stop when the residual of every target, the bias included, is below tol times its
        right-hand side, recomputed in float64 on all rows.
    max_iter : int
        Largest number of passes over all rows of K.
    block : int or None
        Rows of a block; None for 500 or eight times the root of the rows, whichever is more. Fewer
        are taken where the memory budget is small.
    rank, accelerate : None
        Deprecated and without effect.
    random_state : int
        Seed of the draws.
    """

    answers = LinearSystem
    without_effect = ("rank", "accelerate")

    tol: float = 3e-7
    max_iter: int = 500
    block: int | None = None
    rank: int | None = None
    accelerate: bool | None = None
    random_state: int = 0

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with a positive diagonal added."""
        if (problem.penalties > 0).all():
            return None
        return "SketchAndProject needs a positive penalty; use solver=Cholesky()"

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        coef, intercept, status, done = np.empty((n, t)), np.zeros(t), Status.SOLVED, 0
        for columns in problem.groups():
            shift = problem.shift(columns[0])
            bordered, steps = Bordered.of(problem, columns), self._steps(problem.gram, shift)
            exact = ShiftedGram(problem.gram, shift)
            loop = Refinement(bordered, exact, steps, self.tol, self.max_iter)
            begin = None if start is None else bordered.start(start.coef[:, columns])
            ended = loop.run(begin, watch)
            coef[:, columns], intercept[columns] = bordered.answer(loop.X)
            done += loop.done
            status = status if ended is Status.SOLVED else ended
        return report(self, Coefficients(coef, intercept), status, done, watch)

    def _steps(self, gram: Gram, shift: Array) -> _Projections:
        n = len(shift)
        wanted = max(_LEAST_BLOCK, int(_BLOCK * sqrt(n))) if self.block is None else self.block
        size = max(1, min(wanted, n, square_side(8.0 * _COPIES, _SHARE)))
        # the rate that acceleration counts on, between none and that of a system without coupling
        least = float(shift.min()) / max(float(gram.diag().mean()), np.finfo(float).tiny)
        rate = min(max(least, _SMALLEST), size / n)
        return _Projections(shift, size, rate, np.random.default_rng(self.random_state))


@dataclass
class _Projections:
    """Block steps of one system; `rate` is zero for steps without momentum."""

    shift: Array
    size: int
    rate: float
    rng: np.random.Generator

    def passes(self, gram: Gram, R: Array, watch: Watch) -> Iterator[tuple[Array, Seen]]:
        """Improve a correction for the residuals R; after each pass over all rows, hand it out.

        With it go the residuals that were met in the pass. Where the time is over, a pass ends.
        """
        n, blocks = len(R), -(-len(R) // self.size)
        spread = n / self.size
        momentum = 1.0 / sqrt(self.rate * spread) if self.rate else 0.0
        memory = 1.0 - sqrt(self.rate / spread)
        mixture = 1.0 / (1.0 + momentum * spread) if self.rate else 0.0
        x, v = np.zeros_like(R), np.zeros_like(R)
        y = x
        while True:
            seen = Seen()
            for index in np.array_split(self.rng.permutation(n), blocks):
                if watch.late:
                    break
                rows = np.sort(index)
                residual = rows_product(gram, rows, y) + self.shift[rows, None] * y[rows] - R[rows]
                seen.meet(residual)
                step = self._solver(gram, rows)(residual)
                x = y.copy()
                x[rows] -= step
                if not self.rate:
                    y = x
                    continue
                v = memory * v + (1.0 - memory) * y
                v[rows] -= momentum * step
                y = mixture * v + (1.0 - mixture) * x
            yield x, seen

    def calm(self) -> bool:
        """Go without momentum from now on; return whether there was any."""
        was, self.rate = self.rate, 0.0
        return was > 0

    def _solver(self, gram: Gram, rows: Array) -> Callable[[Array], Array]:
        """Return what solves with the matrix of a block."""
        shift = self.shift[rows]
        K = stored_part(gram, rows)
        factor, added = K.cholesky(shift), 0.0
        while factor is None and added < np.inf:  # entries in float32 of a singular matrix
            added = 10 * added or _ADDED * max(float((K.diagonal() + shift).mean()), _TINY)
            factor = K.cholesky(shift + added)
        return (lambda v: np.full_like(v, np.nan)) if factor is None else factor.solve
