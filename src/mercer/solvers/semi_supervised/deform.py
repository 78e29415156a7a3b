"""The deformed kernel of labelled rows: one system with all rows, or with the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.points import to_dense
from mercer.problems import Deformation, DeformedKernel
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_EPS = float(np.finfo(np.float64).eps)
_COPIES = 4  # of n^2 numbers: K, M K, its factor, and a product on the way


@dataclass(frozen=True)
class Deform(Solver):
    """Solve (I + K M) U = K J for U = K T J, J the labelled columns; then T J = J - M U.

    With K = F F' by D < n features the system is I + F'MF, of size D. The second form has no
    inverse in it: T is as exact as U.
    """

    answers = DeformedKernel

    def run(self, problem: DeformedKernel, watch: Watch, start: Any = None) -> Solution:
        """Solve, directly."""
        if problem.ratio == 0:
            K = np.asarray(problem.gram.rows(problem.labelled), dtype=np.float64)
            value = Deformation(problem.units, _symmetric(K[:, problem.labelled]))
            return report(self, value, Status.SOLVED, 1, watch)
        few = problem.gram.factor is not None and problem.gram.rank < problem.gram.shape[0]
        deformed, status = _by_features if few else _by_rows, Status.SOLVED
        try:
            U = deformed(problem, _solved)
        except np.linalg.LinAlgError:
            U, status = deformed(problem, _least_squares), Status.SINGULAR
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        value = Deformation(problem.units - problem.bend(U), _symmetric(U[problem.labelled]))
        return report(self, value, status, 1, watch)


def _by_rows(problem: DeformedKernel, solve: Callable[..., Array]) -> Array:
    n = problem.gram.shape[0]
    what = f"the deformed kernel of {n} rows"
    require_memory(8 * _COPIES * n * n, what, "Use fewer rows, or a kernel with few features.")
    K = np.asarray(problem.gram.dense(), dtype=np.float64)
    A = problem.bend(K).T  # (M K)' = K M
    A.flat[:: n + 1] += 1.0
    found: Array = interruptible(solve, A, K[:, problem.labelled])
    return found


def _by_features(problem: DeformedKernel, solve: Callable[..., Array]) -> Array:
    F: Any = to_dense(problem.gram.factor)
    A = F.T @ problem.bend(F)
    A = (A + A.T) / 2
    A.flat[:: len(A) + 1] += 1.0
    inner = interruptible(solve, A, F[problem.labelled].T)
    return np.asarray(F @ inner)


def _solved(A: Array, B: Array) -> Array:
    """Solve; raise `LinAlgError` where the identity in A is lost next to K.

    Rounding of the entries moves A by n eps max|A| at most in the norm. From 1 on, nothing is left
    of the identity, and whether a pivot is exactly zero is a matter of the order of operations.
    """
    if len(A) * _EPS * float(np.abs(A).max(initial=0.0)) >= 1.0:
        raise np.linalg.LinAlgError
    return np.asarray(np.linalg.solve(A, B))


def _least_squares(A: Array, B: Array) -> Array:
    return np.asarray(np.linalg.lstsq(A, B, rcond=None)[0])


def _symmetric(A: Array) -> Array:
    return np.asarray((A + A.T) / 2)
