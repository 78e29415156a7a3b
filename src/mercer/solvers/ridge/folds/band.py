"""All penalties of a fold from one reduction to a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.backends import Band, choose_backend
from mercer.solvers.base import Watch
from mercer.solvers.ridge.banded import solve_band
from mercer.solvers.ridge.folds.fits import FoldFits, refined
from mercer.solvers.ridge.folds.fold_solver import DirectFolds
from mercer.solvers.ridge.folds.system import FoldSystem


@dataclass(frozen=True)
class BandFolds(DirectFolds):
    """Reduce the matrix of each fold to a band: (R K R + p)^-1 = Q (B + p)^-1 Q'.

    Reducing costs 8/3 m^3 operations once, a penalty m^2 and a band. Residuals are those of the
    original equations: where rounding spoils them, a refinement repairs them or says so.

    Parameters
    ----------
    width : int
        Half-width of the band: wider reduces faster, narrower makes a penalty cheaper.
    """

    width: int = 32

    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""
        m = len(system.rows)
        if m == 0:
            return FoldFits.nothing(system, penalties)
        band = choose_backend().band_reduce(system.matrix(), min(self.width, m))

        def correct(chosen: Array, left: Array) -> Array:
            return _solve(system, band, penalties[chosen], left)

        return refined(system, penalties, correct, watch)


def _solve(system: FoldSystem, band: Band, penalties: Array, right: Array) -> Array:
    """Solve each column at its penalty; NaN where the matrix is not positive definite."""
    w = system.along
    rotated = band.Qt @ np.column_stack([right] if w is None else [right, w])
    found = np.full_like(right, np.nan)
    for k, penalty in enumerate(penalties.tolist()):
        solved = solve_band(band, penalty, rotated[:, [k] if w is None else [k, -1]])
        if np.isfinite(solved).all():
            found[:, k] = solved[:, 0]
            if w is not None:  # what makes it orthogonal to w: rotations keep inner products
                turned = rotated[:, -1]
                found[:, k] -= solved[:, 1] * ((turned @ solved[:, 0]) / (turned @ solved[:, 1]))
    return np.asarray(band.Qt.T @ found)
