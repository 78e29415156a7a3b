"""The equations of ridge regression on the rows of one fold, and how well an answer meets them.

With weights s, R = S^1/2 and a = R x, the fit at penalty p solves (R K R + p) x = R (y - b). With a
bias, x is orthogonal to w = R 1 / |R 1|; it solves the same equations with R K R and R y projected
onto the complement of w. The matrix of all rows is never cut: a product with coefficients that are
zero outside of the fold gives the fit at all rows, those left out included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems import FoldedRidgePath
from mercer.solvers.ridge.folds.products import FoldParts

_ENOUGH = 1e-9  # of the targets: residuals from here on are answers
_BOUND = 1e-5  # of the targets: what a prediction may be off at most


@dataclass(frozen=True, eq=False)
class FoldSystem:
    """One fold.

    Attributes
    ----------
    K : (n, n) array
        The kernel on all rows.
    rows : (m,) int array
        Rows learnt from, weights above zero.
    root : (m,) array
        R.
    right : (m,) array
        R y, projected where there is a bias.
    targets : (m,) array
        y.
    along : (m,) array or None
        w where there is a bias.
    """

    K: Array
    rows: Array
    root: Array
    right: Array
    targets: Array
    along: Array | None

    @classmethod
    def of(cls, K: Array, rows: Array, y: Array, weights: Array | None, bias: bool) -> FoldSystem:
        """Write the equations of some rows."""
        s = np.ones(len(rows)) if weights is None else weights[rows]
        rows, s = rows[s > 0], s[s > 0]
        root, targets = np.sqrt(s), y[rows]
        along = root / np.linalg.norm(root) if bias else None
        system = cls(K, rows, root, root * targets, targets, along)
        return cls(K, rows, root, system.project(system.right[:, None])[:, 0], targets, along)

    def matrix(self) -> Array:
        """Return R K R as a new matrix, free to be overwritten."""
        A = self.root[:, None] * self.K[np.ix_(self.rows, self.rows)] * self.root
        return np.ascontiguousarray(A)

    def project(self, V: Array) -> Array:
        """Take off what lies along the bias."""
        return V if self.along is None else V - np.outer(self.along, self.along @ V)

    def spread(self, X: Array) -> Array:
        """Return a = R x at all rows, zero outside of the fold."""
        full = np.zeros((len(self.K), X.shape[1]))
        full[self.rows] = self.root[:, None] * X
        return full

    def values(self, X: Array) -> Array:
        """Return K a at all rows for a = R x."""
        parts = FoldParts([self.rows], len(self.K))
        return parts.product(self.K, [self.spread(X)], reads=True)

    def operate(self, values: Array) -> Array:
        """Return the projected R K R x from the values of x at all rows."""
        return self.project(self.root[:, None] * values[self.rows])

    def intercept(self, values: Array) -> Array:
        """Return the bias that goes with values at all rows."""
        if self.along is None:
            return np.zeros(values.shape[1])
        left = self.targets[:, None] - values[self.rows]
        share = self.root**2 / np.sum(self.root**2)
        return np.asarray(share @ left)

    def residuals(self, X: Array, values: Array, penalties: Array) -> Array:
        """Return what is left of the equations for each penalty."""
        left = self.right[:, None] - self.operate(values) - X * penalties
        return np.asarray(left)

    def enough(self, penalties: Array) -> Array:
        """Return the sizes from which on residuals make an answer, for each penalty.

        A residual r moves a prediction by k_z'R (R K R + p)^-1 r, which is at most
        k(z, z)^1/2 |r| / (2 p^1/2). That is far from reached, but bounds what a small residual can
        hide at a tiny penalty.
        """
        largest = float(self.K.diagonal().max(initial=0.0)) * len(self.rows)
        bound = 2.0 * np.sqrt(penalties / (largest if largest > 0 else 1.0))
        return np.asarray(np.minimum(_ENOUGH, _BOUND * bound))

    def sizes(self, residuals: Array) -> Array:
        """Measure residuals in units of the targets."""
        unit = np.linalg.norm(self.right)
        return np.asarray(np.linalg.norm(residuals, axis=0) / (unit if unit > 0 else 1.0))


def fold_systems(problem: FoldedRidgePath) -> list[FoldSystem]:
    """Write the equations of all folds."""
    K = np.ascontiguousarray(problem.gram.dense(), dtype=np.float64)
    weights, y = problem.row_weights, problem.targets
    return [FoldSystem.of(K, fold, y, weights, problem.bias) for fold in problem.folds or ()]
