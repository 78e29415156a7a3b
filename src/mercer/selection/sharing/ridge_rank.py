"""All penalties of a fold where the kernel is smooth: few columns nearly span its matrix.

Pivoted Cholesky gives K = L L' + E with a small E. Fits with L L' in place of K are cheap; they are
not taken as answers but as directions: all penalties share one growing subspace V, the equations
are solved on it exactly (K V is known), and what is left of them, passed through the inverse of
R L L' R + p + mean E, gives new directions. That goes on until the residuals of the true equations
are small. A product K V serves every penalty, since penalties only shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from mercer._types import Array
from mercer.selection.sharing.base import Stop, Stopped
from mercer.selection.sharing.ridge_system import FoldAnswer, FoldSystem

FEWEST_ROWS = 1000  # below, reducing the matrix to a band takes no time
_SHARE = 4  # rows for each column of L, at least
_BLOCK = 128  # columns of L at a time
_SMOOTH = 1 / 30  # of the smallest penalty: more left in the mean, and E is not small
_DEEP = 1e-3  # of a penalty: less left in the mean does not help it
_APART = 4.0  # factor between shifts that have inverses of their own
_ROUNDS = 30
_SAME = 1e-7  # of a direction: less of it is new, and rounding is all there is


@dataclass(frozen=True, eq=False)
class Basis:
    """K = L L' + E.

    Attributes
    ----------
    L : (n, k) array
        Columns of the factor.
    counts : (b,) int array
        Numbers of columns after each block.
    left : (b,) array
        The mean diagonal entry of E with so many columns.
    """

    L: Array
    counts: Array
    left: Array

    def columns_for(self, penalty: float) -> tuple[int, float]:
        """Give how many columns are enough at a penalty, and what they leave."""
        enough = np.flatnonzero(self.left <= _DEEP * penalty)
        block = int(enough[0]) if len(enough) else len(self.left) - 1
        return int(self.counts[block]), float(self.left[block])


def smooth_basis(K: Array, smallest: float) -> Basis | None:
    """Factor K as far as the smallest penalty needs; None where that takes too many columns.

    Pivots are drawn by what is left of the diagonal, a block at a time, with fixed seed: those of
    a block that the others of it make superfluous are dropped.
    """
    n = len(K)
    most, rng = n // _SHARE, np.random.default_rng(0)
    L, left = np.empty((n, most), order="F"), K.diagonal().copy()
    if (left < 0).any():
        return None  # no kernel
    counts: list[int] = []
    means: list[float] = []
    k = 0
    while k < most and (mean := float(left.mean())) > _DEEP * smallest:
        drawn = min(_BLOCK, most - k, int(np.count_nonzero(left)))
        pivots = rng.choice(n, size=drawn, replace=False, p=left / left.sum())
        columns = K[:, pivots] - L[:, :k] @ L[pivots, :k].T
        factor, order, rank, _ = lapack.dpstrf(columns[pivots], lower=1, tol=_DEEP * mean)
        if rank == 0:
            break
        kept = order[:rank] - 1
        new = linalg.solve_triangular(
            np.tril(factor[:rank, :rank]), columns[:, kept].T, lower=True, check_finite=False
        ).T
        L[:, k : k + rank] = new
        k += rank
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0.0)
        left[pivots[kept]] = 0.0
        counts.append(k)
        means.append(float(left.mean()))
    if not counts or not means[-1] <= _SMOOTH * smallest:
        return None
    return Basis(L[:, :k], np.array(counts), np.array(means))


def by_rank(basis: Basis, system: FoldSystem, penalties: Array, stop: Stop) -> FoldAnswer:
    """Solve for all penalties; those whose residuals do not become small are not met."""
    space = _Space(system)
    inverse = _Inverse(basis, system)
    residuals = np.repeat(system.right[:, None], len(penalties), axis=1)
    sizes, enough = system.sizes(residuals), system.enough(penalties)
    found = np.zeros((0, len(penalties)))
    for _ in range(_ROUNDS):
        if stop():
            raise Stopped
        worse = np.flatnonzero(~(sizes <= enough))
        if not len(worse):
            break
        directions = [inverse.at(penalties[k], residuals[:, [k]] / sizes[k]) for k in worse]
        if not space.extend(np.hstack(directions)):
            break
        found = np.pad(found, ((0, space.size - len(found)), (0, 0)))
        found[:, worse] = space.solve(penalties[worse])
        residuals[:, worse] = space.residuals(found[:, worse], penalties[worse])
        sizes[worse] = system.sizes(residuals[:, worse])
    values = space.values(found)
    return FoldAnswer(values + system.intercept(values), sizes <= enough)


class _Inverse:
    """Products with (R L L' R + q)^-1, projected; factors of nearby q are one."""

    def __init__(self, basis: Basis, system: FoldSystem) -> None:
        self.basis, self.system = basis, system
        self.L = np.asfortranarray(system.project(system.root[:, None] * basis.L[system.rows]))
        self.inner = self.L.T @ self.L
        self._factors: dict[tuple[int, int], Array] = {}

    def at(self, penalty: float, V: Array) -> Array:
        k, left = self.basis.columns_for(penalty)
        step = round(np.log(penalty + left) / np.log(_APART))
        q, L = _APART**step, self.L[:, :k]
        if (k, step) not in self._factors:
            shifted = self.inner[:k, :k].copy(order="F")
            shifted.flat[:: k + 1] += q
            self._factors[k, step] = lapack.dpotrf(shifted, lower=1, overwrite_a=1)[0]
        return np.asarray((V - L @ lapack.dpotrs(self._factors[k, step], L.T @ V, lower=1)[0]) / q)


class _Space:
    """Orthonormal directions V of a fold, with K V and V'R K R V."""

    def __init__(self, system: FoldSystem) -> None:
        self.system, self.size = system, 0
        self._V = np.empty((len(system.rows), 64), order="F")
        self._KV = np.empty((len(system.K), 64), order="F")  # values at all rows
        self._H = np.empty((64, 64))
        self._right = np.empty(64)

    def extend(self, Z: Array) -> int:
        """Add what is new in some directions; give how many that are."""
        V, project = self._V[:, : self.size], self.system.project
        norms = np.linalg.norm(Z, axis=0)
        Z = Z / np.where(norms > 0, norms, 1.0)
        for _ in range(2):
            Z = project(Z - V @ (V.T @ Z))
        Q, R, _ = linalg.qr(Z, mode="economic", pivoting=True, check_finite=False)
        Q = Q[:, np.abs(np.diagonal(R)) > _SAME]
        for _ in range(2):  # what was small had rounding in it, which is not small now
            Q = np.linalg.qr(project(Q - V @ (V.T @ Q)))[0]
        count = int(Q.shape[1])
        if count:
            self._add(project(Q), self.system.values(Q))
        return count

    def _add(self, Q: Array, KQ: Array) -> None:
        first, last = self.size, self.size + Q.shape[1]
        if last > self._V.shape[1]:
            more = last + 64
            self._V = _wider(self._V, more)
            self._KV = _wider(self._KV, more)
            self._H = _wider(_wider(self._H, more).T, more)
            self._right = _wider(self._right[None], more)[0]
        self._V[:, first:last], self._KV[:, first:last] = Q, KQ
        block = self._V[:, :last].T @ self.system.operate(KQ)
        self._H[:last, first:last], self._H[first:last, :last] = block, block.T
        self._right[first:last] = Q.T @ self.system.right
        self.size = last

    def solve(self, penalties: Array) -> Array:
        """Solve the equations on the space: (V'R K R V + p) c = V'R y."""
        H, right = self._H[: self.size, : self.size], self._right[: self.size]
        found = np.empty((self.size, len(penalties)))
        for k, penalty in enumerate(penalties.tolist()):
            shifted = np.array(H, order="F")
            shifted.flat[:: self.size + 1] += penalty
            found[:, k] = lapack.dposv(shifted, right, lower=1, overwrite_a=1)[1]
        return found

    def values(self, found: Array) -> Array:
        """Give K R V c at all rows."""
        return np.asarray(self._KV[:, : self.size] @ found)

    def residuals(self, found: Array, penalties: Array) -> Array:
        """Give what is left of the equations of the fold."""
        return self.system.residuals(self._V[:, : self.size] @ found, self.values(found), penalties)


def _wider(A: Array, columns: int) -> Array:
    out = np.empty((A.shape[0], columns), order="F")
    out[:, : A.shape[1]] = A
    return out
