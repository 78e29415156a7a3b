"""Ridge paths with K = F F' in the space of the features: one small eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import linalg

from mercer._points import to_dense
from mercer.gram import FactoredGram
from mercer.problems import RidgePath
from mercer.problems.ridge_path import assemble_path, ridge_point
from mercer.solvers.base import Solution, Solver, Status, Watch, report


@dataclass(frozen=True)
class PrimalPath(Solver):
    """With E = S^1/2 F and E'E = V diag(m) V': (E E' + p)^-1 = (I - E V diag(1/(m + p)) V'E')/p."""

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths whose Gram is factored."""
        if isinstance(problem, RidgePath) and isinstance(problem.gram, FactoredGram):
            return None
        return "PrimalPath needs a RidgePath whose kernel has an explicit finite feature map"

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Rotate the features once; every penalty is then a few products."""
        root = np.sqrt(problem.row_weights)
        E = to_dense(cast(FactoredGram, problem.gram).factor) * root[:, None]
        m, V = linalg.eigh(E.T @ E, driver="evd")
        m, EV = np.maximum(m, 0.0), E @ V
        right = root[:, None] * np.column_stack([problem.targets, np.ones(len(root))])
        rotated, squares = EV.T @ right, np.square(EV)
        points = []
        for penalty in problem.penalties.tolist():
            shrink = 1.0 / (m + penalty)
            diag = (1.0 - squares @ shrink) / penalty
            solved = (right - EV @ (shrink[:, None] * rotated)) / penalty
            points.append(
                ridge_point(problem, penalty, problem.row_weights * diag, root[:, None] * solved)
            )
        value = assemble_path(problem, points)
        chosen = problem.penalties[value.best]
        target = V.T @ (E.T @ (root[:, None] * (problem.targets - value.intercept)))
        weights = V @ (target / (m[:, None] + chosen))
        value = replace(value, weights=weights)
        return report(self, value, Status.SOLVED, len(points), watch)
