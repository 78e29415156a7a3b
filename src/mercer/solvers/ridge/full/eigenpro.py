"""Ridge equations by stochastic gradient steps, with the top of the spectrum taken out.

A gradient step is as short as the largest eigenvalue of K allows. The largest ones, with their
vectors, are known well enough from a sample of the rows; dividing the gradient by them along these
vectors allows steps as long as the first one left out. After EigenPro 2 (Ma, Belkin, Kernel
machines that adapt to GPUs for effective large batch training, 2019), here with a penalty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import Gram
from mercer.problems import LinearSystem
from mercer.resources import square_side
from mercer.solvers.base import Solution, Solver, Watch
from mercer.solvers.ridge.full.products import rows_product, square_part
from mercer.solvers.ridge.full.refinement import BlockSteps, Seen, needs_penalty, solve_by_blocks

_SAMPLE = 4.0  # times the root of n: rows that the spectrum is taken from
_LEAST_SAMPLE = 1000  # rows: decomposed in half a second
_COPIES = 4  # arrays of the size of the sample's matrix
_SHARE = 0.4  # of the memory budget, for them
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
        size = max(1, min(wanted, n, square_side(8.0 * _COPIES, _SHARE)))
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
