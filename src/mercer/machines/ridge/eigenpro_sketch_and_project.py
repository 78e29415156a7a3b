"""Ridge solvers if K is not stored: block refinement, EigenPro, sketch-and-project."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.lapack import one_blas_thread
from mercer.deadline import seconds_left
from mercer.gram import Gram, LazyGram, PrecomputedGram, ShiftedGram, pivoted_cholesky
from mercer.machines.ridge.conjugate_gradient import (
    Bordered,
    ConjugateGradient,
    in_float32,
    rows_product,
    square_part,
    stored_part,
)
from mercer.machines.ridge.problem import Coefficients, LinearSystem
from mercer.resources import MemoryBudgetError, format_bytes, square_side
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- refinement ----------------------------------------------------------------------------------
#
# Corrections by block steps, the true residual looked at after every few passes over K.
#
# A method of block steps improves a correction with entries of K in float32; this adds it up,
# forms the residual of all rows in float64, and asks for the next. What it stops by is what
# certificates measure.

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


# --- eigenpro ------------------------------------------------------------------------------------
#
# Ridge equations by stochastic gradient steps, with the top of the spectrum taken out.
#
# A gradient step is as short as the largest eigenvalue of K allows. The largest ones, with their
# vectors, are known well enough from a sample of the rows; dividing the gradient by them along
# these vectors allows steps as long as the first one left out. After EigenPro 2 (Ma, Belkin,
# Kernel machines that adapt to GPUs for effective large batch training, 2019), here with a
# penalty.

_SAMPLE = 4.0  # times the root of n: rows that the spectrum is taken from
_LEAST_SAMPLE = 1000  # rows: decomposed in half a second
_EIGENPRO_COPIES = 4  # arrays of the size of the sample's matrix
_EIGENPRO_SHARE = 0.4  # of the memory budget, for them
_TAKEN = 0.2  # of the sample: eigenvalues beyond are those of the sample, not of K
_DAMPING = 0.95  # power of what the spectrum is divided by: it is known about, not exactly
_BATCH = 0.1  # of all rows, at most


@dataclass(frozen=True)
class EigenPro(Solver):
    """Preconditioned stochastic gradient steps; memory is that of a sample of the rows.

    Each pass costs the least of all ways here, and a held-out error close to the end's is reached
    in few of them; a small residual under a small penalty takes many. For hundreds of thousands of
    rows, with a time limit.

    Parameters
    ----------
    tol : float
        Stop when the residual of every target, the bias included, is below tol times its
        right-hand side, recomputed in float64 on all rows.
    max_iter : int
        Largest number of passes over all rows of K.
    sample : int or None
        Rows that the spectrum is taken from; None for 1000 or four times the root of the rows,
        whichever is more.
    rank : int or None
        Eigenvalues taken out; None for a fifth of the sample.
    batch : int or None
        Rows of a step; None for as many as shorten it by half.
    random_state : int
        Seed of the draws.
    """

    answers = LinearSystem

    tol: float = 3e-7
    max_iter: int = 500
    sample: int | None = None
    rank: int | None = None
    batch: int | None = None
    random_state: int = 0

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with a positive diagonal added."""
        return needs_penalty(self, problem)

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        return solve_by_blocks(self, problem, self._steps, watch, start)

    def _steps(self, gram: Gram, shift: Array) -> BlockSteps:
        """Decompose a sample, in coordinates where the same penalty is added for every row."""
        n, rng = len(shift), np.random.default_rng(self.random_state)
        wanted = max(_LEAST_SAMPLE, int(_SAMPLE * sqrt(n))) if self.sample is None else self.sample
        size = max(1, min(wanted, n, square_side(8.0 * _EIGENPRO_COPIES, _EIGENPRO_SHARE)))
        penalty = float(shift.min())
        root = np.sqrt(penalty / shift)
        drawn = np.sort(rng.choice(n, size, replace=False))
        A = square_part(gram, drawn) * np.outer(root[drawn], root[drawn])
        values, vectors = choose_backend().eigh(A / size)
        taken = max(1, int(_TAKEN * size)) if self.rank is None else self.rank
        first = max(len(values) - taken, 1)
        floor = penalty / n
        tail = max(float(values[first - 1]), 0.0) + floor
        top, axes = np.maximum(values[first:], 0.0) + floor, vectors[:, first:]
        share = (1.0 - (tail / np.maximum(top, tail)) ** _DAMPING) / (size * top)
        largest = float((gram.diag() * root**2).max(initial=0.0)) + penalty
        left = tail**_DAMPING * float(top.max(initial=tail)) ** (1.0 - _DAMPING)
        batch = self.batch or max(1, min(int(largest / left), int(_BATCH * n)))
        step = 1.0 / (largest + (batch - 1) * left)
        return _GradientSteps(root, penalty, drawn, axes, share, min(batch, n), step, rng)


