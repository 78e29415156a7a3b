"""Ridge paths by reduction to a band: one O(n^3) step, then every penalty costs O(n^2 width).

K = Q B Q' with a narrow band B is all that leave-one-out needs: diag((K + p)^-1) is the sum of
squares of the columns of L^-1 Q', where B + p = L L' is banded. Going on to eigenvalues would cost
three times the reduction and save less than a second over a hundred penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import Band, choose_backend
from mercer.problems import RidgePath
from mercer.problems.ridge.ridge_path import RidgePoint, ridge_point
from mercer.solvers.base import Solution, Solver, Watch, report
from mercer.solvers.ridge.banded import solve_band
from mercer.solvers.ridge.path_end import path_end
from mercer.solvers.ridge.weighted import weighted

_CHUNK = 16  # penalties between two looks at the clock


@dataclass(frozen=True)
class BandPath(Solver):
    """Reduce the weighted Gram to a band once; then walk the penalties.

    Parameters
    ----------
    width : int
        Half-width of the band: wider reduces faster, narrower makes a penalty cheaper.
    """

    answers = RidgePath

    width: int = 32

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Reduce, then give every penalty its coefficients and leave-one-out residuals."""
        root = np.sqrt(problem.row_weights)
        n = len(root)
        right = root[:, None] * np.column_stack([problem.targets, np.ones(n)])
        band = choose_backend().band_reduce(weighted(problem.gram, root), min(self.width, n))
        rotated = band.Qt @ right
        points: list[RidgePoint] = []
        with watch.keeping(lambda: bool(points)):
            for first in range(0, len(problem.penalties), _CHUNK):
                penalties = problem.penalties[first : first + _CHUNK]
                diags = choose_backend().band_inverse_diagonals(band, penalties)
                solved = _solve_band(band, penalties, rotated)
                for penalty, diag, a in zip(penalties.tolist(), diags, solved, strict=True):
                    G_diag = problem.row_weights * diag
                    points.append(ridge_point(problem, penalty, G_diag, root[:, None] * a))
                if watch.tick(len(points), len(problem.penalties) - len(points)):
                    break
        value, status = path_end(problem, points, watch)
        return report(self, value, status, len(points), watch)


def _solve_band(band: Band, penalties: Array, rotated: Array) -> list[Array]:
    """Return Q (B + p)^-1 Q' right for every penalty; the products with Q are one product."""
    columns = []
    for penalty in penalties.tolist():
        deadline.check()
        columns.append(solve_band(band, penalty, rotated))
    together = band.Qt.T @ np.hstack(columns)
    return np.split(together, len(columns), axis=1)
