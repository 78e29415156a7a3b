"""Ridge paths of a few penalties: a Cholesky factor and its inverse for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.problems import RidgePath
from mercer.problems.ridge.ridge_path import RidgePoint, ridge_point
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.ridge.path_end import path_end
from mercer.solvers.ridge.weighted import weighted

_BASE = 256  # rows; below, halving costs more than it saves
_PANEL = 1024  # rows or columns of one product between two chances to hear Ctrl-C


@dataclass(frozen=True)
class CholeskyPath(Solver):
    """For each penalty C = L L'; diag(C^-1) is the column sums of squares of L^-1."""

    answers = RidgePath

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Factor and invert for each penalty."""
        root = np.sqrt(problem.row_weights)
        right = root[:, None] * np.column_stack([problem.targets, np.ones(len(root))])
        points: list[RidgePoint] = []
        with watch.keeping(lambda: bool(points)):
            for penalty in problem.penalties.tolist():
                A = weighted(problem.gram, root)
                A.flat[:: len(A) + 1] += penalty
                diag, solved = _invert(A, right)
                G_diag = problem.row_weights * diag
                points.append(ridge_point(problem, penalty, G_diag, root[:, None] * solved))
                if watch.tick(len(points), len(problem.penalties) - len(points)):
                    break
        value, status = path_end(problem, points, watch)
        return report(self, value, status, len(points), watch)


def _invert(A: Array, right: Array) -> tuple[Array, Array]:
    """Return diag(A^-1) and A^-1 right; NaN if A is not positive definite. Destroys A."""
    if choose_backend().cholesky(A) != 0:
        return np.full(len(A), np.nan), np.full_like(right, np.nan)
    solved = linalg.cho_solve((A.T, False), right, check_finite=False)
    _invert_triangle(A)
    return np.einsum("ij,ij->j", A, A), solved


def _invert_triangle(L: Array) -> None:
    """Replace the lower triangle by its inverse and the rest by zeros, by halves.

    [[A, 0], [B, C]] has the inverse [[A^-1, 0], [-C^-1 B A^-1, C^-1]]: all work is in products,
    which are as fast as LAPACK's inverse of a triangle but let Ctrl-C be heard in between.
    """
    if len(L) <= _BASE:
        L[:] = np.tril(linalg.solve_triangular(L, np.eye(len(L)), lower=True, check_finite=False))
        return
    deadline.check()
    half = len(L) // 2
    first, below, last = L[:half, :half], L[half:, :half], L[half:, half:]
    _invert_triangle(first)
    _invert_triangle(last)
    for start in range(0, len(below), _PANEL):
        deadline.check()
        panel = below[start : start + _PANEL]
        panel[:] = panel @ first
    for start in range(0, half, _PANEL):
        deadline.check()
        panel = below[:, start : start + _PANEL]
        panel[:] = -(last @ panel)
    L[:half, half:] = 0.0
