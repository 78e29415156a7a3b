"""How every walk along a path of penalties ends: the best point, and why it ended."""

from __future__ import annotations

import numpy as np

from mercer.problems import PathValue, RidgePath
from mercer.problems.ridge.ridge_path import RidgePoint, assemble_path
from mercer.solvers.base import Status, Watch


def path_end(
    problem: RidgePath, points: list[RidgePoint], watch: Watch
) -> tuple[PathValue, Status]:
    """Choose among the penalties that were reached; the others have infinite scores."""
    missing = len(problem.penalties) - len(points)
    nan = np.full(problem.targets.shape, np.nan)
    value = assemble_path(problem, points + [RidgePoint(nan, nan[0], nan)] * missing)
    if not np.isfinite(value.residuals).all():
        return value, Status.NOT_DEFINITE
    return value, Status.SOLVED if not missing else watch.stopped or Status.STOPPED
