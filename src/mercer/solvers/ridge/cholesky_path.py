"""Ridge paths of a few penalties: a Cholesky factor and its inverse for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.stored import Factor
from mercer.problems import RidgePath
from mercer.problems.ridge.ridge_path import RidgePoint, ridge_point
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.ridge.path_end import path_end


@dataclass(frozen=True)
class CholeskyPath(Solver):
    """For each penalty C = L L'; diag(C^-1) is the column sums of squares of L^-1."""

    answers = RidgePath

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Factor and invert for each penalty."""
        root = np.sqrt(problem.row_weights)
        right = root[:, None] * np.column_stack([problem.targets, np.ones(len(root))])
        points: list[RidgePoint] = []
        zero = np.zeros(len(root))
        with watch.keeping(lambda: bool(points)):
            for penalty in problem.penalties.tolist():
                diag, solved = _inverted(problem.gram.cholesky(penalty + zero, root), right)
                G_diag = problem.row_weights * diag
                points.append(ridge_point(problem, penalty, G_diag, root[:, None] * solved))
                if watch.tick(len(points), len(problem.penalties) - len(points)):
                    break
        value, status = path_end(problem, points, watch)
        return report(self, value, status, len(points), watch)


def _inverted(factor: Factor | None, right: Array) -> tuple[Array, Array]:
    """Return diag(A^-1) and A^-1 right; NaN if A is not positive definite."""
    if factor is None:
        return np.full(len(right), np.nan), np.full_like(right, np.nan)
    solved = factor.solve(right)
    return factor.inverse_diagonal(), solved
