"""Ridge equations by accelerated block coordinate steps: sketch and project.

Each step takes some rows at random, forms their part of the residual, and solves for their
coefficients with all others held; Nesterov's acceleration ties the steps together. Memory is that
of one block. After ASkotch (Rathore, Frangella, Yang, Derezinski, Udell, Have ASkotch: a neat
solution for large-scale kernel ridge regression, arXiv 2407.10070), whose constants these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import Gram, PrecomputedGram, pivoted_cholesky
from mercer.problems import LinearSystem
from mercer.resources import square_side
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.ridge.full.products import rows_product, square_part, stored_part
from mercer.solvers.ridge.full.refinement import BlockSteps, Seen, needs_penalty, solve_by_blocks

# The factor of a block takes b^3 / 3 operations, its residual n b evaluations of about twenty
# times the time of one: up to this many times the root of n, the factor is the lesser part.
_BLOCK = 8.0
_LEAST_BLOCK = 500  # rows: up to here calls cost more than what they do
_COPIES = 3  # arrays of the size of a block's matrix
_SHARE = 0.5  # of the memory budget, for them
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
        size = max(1, min(wanted, n, square_side(8.0 * _COPIES, _SHARE)))
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
