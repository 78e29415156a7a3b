"""The spectral relaxation of K-means: a bound on every partition, and a start near the best.

The objective is tr A - tr(Y'AY) with A = S^1/2 K S^1/2 and Y = S^1/2 Z L^1/2, whose columns are
orthonormal and span the direction S^1/2 1. Without asking Y to come from a partition, the best Y
with this direction in its span is that direction and the k - 1 leading eigenvectors of A centred:
the objective of every partition is at least the trace of that matrix less its k - 1 largest
eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram, Gram, Source, centered, exact, scaled
from mercer.gram.policy import LAPACK_ROWS
from mercer.machines.clustering.lloyd import Lloyd
from mercer.machines.clustering.problem import Partition
from mercer.machines.clustering.seeding import Seeding, without_empty
from mercer.solvers.base import Watch
from mercer.solvers.eigen.dense import Eigh
from mercer.solvers.eigen.lanczos_solver import Lanczos
from mercer.solvers.eigen.problem import Eigenproblem, Modes

_ACCURACY = 1e-6  # of eigenvalues; the error of a value is far below that of its vector
_ROUNDING = 10.0  # times eps sqrt(n): eigenvalues below, of the largest, are none


@dataclass(frozen=True)
class Relaxation:
    """What no partition can beat.

    Attributes
    ----------
    bound : float
        No partition into so many clusters has a lower objective.
    objective : float
        That of the partition at hand.
    """

    bound: float
    objective: float

    @property
    def gap(self) -> float:
        """How far, at most, the partition is above the best one, relative to itself."""
        return 0.0 if self.objective <= 0 else max(0.0, 1.0 - self.bound / self.objective)


def relaxed(problem: Partition, labels: Array) -> Relaxation:
    """Bound the objective of all partitions, in float64 from the points."""
    gram, w = exact(problem.gram), problem.weights
    scatter = scaled(centered(gram, w), np.sqrt(w))
    bound = float(scatter.diag().sum())
    if problem.count > 1:
        values = _leading(scatter, problem.count - 1).values
        # a residual r moves an eigenvalue by no more than r
        bound -= float(np.maximum(values, 0.0).sum()) + _ACCURACY * len(values) * abs(values[0])
    return Relaxation(max(float(bound), 0.0), problem.objective(labels))


@dataclass(frozen=True, eq=False)
class LaterRelaxation:
    """A bound to be computed when someone asks: of the kernel and its rows, not of a stored matrix.

    Attributes
    ----------
    given : Source or Gram
        The kernel and the rows; a Gram where it is the data itself.
    question : callable
        Returns the problem on a Gram.
    labels : (n,) int array
        The partition at hand.
    """

    given: Source | Gram
    question: Callable[[Gram], Partition]
    labels: Array

    def compute(self) -> Relaxation:
        """Evaluate the kernel in float64, and bound."""
        return relaxed(self.question(exact(self.given)), self.labels)


@dataclass(frozen=True)
class Relaxed(Seeding):
    """Leading eigenvectors of S^1/2 K S^1/2, rows at unit length, parted by K-means."""

    def labels(self, problem: Partition, rng: np.random.Generator) -> Array:
        """Part the rows of the eigenvectors."""
        root = np.sqrt(problem.weights)
        vectors = _leading(scaled(problem.gram, root), problem.count).vectors
        rows = vectors / root[:, None]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(lengths > 0, lengths, 1.0)
        embedded = Partition(FactoredGram.of(_as_they_are, rows), problem.count, problem.weights)
        seed = int(rng.integers(2**31))
        parted = Lloyd(random_state=seed).run(embedded, Watch()).value.labels
        return without_empty(problem, parted)

    @property
    def repeatable(self) -> bool:
        """The eigenvectors are what they are."""
        return True


def _leading(gram: Gram, count: int) -> Modes:
    """Return the leading pairs, fewer where the others are the null space: one at least."""
    problem = Eigenproblem(gram, min(count, gram.rank))
    small = gram.factor is not None or gram.shape[0] <= LAPACK_ROWS
    lanczos = Lanczos(tol=_ACCURACY)
    solver = Eigh() if small or lanczos.refuses(problem) else lanczos
    modes: Modes = solver.run(problem, Watch()).value
    floor = _ROUNDING * float(np.finfo(gram.dtype).eps) * np.sqrt(gram.shape[0])
    rank = max(1, int((modes.values > floor * modes.values[0]).sum()))
    return Modes(modes.values[:rank], modes.vectors[:, :rank])


def _as_they_are(rows: Array) -> Array:
    return rows
