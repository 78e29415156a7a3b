"""A few penalties of a fold: a factorisation for each is cheaper than a reduction for all."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.selection.sharing.base import Stop, Stopped
from mercer.selection.sharing.ridge.system import FoldAnswer, FoldSystem

FEW = 6  # penalties: a reduction costs as much as so many factorisations
_REFINED = 2


def by_cholesky(system: FoldSystem, penalties: Array, stop: Stop) -> FoldAnswer:
    """Factor R K R + p for each penalty; answers are checked and refined."""
    answer = FoldAnswer.nothing(system, penalties)
    enough = system.enough(penalties)
    for k, penalty in enumerate(penalties.tolist() if len(system.rows) else ()):
        if stop():
            raise Stopped
        factor = _factor(system, penalty)
        if factor is None:
            continue
        x = np.zeros((len(system.rows), 1))
        left, values = system.right[:, None], np.zeros((len(system.K), 1))
        for _ in range(1 + _REFINED):
            x = x + _solve(system, factor, left)
            values = system.values(x)
            left = system.residuals(x, values, penalties[[k]])
            answer.met[k] = system.sizes(left)[0] <= enough[k]
            if answer.met[k]:
                break
        answer.values[:, k] = (values + system.intercept(values))[:, 0]
    return answer


def _factor(system: FoldSystem, penalty: float) -> Array | None:
    A = system.root[:, None] * system.K[np.ix_(system.rows, system.rows)] * system.root
    A = np.ascontiguousarray(A)
    A.flat[:: len(A) + 1] += penalty
    return A if choose_backend().cholesky(A) == 0 else None


def _solve(system: FoldSystem, factor: Array, right: Array) -> Array:
    """Solve, orthogonal to the bias."""
    w = system.along
    columns = right if w is None else np.column_stack([right, w])
    solved = linalg.cho_solve((factor.T, False), columns, check_finite=False)
    if w is None:
        return np.asarray(solved)
    return np.asarray(solved[:, :1] - solved[:, 1:] * ((w @ solved[:, 0]) / (w @ solved[:, 1])))
