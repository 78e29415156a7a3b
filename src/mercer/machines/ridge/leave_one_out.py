"""Exact leave-one-out errors of all penalties, by reduction of K to a band: O(n^3) once."""

from __future__ import annotations

from collections.abc import Iterator
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

# K = Q B Q' with a narrow band B is all that leave-one-out needs: diag((K + p)^-1) is the sum of
# squares of the columns of L^-1 Q', where B + p = L L' is banded. Going on to eigenvalues would
# cost three times the reduction and save less than a second over a hundred penalties.
#
# Of a `FoldedRidgePath` that leaves out one row each, C = K + p S^-1 and G = C^-1 (G - u u'/1'u
# with u = G 1, where there is a bias) say the same: the fit to all rows but i is off by
# y_i - f(x_i) = (G y)_i / G_ii at that row. Rows of weight zero change no fit.

_CHUNK = 16  # penalties between two looks at the clock
_EXACT = 1e-8  # of the targets: what the equations of all rows may leave


@dataclass(frozen=True)
class BandPath(Solver):
    """Reduce the weighted Gram to a band once; then walk the penalties.

    Of folds that leave out one row each, a penalty is met where the equations of all rows are, to
    nearly all digits.

    Parameters
    ----------
    width : int
        Half-width of the band: wider reduces faster, narrower makes a penalty cheaper.
    """

    answers = (RidgePath, FoldedRidgePath)

    width: int = 32

    def _obstacle(self, problem: RidgePath | FoldedRidgePath) -> str | None:
        """Take folds that leave out one row each."""
        if isinstance(problem, RidgePath):
            return None
        if problem.folds is not None:
            return "BandPath needs folds=None; use solver=KrylovFolds() for other folds"
        return refuses("BandPath", problem)

    def run(
        self, problem: RidgePath | FoldedRidgePath, watch: Watch, start: Any = None
    ) -> Solution:
        """Reduce, then give every penalty its coefficients and leave-one-out residuals."""
        if isinstance(problem, FoldedRidgePath):
            return self._left_out(problem, watch)
        root = np.sqrt(problem.row_weights)
        points: list[RidgePoint] = []
        with watch.keeping(lambda: bool(points)):
            matrix = weighted(problem.gram, root)
            for penalty, diag, solved in self._walk(problem, matrix, root, problem.targets, watch):
                points.append(ridge_point(problem, penalty, problem.row_weights * diag, solved))
        value, status = path_end(problem, points, watch)
        return report(self, value, status, len(points), watch)

    def _left_out(self, problem: FoldedRidgePath, watch: Watch) -> Solution:
        y, s = problem.targets, problem.row_weights
        K = np.ascontiguousarray(problem.gram.dense(), dtype=np.float64)
        system = FoldSystem.of(K, np.arange(len(y)), y, s, False)
        rows, targets = system.rows, system.targets[:, None]
        values = np.full((len(y), len(problem.penalties)), np.nan)
        met, done = np.zeros(len(problem.penalties), dtype=bool), 0
        with watch.keeping(lambda: done > 0):
            walk = self._walk(problem, system.matrix(), system.root, targets, watch)
            for penalty, diag, solved in walk:
                found = _predicted(problem, system, penalty, solved, s[rows] * diag)
                values[:, done], met[done] = found
                done += 1
        return ended(self, FoldedPathValue(values[None], met[None]), done, watch)

    def _walk(
        self,
        problem: RidgePath | FoldedRidgePath,
        matrix: Array,
        root: Array,
        targets: Array,
        watch: Watch,
    ) -> Iterator[tuple[float, Array, Array]]:
        """Return penalties, diag((R K R + p)^-1) and R (R K R + p)^-1 R [y, 1]."""
        n, every = len(root), problem.penalties
        right = root[:, None] * np.column_stack([targets, np.ones(n)])
        band = choose_backend().band_reduce(matrix, min(self.width, n))
        rotated = band.Qt @ right
        for first in range(0, len(every), _CHUNK):
            part = every[first : first + _CHUNK]
            diags = choose_backend().band_inverse_diagonals(band, part)
            solved = _solve_band(band, part, rotated)
            for penalty, diag, a in zip(part.tolist(), diags, solved, strict=True):
                yield penalty, diag, root[:, None] * a
            done = first + len(part)
            if watch.tick(done, len(every) - done):
                break


def _solve_band(band: Band, penalties: Array, rotated: Array) -> list[Array]:
    """Return Q (B + p)^-1 Q' right for every penalty; the products with Q are one product."""
    columns = []
    for penalty in penalties.tolist():
        deadline.check()
        columns.append(solve_band(band, penalty, rotated))
    together = band.Qt.T @ np.hstack(columns)
    return np.split(together, len(columns), axis=1)


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