@dataclass
class _GradientSteps(BlockSteps):
    """Steps of one system."""

    root: Array
    penalty: float
    drawn: Array
    axes: Array
    share: Array
    batch: int
    step: float
    rng: np.random.Generator

    def passes(self, gram: Gram, R: Array, watch: Watch) -> Iterator[tuple[Array, Seen]]:
        """Improve a correction by batches in random order, all rows once in each pass."""
        n, root = len(R), self.root[:, None]
        right, c = root * R, np.zeros_like(R)
        while True:
            seen = Seen()
            for index in np.array_split(self.rng.permutation(n), -(-n // self.batch)):
                if watch.late:
                    break
                rows = np.sort(index)
                product = root[rows] * rows_product(gram, rows, root * c)
                residual = product + self.penalty * c[rows] - right[rows]
                seen.meet(residual)
                c[rows] -= self.step * residual
                c[self.drawn] += self.step * self._taken_out(gram, rows, root[rows] * residual)
            yield root * c, seen

    def calm(self) -> bool:
        """Halve the steps."""
        self.step /= 2
        return True

    def _taken_out(self, gram: Gram, rows: Array, weighted: Array) -> Array:
        """Return what the step must not do along the top of the spectrum."""
        pull = self.root[self.drawn, None] * rows_product(gram, self.drawn, weighted, rows)
        return np.asarray(self.axes @ (self.share[:, None] * (self.axes.T @ pull)))


# --- sketch and project --------------------------------------------------------------------------
#
# Ridge equations by accelerated block coordinate steps: sketch and project.
#
# Each step takes some rows at random, forms their part of the residual, and solves for their
# coefficients with all others held; Nesterov's acceleration ties the steps together. Memory is
# that of one block. After ASkotch (Rathore, Frangella, Yang, Derezinski, Udell, Have ASkotch: a
# neat solution for large-scale kernel ridge regression, arXiv 2407.10070), whose constants these
# are.

# The factor of a block takes b^3 / 3 operations, its residual n b evaluations of about twenty
# times the time of one: up to this many times the root of n, the factor is the lesser part.
_BLOCK = 8.0
_LEAST_BLOCK = 500  # rows: up to here calls cost more than what they do
_SKETCH_AND_PROJECT_COPIES = 3  # arrays of the size of a block's matrix
_SKETCH_AND_PROJECT_SHARE = 0.5  # of the memory budget, for them
_POWERS = 10  # steps of the power method for the length of a step, as published
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
    rank : int or None
        Replace the matrix of a block by a randomly pivoted Cholesky factor of this rank plus a
        multiple of the identity, and shorten the step accordingly (100 is published). None solves
        with the block itself, which on processors costs less than its residual.
    accelerate : bool
        Whether steps have momentum.
    random_state : int
        Seed of the draws.
    """

    answers = LinearSystem

    tol: float = 3e-7
    max_iter: int = 500
    block: int | None = None
    rank: int | None = None
    accelerate: bool = True
    random_state: int = 0

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with a positive diagonal added."""
        return needs_penalty(self, problem)

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        return solve_by_blocks(self, problem, self._steps, watch, start)

    def _steps(self, gram: Gram, shift: Array) -> BlockSteps:
        n = len(shift)
        wanted = max(_LEAST_BLOCK, int(_BLOCK * sqrt(n))) if self.block is None else self.block
        size = max(
            1,
            min(
                wanted, n, square_side(8.0 * _SKETCH_AND_PROJECT_COPIES, _SKETCH_AND_PROJECT_SHARE)
            ),
        )
        # the rate that acceleration counts on, between none and that of a system without coupling
        least = float(shift.min()) / max(float(gram.diag().mean()), np.finfo(float).tiny)
        rate = min(max(least, _SMALLEST), size / n)
        rng = np.random.default_rng(self.random_state)
        return _Projections(shift, size, self.rank, rate if self.accelerate else 0.0, rng)


@dataclass
class _Projections(BlockSteps):
    """Steps of one system; `rate` is zero for steps without momentum."""

    shift: Array
    size: int
    rank: int | None
    rate: float
    rng: np.random.Generator

    def passes(self, gram: Gram, R: Array, watch: Watch) -> Iterator[tuple[Array, Seen]]:
        """Improve a correction by blocks in random order, all rows once in each pass."""
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
        """Go without momentum."""
        was, self.rate = self.rate, 0.0
        return was > 0

    def _solver(self, gram: Gram, rows: Array) -> Callable[[Array], Array]:
        """Return what solves, exactly or about, with the matrix of a block."""
        shift = self.shift[rows]
        if self.rank is not None and self.rank < len(rows):
            return _low_rank(square_part(gram, rows), shift, self.rank, self.rng)
        K = stored_part(gram, rows)
        factor, added = K.cholesky(shift), 0.0
        while factor is None and added < np.inf:  # entries in float32 of a singular matrix
            added = 10 * added or _ADDED * max(float((K.diagonal() + shift).mean()), _TINY)
            factor = K.cholesky(shift + added)
        return (lambda v: np.full_like(v, np.nan)) if factor is None else factor.solve


def _low_rank(
    A: Array, shift: Array, rank: int, rng: np.random.Generator
) -> Callable[[Array], Array]:
    """Return v -> step (F F' + (left + shift) I)^-1 v, the step as long as curvature allows."""
    rough = pivoted_cholesky(PrecomputedGram(A), rank, int(rng.integers(1 << 31)))
    values, axes = np.linalg.eigh(rough.factor.T @ rough.factor)
    kept = values > np.finfo(float).eps * values.max(initial=0.0)
    values = values[kept]
    U = (rough.factor @ axes[:, kept]) / np.sqrt(values)
    damping = shift + (values.min() if len(values) else 0.0)
    d = damping[:, None]
    G = U * np.sqrt(values)
    inner = np.eye(len(values)) + G.T @ (G / d)

    def inverse(v: Array) -> Array:
        return np.asarray(v / d - (G / d) @ np.linalg.solve(inner, G.T @ (v / d)))

    v, largest = rng.standard_normal((len(A), 1)), 1.0
    for _ in range(_POWERS):
        v = inverse(A @ v + shift[:, None] * v)
        largest = float(np.linalg.norm(v))
        v /= largest
    return lambda r: inverse(r) / max(largest, 1.0)


# --- choice --------------------------------------------------------------------------------------
#
# Which way the full kernel is solved with where K is not stored: by memory and measured time.

_TOL = 3e-7  # a third of what certificates ask for
_SMALL = 20_000  # rows: products take a fraction of a second, and nothing has to be measured
_LEAST_RANK = 100  # columns of a preconditioner that conjugate gradients are worth it with
_MEASURED = 64  # rows of a product, for its time
_PRODUCTS = 30  # that conjugate gradients need before they have much to show
_LONGEST = 3600.0  # seconds of one product that nobody waits for unasked


def past_memory(gram: LazyGram) -> Solver:
    """Choose a solver of ridge equations that does not store K.

    Conjugate gradients need the fewest passes over K, and a preconditioner of n rows; block
    steps need memory for a block alone, and have something to show before a first pass is over.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    Solver
        `ConjugateGradient`, or `SketchAndProject` where its preconditioner does not fit the memory
        budget or the time limit of the fit does not hold thirty products with K. A product that
        takes more than an hour is refused if there is no time limit.
    """
    n = gram.shape[0]
    if n <= _SMALL:
        return ConjugateGradient(tol=_TOL)
    product, left = seconds_of_product(gram), seconds_left()
    if left is None and product > _LONGEST:
        raise MemoryBudgetError(
            f"exact kernel ridge on {n} rows: the matrix takes {format_bytes(8.0 * n * n)} and "
            "does not fit the memory budget, and one product without storing it takes about "
            f"{product / 3600:.1f} hours here. Alternatives: landmarks in place of the kernel "
            "(approximation=Nystrom(2000), of mercer.approximation); a kernel with a small "
            "explicit feature map (Linear, low-degree Polynomial); fewer rows; a larger budget "
            "with mercer.config(memory=...); a time limit, after which the fit ends with what it "
            "has (time_limit=...); or ask for the long way with solver=ConjugateGradient()."
        )
    conjugate = ConjugateGradient(tol=_TOL)
    if conjugate.sizes(n)[0] < _LEAST_RANK or (left is not None and left < _PRODUCTS * product):
        return SketchAndProject(tol=_TOL)
    return conjugate


def seconds_of_product(gram: LazyGram) -> float:
    """Return about how long a product with K takes, from that of a few rows.

    Parameters
    ----------
    gram : LazyGram
        K.

    Returns
    -------
    float
        Seconds; entries are evaluated for one of their two places only.
    """
    n = gram.shape[0]
    rows = np.linspace(0, n - 1, min(_MEASURED, n)).astype(np.int64)
    started = perf_counter()
    rows_product(gram, rows, np.ones((n, 1)))
    return (perf_counter() - started) * n / len(rows) / 2
