"""Exact leave-one-out errors of all penalties, by reduction of K to a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import Band, choose_backend
from mercer.machines.ridge.direct import path_end, solve_band, weighted
from mercer.machines.ridge.folds import FoldSystem, ended, refuses
from mercer.machines.ridge.problem import (
    FoldedPathValue,
    FoldedRidgePath,
    RidgePath,
    RidgePoint,
    ridge_point,
)
from mercer.solvers.base import Solution, Solver, Watch, report

# --- band path -----------------------------------------------------------------------------------
#
# Ridge paths by reduction to a band: one O(n^3) step, then every penalty costs O(n^2 width).
#
# K = Q B Q' with a narrow band B is all that leave-one-out needs: diag((K + p)^-1) is the sum of
# squares of the columns of L^-1 Q', where B + p = L L' is banded. Going on to eigenvalues would
# cost three times the reduction and save less than a second over a hundred penalties.

_BAND_PATH_CHUNK = 16  # penalties between two looks at the clock


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
            for first in range(0, len(problem.penalties), _BAND_PATH_CHUNK):
                penalties = problem.penalties[first : first + _BAND_PATH_CHUNK]
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


# --- leave one out -------------------------------------------------------------------------------
#
# Leave-one-out in closed form: all rows and all penalties from one reduction of the matrix.
#
# With C = K + p S^-1 and G = C^-1 (G - u u'/1'u with u = G 1, where there is a bias), the fit to
# all rows but i is off by y_i - f(x_i) = (G y)_i / G_ii at that row. Rows of weight zero change
# no fit.

_LEAVE_ONE_OUT_CHUNK = 16  # penalties at a time
_EXACT = 1e-8  # of the targets: what the equations of all rows may leave


@dataclass(frozen=True)
class BandLeaveOneOut(Solver):
    """Reduce the weighted K to a band; predict each row by the fit to all others.

    A penalty is met where the equations of all rows are, to nearly all digits.

    Parameters
    ----------
    width : int
        Half-width of the band: wider reduces faster, narrower makes a penalty cheaper.
    """

    width: int = 32

    def refuses(self, problem: Any) -> str | None:
        """Take ridge paths whose folds leave out one row each."""
        refusal = refuses(type(self).__name__, problem)
        if refusal is None and problem.folds is not None:
            return "BandLeaveOneOut needs folds=None; use solver=KrylovFolds() for other folds"
        return refusal

    def run(self, problem: FoldedRidgePath, watch: Watch, start: Any = None) -> Solution:
        """Reduce, then predict for every penalty."""
        y, s, penalties = problem.targets, problem.row_weights, problem.penalties
        K = np.ascontiguousarray(problem.gram.dense(), dtype=np.float64)
        system = FoldSystem.of(K, np.arange(len(y)), y, s, False)
        rows, root, m = system.rows, system.root, len(system.rows)
        right = root[:, None] * np.column_stack([y[rows], np.ones(m)])
        band = choose_backend().band_reduce(system.matrix(), min(self.width, m))
        rotated = band.Qt @ right
        values = np.full((len(y), len(penalties)), np.nan)
        met = np.zeros(len(penalties), dtype=bool)
        done = 0
        with watch.keeping(lambda: done > 0):
            while done < len(penalties) and not watch.tick(done, len(penalties) - done):
                chunk = penalties[done : done + _LEAVE_ONE_OUT_CHUNK]
                diagonals = choose_backend().band_inverse_diagonals(band, chunk)
                for k, penalty in enumerate(chunk.tolist(), done):
                    solved = root[:, None] * (band.Qt.T @ solve_band(band, penalty, rotated))
                    G = s[rows] * diagonals[k - done]
                    values[:, k], met[k] = _predicted(problem, system, penalty, solved, G)
                done += len(chunk)
        return ended(self, FoldedPathValue(values[None], met[None]), done, watch)


def _predicted(
    problem: FoldedRidgePath, system: FoldSystem, penalty: float, solved: Array, G: Array
) -> tuple[Array, bool]:
    """Predict from C^-1 [y, 1] and diag(C^-1); tell whether the fit to all rows is right."""
    y, rows = problem.targets, system.rows
    a, b = solved[:, 0], 0.0
    if problem.bias:
        u = solved[:, 1]
        b = a.sum() / u.sum()
        a, G = a - b * u, G - u * (u / u.sum())
    full = np.zeros(len(y))
    full[rows] = a
    fit = system.K @ full + b
    values = fit.copy()
    values[rows] = y[rows] - a / G
    off = y[rows] - fit[rows] - penalty * a / problem.row_weights[rows]
    small = np.linalg.norm(off) <= _EXACT * np.linalg.norm(y[rows])
    return values, bool(np.isfinite(values).all() and (G > 0).all() and small)
