"""Linear systems from products alone: conjugate gradients, preconditioned by a partial factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.gram import PartialFactor, ShiftedGram, pivoted_cholesky
from mercer.problems import Coefficients, LinearSystem
from mercer.resources import rows_at_once
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.cholesky import eliminate_bias

_RESTARTS = 8  # each must halve the true residual

_FACTORS = 3  # arrays of the size of the low-rank factor: it, its order changed, and scaled
_SHARE = 0.5  # of the memory budget, for them


@dataclass(frozen=True)
class ConjugateGradient(Solver):
    """Preconditioned conjugate gradients; K is never stored unless the Gram stores it.

    Parameters
    ----------
    tol : float
        Stop when every residual is below tol times its right-hand side.
    max_iter : int
        Largest number of products with K.
    rank : int
        Columns of the partial Cholesky factor used as preconditioner;
        0 for the penalty alone.
    """

    answers = LinearSystem

    tol: float = 1e-8
    max_iter: int = 2000
    rank: int = 500

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with a positive diagonal added."""
        if not (problem.penalties > 0).all():
            return "ConjugateGradient needs a positive penalty; use solver=Cholesky()"
        return None

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        coef, intercept, status, steps = np.empty((n, t)), np.zeros(t), Status.SOLVED, 0
        # an error at the level of the penalty is as good as none
        trace_tol = float(problem.penalties.min() * (1.0 / problem.row_weights).sum())
        rank = rows_at_once(n, min(self.rank, n), arrays=_FACTORS, share=_SHARE)
        rough = pivoted_cholesky(problem.gram, rank, trace_tol=trace_tol)
        for columns in problem.groups():
            shift = problem.shift(columns[0])
            right = np.column_stack([problem.targets[:, columns], np.ones(n)])
            begin = (
                None if start is None else np.column_stack([start.coef[:, columns], np.zeros(n)])
            )
            precondition = _woodbury(rough, shift)
            gram = ShiftedGram(problem.gram, shift)
            solved, done, ended = self._iterate(gram, right, precondition, begin, watch)
            coef[:, columns], intercept[columns] = eliminate_bias(solved, problem.bias)
            steps += done
            status = status if ended is Status.SOLVED else ended
        return report(self, Coefficients(coef, intercept), status, steps, watch)

    def _iterate(
        self, gram: ShiftedGram, B: Array, precondition: Any, start: Array | None, watch: Watch
    ) -> tuple[Array, int, Status]:
        """Descend, look at the true residual, and descend again from there if it is not small.

        The residual that a recurrence carries along drifts from the true one by rounding.
        """
        X, total, before = np.zeros_like(B) if start is None else start, 0, np.inf
        norms = np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
        for _ in range(_RESTARTS):
            R = B - gram @ X if np.any(X) else B.copy()
            worst = float((np.linalg.norm(R, axis=0) / norms).max())
            if worst <= self.tol:
                return X, total, Status.SOLVED
            if worst > 0.5 * before:
                return X, total, Status.INACCURATE
            before = worst
            X, steps, ended = X.copy(), 0, Status.TIME_LIMIT
            with watch.keeping():  # X is changed in place
                X, steps, ended = self._descend(gram, X, R, norms, precondition, watch)
            total += steps
            if ended is not Status.SOLVED:
                return X, total, ended
        return X, total, Status.INACCURATE

    def _descend(
        self, gram: ShiftedGram, X: Array, R: Array, norms: Array, precondition: Any, watch: Watch
    ) -> tuple[Array, int, Status]:
        """Run one recurrence per column, all sharing the product with K."""
        Z = precondition(R)
        P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
        for iteration in range(1, self.max_iter + 1):
            KP = gram @ P
            curvature = np.einsum("ij,ij->j", P, KP)
            if (curvature < -np.finfo(float).eps * np.einsum("ij,ij->j", P, P)).any():
                return X, iteration, Status.NOT_CONVEX
            step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
            X += step * P
            R = R - step * KP
            worst = float((np.linalg.norm(R, axis=0) / norms).max())
            if not np.isfinite(worst):
                return X, iteration, Status.NOT_FINITE
            if worst <= self.tol:
                return X, iteration, Status.SOLVED
            if watch.tick(iteration, worst):
                return X, iteration, watch.stopped or Status.STOPPED
            Z = precondition(R)
            rz, before = np.einsum("ij,ij->j", R, Z), rz
            P = Z + np.divide(rz, before, out=np.zeros_like(rz), where=before > 0) * P
        return X, self.max_iter, Status.ITERATION_LIMIT


def _woodbury(rough: PartialFactor, shift: Array) -> Any:
    """Return v -> (F F' + D)^-1 v."""
    d = shift[:, None]
    F = rough.factor
    scaled = F / d
    inner = scaled.T @ F
    inner.flat[:: len(inner) + 1] += 1.0
    factor = linalg.cho_factor(inner, lower=True, check_finite=False) if F.shape[1] else None

    def apply(v: Array) -> Array:
        if factor is None:
            return np.asarray(v / d)
        return np.asarray(v / d - scaled @ linalg.cho_solve(factor, scaled.T @ v))

    return apply
