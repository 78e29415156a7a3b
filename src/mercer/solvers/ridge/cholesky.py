"""Linear systems by one Cholesky factorisation per distinct diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.stored import Factor
from mercer.gram import ShiftedGram
from mercer.gram.sizes import factor_bytes
from mercer.problems import Coefficients, LinearSystem
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.least_norm import least_norm


@dataclass(frozen=True)
class Cholesky(Solver):
    """Factor K + diag(shift) = L L' and solve; the answer is exact to rounding.

    A matrix that is singular to working precision gets the answer of least norm instead, by an
    eigendecomposition, and the status says so.
    """

    answers = LinearSystem

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        require_memory(
            factor_bytes(n),
            f"the Cholesky factor of {n} points",
            "Use solver=ConjugateGradient(), which stores no matrix.",
            held=problem.gram.nbytes,
        )
        coef, intercept, status = np.empty((n, t)), np.zeros(t), Status.SOLVED
        for done, columns in enumerate(problem.groups(), start=1):
            right = np.column_stack([problem.targets[:, columns], np.ones(n)])
            factor = shifted_factor(ShiftedGram(problem.gram, problem.shift(columns[0])))
            if factor is not None:
                solved = factor.solve(right)
                coef[:, columns], intercept[columns] = eliminate_bias(solved, problem.bias)
            else:
                coef[:, columns], intercept[columns], ended = least_norm(problem, columns)
                status = status if ended is Status.SOLVED else ended
            watch.tick(done, np.nan)  # told, but a direct answer has no half way to stop at
        return report(self, Coefficients(coef, intercept), status, 1, watch)


def shifted_factor(gram: ShiftedGram) -> Factor | None:
    """Return the Cholesky factor; None if the matrix is singular to working precision."""
    factor = gram.base.cholesky(gram.shift)
    if factor is None:
        return None
    # a pivot at the level of rounding means the factor holds noise, not the matrix
    noise = gram.shape[0] * np.finfo(float).eps * gram.diag()
    return None if (np.square(factor.diagonal()) <= noise).any() else factor


def eliminate_bias(solved: Array, bias: bool) -> tuple[Array, Array]:
    """Turn C^-1 [y, 1] into coefficients and biases of the bordered system.

    With u = C^-1 1: b = 1'a / 1'u makes the coefficients a - b u sum to zero.
    """
    a, u = solved[:, :-1], solved[:, -1]
    if not bias or u.sum() == 0:
        return a, np.zeros(a.shape[1])
    intercept = a.sum(axis=0) / u.sum()
    return a - np.outer(u, intercept), intercept
