"""Posterior variances of several tasks at new rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.gram import Source
from mercer.gram.storage.precomputed import rectangle
from mercer.points import row_count, take
from mercer.resources import rows_at_once

_ROWS_AT_ONCE = 512  # new rows: one product or solve between two chances to hear Ctrl-C


@dataclass(frozen=True, eq=False)
class TaskSpread:
    """Variances of f_t at new rows, from what the fit decomposed.

    Attributes
    ----------
    source : Source or None
        The kernel on the training rows; None for a given matrix.
    given : int
        How many training rows there were.
    rows : (n,) int array
        Those of positive weight.
    tasks : (T, T) array
        B.
    basis : (n, n) array or None
        S^1/2 U, where every task was read at every row.
    shares : (n, T) array or None
        What each direction of the basis explains of the variance of each task.
    factor : (r, r) array or None
        Lower Cholesky factor of the covariance of all readings, where not.
    task, row : (r,) int array or None
        Of these readings.
    """

    source: Source | None
    given: int
    rows: Array
    tasks: Array
    basis: Array | None
    shares: Array | None
    factor: Array | None
    task: Array | None
    row: Array | None

    def variance(self, Z: Points, prior: Array | None) -> Array:
        """Return the variances at new rows: (m, T).

        Parameters
        ----------
        Z : Points
            New rows.
        prior : (m,) array or None
            Their k(z, z), which a given matrix does not hold.
        """
        if prior is None:
            if self.source is None:
                raise ValueError(
                    "MultiTaskGaussianProcess: with a precomputed kernel the spread at new rows "
                    "needs their own k(z, z), which is not in X; pass prior_var"
                )
            prior = choose_backend().diagonal(self.source.expression, Z, np.float64)
        found = np.outer(prior, self.tasks.diagonal())
        step = rows_at_once(self.given * len(self.tasks), _ROWS_AT_ONCE, arrays=3)
        for first in range(0, row_count(Z), step):
            deadline.check()
            some = slice(first, first + step)
            found[some] -= self._explained(self._across(take(Z, some)))
        return np.asarray(np.maximum(found, 0.0))  # below by rounding only

    def _explained(self, across: Array) -> Array:
        if self.basis is not None and self.shares is not None:
            return np.asarray(np.square(across @ self.basis) @ self.shares)
        assert self.factor is not None
        columns = []
        for t in range(len(self.tasks)):
            c = self.tasks[t, self.task][:, None] * across.T[self.row]
            half = linalg.solve_triangular(self.factor, c, lower=True, check_finite=False)
            columns.append(np.einsum("ij,ij->j", half, half))
        return np.column_stack(columns)

    def _across(self, Z: Points) -> Array:
        if self.source is not None:
            return np.asarray(self.source.cross(Z).dense())
        return np.asarray(rectangle(Z, self.given)[:, self.rows], dtype=np.float64)
