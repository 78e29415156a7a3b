"""The subspace in which a fold is solved for all penalties: Lanczos' vectors, and others beside.

Lanczos' vectors V turn the matrix A of a fold into a tridiagonal T, A V = V T + beta v e'. Further
vectors Z, orthogonal to V, are tied to them by their products q with v alone:

    | T + p     beta e q' |  | x |     | V'r |
    | beta q e' Z'AZ + p  |  | y |  =  | Z'r |

So a penalty costs a tridiagonal solve and a small dense one, and what the equations leave lies in
the span of AZ, Z and two of the Lanczos vectors.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mercer.array_types import Array
from mercer.solvers.base import Watch
from mercer.solvers.ridge.folds.fits import FoldFits, refined
from mercer.solvers.ridge.folds.system import FoldSystem

_TINY = float(np.finfo(np.float64).tiny)
_NEW = 1e-6  # of a vector's length: less than that beside the subspace is rounding
_PURE = 0.5  # the same: with more than that, a vector is orthogonal to it at once


class KrylovSubspace:
    """The subspace of one fold, with the residual of each penalty.

    Parameters
    ----------
    system : FoldSystem
        The equations of the fold.
    penalties : (p,) array
        All of them.
    most : int
        Lanczos' vectors, and vectors beside them, at most.
    """

    def __init__(self, system: FoldSystem, penalties: Array, most: int) -> None:
        m = len(system.rows)
        self.system, self.penalties = system, penalties
        self.enough = system.enough(penalties)
        self.left = np.ones(len(penalties))  # residuals, in units of the targets
        self.alpha, self.beta = np.zeros(most), np.zeros(most)
        self.size = self.width = 0
        self._unit = float(np.linalg.norm(system.right))
        self._V = np.empty((m, most + 1), order="F")
        self._V[:, 0] = system.right / (self._unit or 1.0)
        self._pivot = np.full(len(penalties), np.inf)
        self._Z, self._AZ = np.empty((m, most), order="F"), np.empty((m, most), order="F")
        self._H, self._q = np.zeros((most, most)), np.zeros(most)

    def vector(self) -> Array:
        """Return the last of Lanczos' vectors."""
        return self._V[:, self.size]

    def extend(self, values: Array) -> None:
        """Add a Lanczos vector, from the values of the last one at all rows."""
        k, V = self.size, self._V[:, : self.size + 1]
        w = self.system.operate(values[:, None])[:, 0]
        alpha = float(V[:, k] @ w)
        w -= alpha * V[:, k]
        last = float(self.beta[k - 1]) if k else 0.0
        if k:
            w -= last * V[:, k - 1]
        w -= V @ (V.T @ w)  # what rounding left along the others
        w = self.system.project(w[:, None])[:, 0]
        beta = float(np.linalg.norm(w))
        self._V[:, k + 1] = w / (beta or 1.0)
        self.alpha[k], self.beta[k], self.size = alpha, beta, k + 1
        with np.errstate(all="ignore"):  # no number, and so not met, where a kernel is not valid
            self._pivot = alpha + self.penalties - last**2 / self._pivot
            self.left = self.left * np.abs(beta / self._pivot)

    def fresh(self, W: Array) -> Array:
        """Return an orthonormal basis of what vectors have beside the subspace.

        Taking the subspace off a vector leaves along it what rounding leaves, over the part of the
        vector that is new. Those errors would multiply from one call to the next, so the subspace
        is taken off twice where less than half is new (Kahan and Parlett: twice is enough); and
        again where a vector is dropped, since the others were made orthogonal to its rounding.
        """
        V, Z = self._V[:, : self.size], self._Z[:, : self.width]
        W = W[:, : self._Z.shape[1] - self.width]
        for _ in range(2 + W.shape[1]):
            W = np.array(W / np.maximum(np.linalg.norm(W, axis=0), _TINY), order="F")
            for j in range(W.shape[1]):  # products with two or three vectors at once are slower
                W[:, j] -= V @ (V.T @ W[:, j])
                W[:, j] -= Z @ (Z.T @ W[:, j])
            W, R = np.linalg.qr(self.system.project(W))
            beside = np.abs(np.diagonal(R))
            W = W[:, beside > _NEW]
            if not (beside <= _PURE).any():
                break  # rounding left nothing along the subspace that would matter
        return W

    def widen(self, W: Array, values: Array) -> None:
        """Add fresh vectors, with their values at all rows; residuals are those they leave."""
        first, last = self.width, self.width + W.shape[1]
        self._Z[:, first:last], self._AZ[:, first:last] = W, self.system.operate(values)
        block = self._Z[:, :last].T @ self._AZ[:, first:last]
        self._H[:last, first:last], self._H[first:last, :last] = block, block.T
        self._q[first:last] = W.T @ self._V[:, self.size]
        self.width = last

    def residuals(self, chosen: Array) -> Array:
        """Return what chosen penalties leave, in units of the targets, and note its size."""
        k, Z, AZ = self.size, self._Z[:, : self.width], self._AZ[:, : self.width]
        penalties = self.penalties[chosen]
        right = np.zeros((k + self.width, len(chosen)))
        right[0] = 1.0
        both = self._solve(penalties, right)
        x, y, beta = both[k - 1], both[k:], self.beta[k - 1]
        left = np.outer(self._V[:, k - 1], beta * (self._q[: self.width] @ y))
        left -= np.outer(self._V[:, k], beta * x)
        left -= AZ @ y + Z @ (y * penalties)
        self.left[chosen] = np.linalg.norm(left, axis=0)
        return left

    def worst(self, chosen: Array, most: int, spare: float) -> Array:
        """Return directions that have most of what chosen penalties leave beyond what is enough."""
        unmet = np.flatnonzero(chosen & (self.digits() > -spare))
        if not len(unmet):
            unmet = np.flatnonzero(chosen)  # more vectors may have spoilt what was met
        left = self.residuals(unmet) / self.enough[unmet]
        left = left[:, np.linalg.norm(left, axis=0) > 10.0**-spare]
        sizes, turned = np.linalg.eigh(left.T @ left)
        large = np.flatnonzero(sizes > 100.0**-spare)[::-1][:most]
        return np.asarray(left @ turned[:, large])

    def digits(self) -> Array:
        """Return how many digits the residual of each penalty is above what is enough."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log10(self.left / self.enough))

    def fits(self, watch: Watch) -> FoldFits:
        """Solve in the subspace for all penalties that it should answer, and refine."""
        V, Z = self._V[:, : self.size], self._Z[:, : self.width]

        def correct(chosen: Array, left: Array) -> Array:
            both = self._solve(self.penalties[chosen], np.vstack([V.T @ left, Z.T @ left]))
            return np.asarray(V @ both[: self.size] + Z @ both[self.size :])

        met = self.left <= self.enough  # as the recurrence sees it
        return refined(self.system, self.penalties, correct, watch, tried=met)

    def _solve(self, penalties: Array, right: Array) -> Array:
        """Solve each column at its penalty; NaN where the matrix is not positive definite."""
        k, found = self.size, np.full_like(right, np.nan)
        q, H, diagonal = self._q[: self.width], self._H[: self.width, : self.width], np.arange(k)
        end = (diagonal == k - 1).astype(np.float64)
        for j, penalty in enumerate(penalties.tolist()):
            ends = np.column_stack([right[:k, j], end])
            _, _, solved, info = lapack.dptsv(self.alpha[:k] + penalty, self.beta[: k - 1], ends)
            if info != 0:
                continue
            tie = self.beta[k - 1] * q
            if self.width:
                small = H - np.outer(tie, solved[-1, 1] * tie)
                small.flat[:: self.width + 1] += penalty
                _, y, info = lapack.dposv(small, right[k:, [j]] - tie[:, None] * solved[-1, 0])
                if info != 0:
                    continue
                found[k:, j] = y[:, 0]
                solved[:, 0] -= solved[:, 1] * (tie @ y[:, 0])
            found[:k, j] = solved[:, 0]
        return found
