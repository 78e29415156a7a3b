"""Ridge paths with K = F F' in the space of the features: one small eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.gram import FactoredGram
from mercer.problems import RidgePath
from mercer.problems.ridge.ridge_path import RidgePoint, ridge_point
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.design import Design
from mercer.solvers.ridge.path_end import path_end

_SQUARED = 1e100  # numbers up to here, and down to its inverse, have squares with all digits


@dataclass(frozen=True)
class PrimalPath(Solver):
    """With E = S^1/2 G and E'E = V diag(m) V': (E E' + p)^-1 = (I - E V diag(1/(m + p)) V'E')/p.

    G are the features, centred when there is a bias: an unpenalised bias takes up any shift of
    them, so coefficients and leave-one-out residuals are those of the features as they are.
    """

    answers = RidgePath

    def _obstacle(self, problem: RidgePath) -> str | None:
        """Take ridge paths whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "PrimalPath needs a RidgePath whose kernel has an explicit finite feature map"

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Rotate the features once; every penalty is then a few products."""
        root = np.sqrt(problem.row_weights)[:, None]
        design = Design.of(problem.gram, problem.row_weights, problem.bias)
        m, V = _modes(design.normal_matrix())
        EV = root * (design.dense() @ V)
        right = root * np.column_stack([problem.targets, np.ones(len(root))])
        rotated, squares = EV.T @ right, np.square(EV)
        points: list[RidgePoint] = []
        for penalty in problem.penalties.tolist():
            shrink = 1.0 / (m + penalty)
            diag = problem.row_weights * (1.0 - squares @ shrink) / penalty
            solved = root * (right - EV @ (shrink[:, None] * rotated)) / penalty
            points.append(ridge_point(problem, penalty, diag, solved))
            if watch.tick(len(points), len(problem.penalties) - len(points)):
                break
        value, status = path_end(problem, points, watch)
        status = Status.NOT_FINITE if np.isnan(m).any() else status
        chosen = problem.penalties[value.best]
        target = EV.T @ (root * (problem.targets - value.intercept))
        weights = V @ (target / (m[:, None] + chosen))
        answer = design.coefficients(weights, problem.targets, chosen, floor=0.0)
        value = replace(value, coef=answer.coef, weights=weights, intercept=answer.intercept)
        return report(self, value, status, len(points), watch)


def _modes(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenpairs above rounding; below, a tiny penalty would blow up noise."""
    size = float(np.abs(matrix).max(initial=0.0))
    if not np.isfinite(size):  # LAPACK may find numbers that look like any
        return np.full(1, np.nan), np.full((len(matrix), 1), np.nan)
    # where its squares would overflow or vanish, LAPACK is given other units
    unit = 1.0 if 1.0 / _SQUARED <= size <= _SQUARED else 2.0 ** (np.frexp(size)[1] - 1)
    m, V = interruptible(np.linalg.eigh, matrix / unit)
    m = m * unit
    kept = m > len(m) * np.finfo(float).eps * m.max(initial=0.0)
    return m[kept], V[:, kept]
