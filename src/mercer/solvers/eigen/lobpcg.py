"""Preconditioned search for the largest eigenpairs: LOBPCG, with the diagonal for preconditioner.

The method of choice where the spectrum is wide and what is wanted lies at a crowded end: graph
Laplacians with uneven degrees. A - top I is nearly its diagonal there, and dividing the residuals
by that turns the problem into one like the normalised cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram import Gram
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.dense import ordered
from mercer.solvers.eigen.problem import Eigenproblem

_DEPENDENT = 1e-14  # of the squared lengths: directions of a basis that are rounding


@dataclass(frozen=True)
class LOBPCG(Solver):
    """Locally optimal block preconditioned conjugate gradients for the largest eigenpairs.

    Parameters
    ----------
    tol : float
        Stop when every wanted residual is below tol times the largest eigenvalue in size.
    max_iter : int
        Largest number of passes.
    extra : int
        Vectors carried along beside the wanted ones; they hasten the last of these.
    random_state : int
        Seed of the starting block.
    """

    answers = Eigenproblem

    tol: float = 1e-8
    max_iter: int = 500
    extra: int = 4
    random_state: int = 0

    def _obstacle(self, problem: Eigenproblem) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        if 4 * (problem.count + self.extra) + _locked(problem) > problem.gram.shape[0]:
            return "LOBPCG is for few of many eigenpairs; use solver=Eigh()"
        return None

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Improve a block of vectors until the wanted ones stand still."""
        with one_blas_thread():
            return self._improved(problem, watch, start)

    def _improved(self, problem: Eigenproblem, watch: Watch, start: Any) -> Solution:
        search = _LOBPCGRun(problem, self._block(problem, start))
        status, iteration = Status.ITERATION_LIMIT, 0
        for iteration in range(1, self.max_iter + 1):
            worst = search.residual(problem.count)
            if worst <= self.tol:
                status = Status.SOLVED
                break
            if watch.tick(iteration, worst):
                status = watch.stopped or Status.STOPPED
                break
            moved = True
            with watch.keeping():
                moved = search.step()
            if not moved:
                status = Status.INACCURATE
                break
        modes = ordered(search.values, search.X, problem.count)
        return report(self, modes, status, iteration, watch)

    def _block(self, problem: Eigenproblem, start: Any) -> Array:
        shape = (problem.gram.shape[0], problem.count + self.extra)
        block = np.random.default_rng(self.random_state).standard_normal(shape)
        if start is not None:
            given = min(start.vectors.shape[1], shape[1])
            block[:, :given] = start.vectors[:, :given]
        return block


def _locked(problem: Eigenproblem) -> int:
    return 0 if problem.known is None else int(problem.known.shape[1])


class _LOBPCGRun:
    """The block X, its product and values, and the last direction P."""

    def __init__(self, problem: Eigenproblem, block: Array) -> None:
        self._gram: Gram = problem.gram
        self._known = problem.known
        self._top = self._largest_known()
        self._diagonal = np.asarray(problem.gram.diag(), dtype=np.float64)
        S = self._orthonormal(self._free(block))
        self.values, Y, self._AX = self._ritz(S, self._times(S), S.shape[1])
        self.X = S @ Y
        self._P, self._AP = np.zeros((len(block), 0)), np.zeros((len(block), 0))
        self._R = self._AX - self.X * self.values

    def residual(self, count: int) -> float:
        """Return the largest wanted residual, relative to the largest value in size."""
        size = max(float(np.abs(self.values).max()), np.finfo(float).tiny)
        return float(np.linalg.norm(self._R[:, :count], axis=0).max() / size)

    def step(self) -> bool:
        """Take the best block in the span of X, preconditioned residuals, and last direction."""
        b = self.X.shape[1]
        W = self._free(self._R / self._spread()[:, None])
        W -= self.X @ (self.X.T @ W)
        W = self._orthonormal(W)
        if not W.shape[1]:
            return False
        AW = self._times(W)
        P, AP = self._direction(W, AW)
        S, AS = np.hstack([self.X, W, P]), np.hstack([self._AX, AW, AP])
        self.values, Y, self._AX = self._ritz(S, AS, b)
        self._P, self._AP = S[:, b:] @ Y[b:], AS[:, b:] @ Y[b:]
        self.X = S @ Y
        self._R = self._AX - self.X * self.values
        return True

    def _direction(self, W: Array, AW: Array) -> tuple[Array, Array]:
        """Orthonormalise the last direction against X and W, and its product along with it."""
        P, AP = self._P, self._AP
        for _ in range(2):
            for Q, AQ in ((self.X, self._AX), (W, AW)):
                C = Q.T @ P
                P, AP = P - Q @ C, AP - AQ @ C
            basis = _whitening(P)
            P, AP = P @ basis, AP @ basis
        return P, AP

    def _spread(self) -> Array:
        """Return the preconditioner top - diagonal, top being the largest eigenvalue in sight."""
        spread = max(float(self.values.max()), self._top) - self._diagonal
        return np.maximum(spread, 1e-3 * max(float(np.abs(spread).mean()), np.finfo(float).tiny))

    def _largest_known(self) -> float:
        if self._known is None or not self._known.shape[1]:
            return -np.inf
        return float(np.einsum("ij,ij->j", self._known, self._times(self._known)).max())

    def _free(self, V: Array) -> Array:
        if self._known is None:
            return V
        return np.asarray(V - self._known @ (self._known.T @ V))

    def _orthonormal(self, V: Array) -> Array:
        for _ in range(2):
            V = self._free(V @ _whitening(V))
        return V

    def _times(self, V: Array) -> Array:
        return np.asarray(self._gram @ np.ascontiguousarray(V), dtype=np.float64)

    def _ritz(self, S: Array, AS: Array, count: int) -> tuple[Array, Array, Array]:
        T = S.T @ AS
        values, Y = np.linalg.eigh((T + T.T) / 2)
        Y = Y[:, ::-1][:, :count]
        return values[::-1][:count], Y, AS @ Y


def _whitening(V: Array) -> Array:
    """Return B such that V B is orthonormal, without the directions that are rounding."""
    if not V.shape[1]:
        return np.zeros((0, 0))
    lengths = np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    scaled = V / lengths
    values, U = np.linalg.eigh(scaled.T @ scaled)
    kept = values > _DEPENDENT * max(float(values.max()), np.finfo(float).tiny)
    return np.asarray((U[:, kept] / np.sqrt(values[kept])) / lengths[:, None])
