"""The ridge equations with a bias as right-hand sides of one symmetric matrix.

(K + D) a + b 1 = y with 1'a = 0 is solved by C = K + D alone: with C x = y - mean and C u = 1,
b = mean + 1'x / 1'u and a = x - (b - mean) u. What is left of the equations is what is left of the
first system less (b - mean) times what is left of the second; certificates measure just that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.problems import LinearSystem

_ROUNDING = 1e-8  # of the targets, the mean included: what is smaller counts as rounding of them


@dataclass(frozen=True, eq=False)
class Bordered:
    """Targets that share one matrix, made ready for solvers of symmetric systems.

    Attributes
    ----------
    right : (n, k) array
        Right-hand sides: targets without their weighted mean and, with a bias, a column of ones.
    mean : (t,) array
        What was taken off; zero without a bias.
    sizes : (t,) array
        Norms that residuals are measured by.
    bias : bool
        Whether there is a bias.
    """

    right: Array
    mean: Array
    sizes: Array
    bias: bool

    @classmethod
    def of(cls, problem: LinearSystem, columns: Array) -> Bordered:
        """Take some targets of a problem."""
        y, s = problem.targets[:, columns], problem.row_weights
        mean = s @ y / s.sum() if problem.bias else np.zeros(len(columns))
        right = y - mean
        sizes = np.maximum(_norms(right), _ROUNDING * _norms(y))
        if problem.bias:
            right = np.column_stack([right, np.ones(len(y))])
        return cls(right, mean, np.maximum(sizes, np.finfo(float).tiny), problem.bias)

    def answer(self, X: Array) -> tuple[Array, Array]:
        """Return coefficients and biases, from solutions for all right-hand sides."""
        if not self.bias:
            return X, np.zeros(X.shape[1])
        offset = self._offset(X)
        return X[:, :-1] - np.outer(X[:, -1], offset), self.mean + offset

    def start(self, coef: Array) -> Array:
        """Return where to begin, from coefficients of an earlier answer."""
        return np.column_stack([coef, np.zeros(len(coef))]) if self.bias else coef.copy()

    def measure(self, X: Array, R: Array) -> float:
        """Return the largest relative residual of the answer, from those of the systems."""
        if self.bias:
            R = R[:, :-1] - np.outer(R[:, -1], self._offset(X))
        worst = (_norms(R) / self.sizes).max(initial=0.0)
        return float(worst)

    def _offset(self, X: Array) -> Array:
        total = X[:, -1].sum()
        sums = X[:, :-1].sum(axis=0)
        return np.asarray(sums / total if total > 0 else np.zeros_like(sums))


def _norms(A: Array) -> Array:
    return np.linalg.norm(A, axis=0)
