"""A symmetric system with constraints, H dv - A'dx = r and A dv = s, by the null space of A.

Elimination squares A: where rows are nearly dependent, or coefficients are large beside residuals,
that costs all digits. Here A is factored by itself, and rows that depend on others drop out.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.solvers.spd import factor_spd

_CLEARLY = 1e-6  # of it: what leaves no doubt
_DEPENDENT = 1e-11  # of the length of a row: what is left of one that others make up


class Saddle:
    """The factored system.

    Parameters
    ----------
    H : (m, m) array
        Positive semidefinite; definite where A is zero.
    A : (f, m) array
        Constraints, possibly dependent.
    """

    def __init__(self, H: Array, A: Array) -> None:
        diagonal = np.maximum(H.diagonal(), 0.0)
        self._scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, diagonal.max(initial=0) or 1))
        self._H = H * self._scale * self._scale[:, None]
        A = A * self._scale
        length = np.linalg.norm(A, axis=1)
        self._length = np.where(length > 0, length, 1.0)
        Q, R, order = _factored((A / self._length[:, None]).T)
        rank = int(np.count_nonzero(np.abs(R.diagonal()) > _DEPENDENT)) if len(A) else 0
        self._basis, self._R, self._order = Q[:, :rank], R[:rank, :rank], order[:rank]
        self._null = Q[:, rank:]
        self._within = factor_spd(self._null.T @ self._H @ self._null)

    def solve(self, right: Array, aims: Array) -> tuple[Array, Array]:
        """Return dv and dx; dx is zero for rows that depend on others."""
        order, right = self._order, self._scale * right
        aim = (aims / self._length)[order]
        along = linalg.solve_triangular(self._R, aim, trans="T", check_finite=False)
        dv = self._basis @ along
        dv = dv + self._null @ self._within(self._null.T @ (right - self._H @ dv))
        dx = np.zeros(len(aims))
        pulled = self._basis.T @ (self._H @ dv - right)
        dx[order] = linalg.solve_triangular(self._R, pulled, check_finite=False)
        return self._scale * dv, dx / self._length


def _factored(columns: Array) -> tuple[Array, Array, Array]:
    """Return Q, R and the order of the columns; pivots, many times slower, only where needed."""
    m, f = columns.shape
    if f <= m:
        Q, R = linalg.qr(columns, check_finite=False)
        if np.abs(R.diagonal()).min(initial=1.0) > _CLEARLY:
            return Q, R, np.arange(f)
    Q, R, order = linalg.qr(columns, pivoting=True, check_finite=False)
    return Q, R, order
