"""Linear systems by one Cholesky factorisation per distinct diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer._resources import require_memory
from mercer._types import Array
from mercer.backends import choose_backend
from mercer.gram import ShiftedGram
from mercer.problems import Coefficients, LinearSystem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.interruptible import interruptible


@dataclass(frozen=True)
class Cholesky(Solver):
    """Factor K + diag(shift) = L L' and solve; the answer is exact to rounding.

    A matrix that is singular to working precision gets the answer of least norm instead, by an
    eigendecomposition, and the status says so.
    """

    def refuses(self, problem: Any) -> str | None:
        """Take any linear system."""
        if not isinstance(problem, LinearSystem):
            return f"Cholesky answers LinearSystem problems, not {type(problem).__name__}"
        return None

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        require_memory(
            n * n * 8,
            f"the Cholesky factor of {n} points",
            "Use solver=ConjugateGradient(), which stores no matrix.",
        )
        coef, intercept, status = np.empty((n, t)), np.zeros(t), Status.SOLVED
        for columns in problem.groups():
            solve = _Factor(ShiftedGram(problem.gram, problem.shift(columns[0])))
            right = np.column_stack([problem.targets[:, columns], np.ones(n)])
            coef[:, columns], intercept[columns] = eliminate_bias(solve(right), problem.bias)
            if solve.singular:
                status = Status.SINGULAR
        return report(self, Coefficients(coef, intercept), status, 1, watch)


class _Factor:
    """A factored matrix: call it to solve. Falls back to the least-norm pseudo-inverse."""

    def __init__(self, gram: ShiftedGram) -> None:
        self._gram = gram
        self._A = gram.dense()
        scale = float(np.abs(self._A.diagonal()).max(initial=0.0))
        info = choose_backend().cholesky(self._A)
        # a pivot at the level of rounding means the factor holds noise, not the matrix
        smallest = float(self._A.diagonal().min(initial=np.inf)) ** 2 if info == 0 else 0.0
        self.singular = info != 0 or smallest <= len(self._A) * np.finfo(float).eps * scale

    def __call__(self, right: Array) -> Array:
        if self.singular:
            return _least_norm(self._gram, right)
        return np.asarray(linalg.cho_solve((self._A.T, False), right, check_finite=False))


def _least_norm(gram: ShiftedGram, right: Array) -> Array:
    """Solve by the pseudo-inverse: directions below rounding carry no information."""
    values, vectors = interruptible(linalg.eigh, gram.dense(), driver="evd", overwrite_a=True)
    floor = len(values) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    inverse = np.where(np.abs(values) > floor, 1.0, 0.0) / np.where(values == 0, 1.0, values)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ right)))


def eliminate_bias(solved: Array, bias: bool) -> tuple[Array, Array]:
    """Turn C^-1 [y, 1] into coefficients and biases of the bordered system.

    With u = C^-1 1: b = 1'a / 1'u makes the coefficients a - b u sum to zero.
    """
    a, u = solved[:, :-1], solved[:, -1]
    if not bias or u.sum() == 0:
        return a, np.zeros(a.shape[1])
    intercept = a.sum(axis=0) / u.sum()
    return a - np.outer(u, intercept), intercept
