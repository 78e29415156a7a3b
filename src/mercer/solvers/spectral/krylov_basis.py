"""An orthonormal basis that grows by blocks, and the operator as it looks inside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.backends.long_arrays import LongArrays, Operator

_LOST = 1e-13  # of the operator's size: what is left of a direction that lay inside the basis
_SKEW = 1e-6  # ratio of extreme pivots below which Cholesky of W'W is not trusted
_SQUARED = 1e-140  # norms whose squares have all their digits


class Basis:
    """Orthonormal vectors Q, T = Q'AQ, and the part of A Q that lies outside of Q.

    Vectors are rows here (`_Q`), in memory taken once. Those that are known beforehand come first;
    T leaves them out.

    Parameters
    ----------
    operator : Operator
        A; the basis lies where its products are made.
    n, most : int
        Length and largest number of vectors.
    known : (n, c) array, optional
        Orthonormal vectors that everything else stays orthogonal to.
    """

    def __init__(self, operator: Operator, n: int, most: int, known: Array | None = None) -> None:
        self._fixed = 0 if known is None else known.shape[1]
        if not operator.arrays.has_room(8.0 * (self._fixed + most) * n):
            operator = operator.here()
        self._apply, self._long, self._n = operator.apply, operator.arrays, n
        self._Q = self._long.empty(self._fixed + most, n)
        if known is not None:
            self._Q[: self._fixed] = self._long.put(known.T)
        self._T = np.zeros((most, most))
        self.size = 0  # vectors that A was applied to
        self._waiting = 0  # orthonormal vectors after those: the next block
        self._coupling = np.zeros((0, 0))  # what A sends from the last block to the waiting one
        self.closed = False  # whether a product lay, in part, inside the basis; reset by others
        self.norm = 0.0  # size of the operator as seen so far
        self._seed = 0

    def begin(self, block: Array) -> None:
        """Take the first block."""
        with one_blas_thread():
            W = np.array(block, dtype=np.float64)
            W /= np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
            U, _, lost = self._orthonormal(self._long.put(W), None)
            self._append(self._replaced(U, lost))

    @property
    def waiting(self) -> int:
        """Count the vectors of the next block."""
        return self._waiting

    @property
    def vectors(self) -> Array:
        """The basis as columns, without the block that waits: (n, size)."""
        return self._long.get(self._Q[self._fixed : self._fixed + self.size]).T

    def extend(self) -> None:
        """Multiply the waiting block, project, and orthonormalise what is left."""
        first, b = self.size, self._waiting
        rows = slice(self._fixed + first, self._fixed + first + b)
        W = self._long.put(self._apply(self._long.turned(self._Q[rows])))
        self.size, self._waiting = first + b, 0
        with one_blas_thread():
            H = np.zeros((self._fixed + self.size, b))
            self._scale(W)
            U, R, lost = self._orthonormal(W, H)
            H = H[self._fixed :]
            T = self._T
            T[: self.size, first : self.size] = H
            T[first : self.size, :first] = H[:first].T
            T[first : self.size, first : self.size] = (H[first:] + H[first:].T) / 2
            self._coupling = R
            self._append(self._replaced(U, lost))
        self.closed = self.closed or bool(lost)

    def _scale(self, W: Any) -> None:
        squares = self._long.squared_lengths(W)
        self.norm = max(self.norm, float(np.sqrt(squares.max(initial=0.0))))

    def add_random(self, width: int) -> None:
        """Widen the waiting block by random directions: copies that hid may lie along them."""
        with one_blas_thread():
            self._append(self._random(width, None))

    def ritz(self, k: int) -> tuple[Array, Array, Array]:
        """Return the k largest Ritz values, their coordinates, and residual norms."""
        values, Y = self._decomposed(k)
        last = Y[len(Y) - self._coupling.shape[1] :]
        residuals = np.linalg.norm(self._coupling @ last, axis=0)
        return values, Y, residuals

    def _decomposed(self, k: int) -> tuple[Array, Array]:
        T, m = self._T[: self.size, : self.size], self.size
        if not np.isfinite(T).all():
            self.norm = np.inf
            return np.full(k, np.nan), np.zeros((m, k))
        if 4 * k <= m:
            values, Y = linalg.eigh(T, subset_by_index=[m - k, m - 1], check_finite=False)
        if 4 * k > m or len(values) < k:  # LAPACK may give fewer where all are equal to rounding
            values, Y = linalg.eigh(T, check_finite=False, driver="evd")
        return values[::-1][:k], Y[:, ::-1][:, :k]

    def all_ritz(self) -> tuple[Array, Array]:
        """Return all Ritz values and their coordinates, largest first."""
        return self._decomposed(self.size)

    def lift(self, Y: Array) -> Array:
        """Return the long vectors of coordinates: (n, k)."""
        Q = self._Q[self._fixed : self._fixed + self.size]
        return np.ascontiguousarray(self._long.get(self._long.put(Y).T @ Q).T)

    def project(self, V: Array) -> Array:
        """Return coordinates of long vectors in the basis: (size, k)."""
        Q = self._Q[self._fixed : self._fixed + self.size]
        return self._long.get(Q @ self._long.put(V))

    def restart(self, keep: int) -> None:
        """Shrink to the best Ritz vectors and the waiting block.

        What couples the two comes back with the next product, which is projected on everything.
        """
        values, Y = self._decomposed(min(keep, self.size))
        end = self._fixed + self.size
        kept, waiting = self._long.put(Y).T @ self._Q[self._fixed : end], self._waiting
        following = self._long.put(self._Q[end : end + waiting])
        middle = self._fixed + len(kept)
        self._Q[self._fixed : middle], self._Q[middle : middle + waiting] = kept, following
        self._T[:] = 0.0
        np.fill_diagonal(self._T[: len(kept), : len(kept)], values)
        self.size = len(kept)
        self._coupling = self._coupling[:, :0]

    def _append(self, U: Any) -> None:
        at = self._fixed + self.size + self._waiting
        self._Q[at : at + U.shape[1]] = U.T
        self._waiting += U.shape[1]

    def _orthonormal(self, W: Any, H: Array | None) -> tuple[Any, Array, list[int]]:
        """Orthonormalise W against the basis and itself: W = Q H + U R; H is added to.

        Twice each: what one step leaves of its own rounding the other one takes. Gives the columns
        of U that are only rounding, too; rows of R are zero there.
        """
        W -= self._taken(W, H, None)
        U, R, lost = _unit(W, _LOST * self.norm, self._long)
        U -= self._taken(U, H, R)
        again, S, _ = _unit(U, 0.0, self._long)
        return again, S @ R, lost

    def _taken(self, W: Any, H: Array | None, R: Array | None) -> Any:
        Q = self._Q[: self._fixed + self.size + self._waiting]
        C = Q @ W
        if H is not None:
            H += self._long.get(C) if R is None else self._long.get(C) @ R
        return (C.T @ Q).T

    def _replaced(self, U: Any, lost: list[int]) -> Any:
        """Put random directions where a direction was lost."""
        if lost:
            others = np.delete(self._long.get(U), lost, axis=1)
            U[:, lost] = self._random(len(lost), self._long.put(others))
        return U

    def _random(self, count: int, others: Any) -> Any:
        self._seed += 1
        rng = np.random.default_rng([self._seed, self.size])
        W = self._long.put(rng.standard_normal((self._n, count)) / np.sqrt(self._n))
        for _ in range(2):
            W -= self._taken(W, None, None)
            if others is not None:
                W -= others @ (others.T @ W)
            W = self._long.put(np.linalg.qr(self._long.get(W))[0])
        return W


def _unit(W: Any, least: float, arrays: LongArrays) -> tuple[Any, Array, list[int]]:
    """Factor W = U R with orthonormal columns; columns below `least` are lost (zero in R).

    Cholesky of W'W is ten times faster than Householder steps, and good enough when taken twice,
    unless columns are nearly dependent.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        G = arrays.get(W.T @ W)
    try:
        R = linalg.cholesky(G, check_finite=False)
        pivots = R.diagonal()
        if pivots.min() > max(_SKEW * pivots.max(), 1e3 * least, _SQUARED):
            inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
            return W @ arrays.put(inverse), R, []
    except linalg.LinAlgError:
        pass
    if not np.isfinite(G).all():
        return arrays.put(np.zeros(tuple(W.shape))), np.full_like(G, np.nan), []
    Q, R = np.linalg.qr(arrays.get(W))
    left, sigma, right = np.linalg.svd(R)
    lost = np.flatnonzero(sigma <= least).tolist()
    sigma[lost] = 0.0
    return arrays.put(Q @ left), sigma[:, None] * right, lost
