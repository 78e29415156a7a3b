"""A few eigenpairs from products alone: block Lanczos with full orthogonalisation.

Blocks of 16 to 32 vectors cost hardly more than one (a product is bound by reading or making K), so
what counts is passes over K. Residuals of the Ritz pairs come from the last block alone, without
touching long vectors; a thick restart bounds the basis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer._types import Array
from mercer.gram import Gram
from mercer.problems import Eigenproblem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigh import ordered


@dataclass(frozen=True)
class Lanczos(Solver):
    """Block Lanczos for the largest eigenpairs.

    Parameters
    ----------
    tol : float
        Stop when every wanted residual is below tol times the largest eigenvalue.
    max_iter : int
        Largest number of passes over K.
    block : int or None
        Vectors per pass; None takes 16, or 32 when 50 pairs or more are wanted.
    random_state : int
        Seed of the starting block.
    """

    tol: float = 1e-10
    max_iter: int = 300
    block: int | None = None
    random_state: int = 0

    def refuses(self, problem: Any) -> str | None:
        """Take eigenproblems that want few of many pairs."""
        if not isinstance(problem, Eigenproblem):
            return f"Lanczos answers Eigenproblem problems, not {type(problem).__name__}"
        if 3 * (problem.count + self._width(problem.count)) > problem.gram.shape[0]:
            return "Lanczos is for few of many eigenpairs; use solver=Eigh()"
        return None

    def _width(self, k: int) -> int:
        return self.block or (16 if k < 50 else 32)

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Grow the basis block by block until the wanted pairs stand still."""
        gram, k = problem.gram, problem.count
        width = self._width(k)
        basis = _Basis(gram, _starting_block(self.random_state, gram.shape[0], width, start))
        longest = min(gram.shape[0] // 2, max(6 * k, 40 * width))
        status, before = Status.ITERATION_LIMIT, np.zeros(0)
        for iteration in range(1, self.max_iter + 1):
            basis.extend()
            values, Y, residuals = basis.ritz(k)
            if len(values) == k:
                worst = float(residuals.max() / max(abs(values[0]), np.finfo(float).tiny))
                # where the space closed on itself, further copies of an eigenvalue may lie outside
                settled = not basis.closed or _equal(values, before, self.tol)
                if worst <= self.tol and settled:
                    status = Status.SOLVED
                    break
                before = values
                if watch.tick(iteration, worst):
                    status = watch.stopped or Status.STOPPED
                    break
            if basis.size + width > longest:
                basis.restart(k + width)
        values, Y, _ = basis.ritz(k)
        modes = ordered(values, basis.vectors @ Y, k)
        return report(self, modes, status, iteration, watch)


class _Basis:
    """An orthonormal basis Q, the projection T = Q'KQ, and K times the last block outside Q."""

    def __init__(self, gram: Gram, block: Array) -> None:
        self._gram = gram
        self._Q = block
        self._T = np.zeros((0, 0))
        self._next = block
        self._W = np.zeros((len(block), 0))
        self.closed = False  # whether the newest product lay, in part, inside the basis

    @property
    def size(self) -> int:
        return len(self._T)

    @property
    def vectors(self) -> Array:
        return self._Q[:, : self.size]

    def extend(self) -> None:
        """Multiply the newest block, project, and orthonormalise what is left."""
        b = self._next.shape[1]
        W = np.asarray(self._gram @ np.ascontiguousarray(self._next), dtype=np.float64)
        H = np.zeros((self.size + b, b))
        for _ in range(2):  # once is not enough: what is left may be small
            C = self._Q.T @ W
            W -= self._Q @ C
            H += C
        T = np.zeros((self.size + b, self.size + b))
        T[: self.size, : self.size] = self._T
        T[:, self.size :] = H
        T[self.size :, :] = H.T
        T[self.size :, self.size :] = (H[self.size :] + H[self.size :].T) / 2
        self._T, self._W = T, W
        self._next, self.closed = _orthonormal(W, self._Q, float(np.abs(T).max()))
        self._Q = np.hstack([self._Q, self._next])

    def ritz(self, k: int) -> tuple[Array, Array, Array]:
        """Give Ritz values, their coordinates, and residual norms for the k largest."""
        values, Y = linalg.eigh(self._T, check_finite=False)
        values, Y = values[::-1][:k], Y[:, ::-1][:, :k]
        last = Y[-self._W.shape[1] :]
        residuals = np.sqrt(
            np.maximum(np.einsum("ij,ij->j", last, (self._W.T @ self._W) @ last), 0)
        )
        return values, Y, residuals

    def restart(self, keep: int) -> None:
        """Shrink to the best Ritz vectors and the next block; T keeps their coupling."""
        values, Y = linalg.eigh(self._T, check_finite=False)
        values, Y = values[::-1][:keep], Y[:, ::-1][:, :keep]
        # the coupling of kept Ritz vectors to the next block comes back with the next product,
        # since `extend` projects on the whole basis
        self._Q = np.hstack([self.vectors @ Y, self._next])
        self._T = np.diag(values)


def _starting_block(seed: int, n: int, width: int, start: Any) -> Array:
    block = np.random.default_rng(seed).standard_normal((n, width))
    if start is not None:
        block = np.hstack([start.vectors, block])[:, : max(width, start.vectors.shape[1])]
    return np.linalg.qr(block)[0]


def _equal(values: Array, before: Array, tol: float) -> bool:
    return len(values) == len(before) and bool(
        np.abs(values - before).max() <= tol * max(np.abs(values).max(), np.finfo(float).tiny)
    )


def _orthonormal(W: Array, Q: Array, scale: float) -> tuple[Array, bool]:
    """Orthonormalise a block against itself and the basis; lost directions become random ones."""
    U, R, _ = linalg.qr(W, mode="economic", pivoting=True, check_finite=False)
    lost = np.abs(R.diagonal()) <= 1e-13 * max(scale, np.finfo(float).tiny)
    if lost.any():
        U[:, lost] = np.random.default_rng(len(Q.T)).standard_normal((len(W), int(lost.sum())))
    for _ in range(2):
        U -= Q @ (Q.T @ U)
        U = np.linalg.qr(U)[0]
    return U, bool(lost.any())
