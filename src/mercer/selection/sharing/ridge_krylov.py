"""All penalties of all folds by Lanczos' steps, where few of them are enough.

A step multiplies one vector of each fold by the matrix: one pass over it serves all folds. The
vectors of a fold do not depend on the penalty, which only shifts the matrix, and what is left of
the equations of each penalty is a product of the coefficients found on the way: so one sequence of
steps answers all penalties, and tells when. Few steps are needed for smooth kernels, whose
eigenvalues fall fast, for narrow ones, whose smallest eigenvalues are not small, and for large
penalties. Where a forecast says that steps would cost more than a factorisation they are given up;
penalties that are met by then stay answered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from mercer._types import Array
from mercer.backends import choose_backend
from mercer.backends.blas import one_blas_thread
from mercer.selection.sharing.ridge_system import FoldAnswer, FoldSystem

FEWEST_ROWS = 1000  # below, reducing the matrix to a band takes no time
_TOGETHER = 8  # folds: up to here a pass over the matrix costs the same
_SHARE = 30  # rows for each step and penalty, up to five: more steps, and factors are cheaper
_LOOK = 40  # steps between forecasts
_GAIN = 0.5  # of a forecast: steps gain pace, as the largest eigenvalues are found
_SPARE = 0.1  # of the residual that is enough: the rest is for rounding
_REFINED = 2  # times


def by_krylov(systems: Sequence[FoldSystem], penalties: Array) -> list[FoldAnswer]:
    """Solve for all penalties of all folds; those that take too many steps are not met."""
    fewest = min(len(system.rows) for system in systems)
    most = fewest * min(len(penalties), 5) // _SHARE
    answers: list[FoldAnswer] = []
    with one_blas_thread():  # passes over the matrix have threads; the rest is too small for them
        for first in range(0, len(systems), _TOGETHER):
            together = systems[first : first + _TOGETHER]
            chains = [_Chain(system, penalties, most) for system in together]
            _advance(chains, together[0].K, most)
            answers += [chain.answer() for chain in chains]
    return answers


def _advance(chains: Sequence[_Chain], K: Array, most: int) -> None:
    """Make steps until all is met, or it is clear that it will not be soon."""
    before = np.inf
    for step in range(1, most + 1):
        V = np.column_stack([chain.vector() for chain in chains])
        values = choose_backend().symmetric_product(K, V)
        for chain, column in zip(chains, values.T, strict=True):
            chain.extend(column)
        ahead = max(chain.digits_to_go() for chain in chains)
        if ahead <= 0 and step > 1:
            return
        if step % _LOOK == 0:
            pace = (before - ahead) / _LOOK
            before = ahead
            if not _GAIN * ahead <= pace * (most - step):
                return


class _Chain:
    """Lanczos' vectors and coefficients for one fold, with the residual of each penalty."""

    def __init__(self, system: FoldSystem, penalties: Array, most: int) -> None:
        self.system, self.penalties = system, penalties
        self.enough = system.enough(penalties)
        self.alpha, self.beta = np.zeros(most), np.zeros(most)
        self.size = 0
        self._unit = float(np.linalg.norm(system.right))
        self._V = np.empty((len(system.rows), most + 1), order="F")
        self._V[:, 0] = system.right / (self._unit or 1.0)
        self._pivot, self._left = np.full(len(penalties), np.inf), np.ones(len(penalties))

    def vector(self) -> Array:
        """Give the last vector at all rows, zero outside of the fold."""
        full = np.zeros(len(self.system.K))
        full[self.system.rows] = self.system.root * self._V[:, self.size]
        return full

    def extend(self, values: Array) -> None:
        """Add a vector, from the product of the matrix with the last one."""
        k, V = self.size, self._V[:, : self.size + 1]
        w = self.system.operate(values[:, None])[:, 0]
        alpha = float(V[:, k] @ w)
        w -= alpha * V[:, k]
        last = float(self.beta[k - 1]) if k else 0.0
        if k:
            w -= last * V[:, k - 1]
        w -= V @ (V.T @ w)  # what rounding left along the others
        beta = float(np.linalg.norm(w))
        self._V[:, k + 1] = w / (beta or 1.0)
        self.alpha[k], self.beta[k], self.size = alpha, beta, k + 1
        with np.errstate(all="ignore"):  # no number, and so not met, where a kernel is not valid
            self._pivot = alpha + self.penalties - last**2 / self._pivot
            self._left = self._left * np.abs(beta / self._pivot)

    def digits_to_go(self) -> float:
        """Give how many digits the worst residual is above what is enough."""
        with np.errstate(divide="ignore"):
            worst = np.max(np.log10(self._left / (_SPARE * self.enough)))
        return float(worst)

    def answer(self) -> FoldAnswer:
        """Solve on the vectors, check the equations themselves, and refine."""
        system, V = self.system, self._V[:, : self.size]
        shape = len(self.penalties)
        X, values = np.zeros((len(system.rows), shape)), np.zeros((len(system.K), shape))
        residuals = np.repeat(system.right[:, None], shape, axis=1)
        sizes = np.where(self._left <= self.enough, np.inf, np.nan)  # to be met, not to be met
        for _ in range(1 + _REFINED):
            worse = np.flatnonzero(sizes > self.enough)
            if not len(worse):
                break
            X[:, worse] += V @ self._solve(self.penalties[worse], V.T @ residuals[:, worse])
            values[:, worse] = system.values(X[:, worse])
            residuals[:, worse] = system.residuals(
                X[:, worse], values[:, worse], self.penalties[worse]
            )
            sizes[worse] = system.sizes(residuals[:, worse])
        return FoldAnswer(values + system.intercept(values), sizes <= self.enough)

    def _solve(self, penalties: Array, right: Array) -> Array:
        """Solve each column at its penalty; NaN where the matrix is not positive definite."""
        found = np.full_like(right, np.nan)
        beta = self.beta[: self.size - 1]
        for j, penalty in enumerate(penalties.tolist()):
            diagonal = self.alpha[: self.size] + penalty
            _, _, solved, info = lapack.dptsv(diagonal, beta, right[:, [j]])
            if info == 0:
                found[:, j] = solved[:, 0]
        return found
