"""A few penalties of a fold: a factorisation for each is cheaper than a reduction for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.solvers.base import Watch
from mercer.solvers.ridge.folds.fits import FoldFits, refined
from mercer.solvers.ridge.folds.fold_solver import DirectFolds
from mercer.solvers.ridge.folds.system import FoldSystem


@dataclass(frozen=True)
class CholeskyFolds(DirectFolds):
    """Factor R K R + p of each fold for each penalty."""

    def fold(self, system: FoldSystem, penalties: Array, watch: Watch) -> FoldFits:
        """Answer one fold."""
        fits = FoldFits.nothing(system, penalties)
        if not len(system.rows):
            return fits
        A = system.matrix()
        for k, penalty in enumerate(penalties.tolist()):
            if k and watch.tick(k, len(penalties) - k):
                break
            factor = _factor(A, penalty)
            if factor is None:
                continue

            def correct(chosen: Array, left: Array, factor: Array = factor) -> Array:
                return _solve(system, factor, left)

            fits.put(np.array([k]), refined(system, penalties[[k]], correct, watch))
        return fits


def _factor(A: Array, penalty: float) -> Array | None:
    """Return the Cholesky factor of A + p; None where that is not positive definite."""
    factor = A.copy()
    factor.flat[:: len(A) + 1] += penalty
    return factor if choose_backend().cholesky(factor) == 0 else None


def _solve(system: FoldSystem, factor: Array, right: Array) -> Array:
    """Solve, orthogonal to the bias."""
    w = system.along
    columns = right if w is None else np.column_stack([right, w])
    solved = linalg.cho_solve((factor.T, False), columns, check_finite=False)
    if w is None:
        return np.asarray(solved)
    return np.asarray(solved[:, :1] - solved[:, 1:] * ((w @ solved[:, 0]) / (w @ solved[:, 1])))
