"""A preconditioner of K + D from a low rank and blocks: near and far in one.

P = F F' + B, with F of a randomly pivoted Cholesky factor (what rows far apart share) and B the
diagonal blocks of K - F F' + D over groups of rows near one another (what F leaves out). Both parts
are positive definite, so P is; it is the covariance that sparse Gaussian processes call PITC. With
B = D alone the iterations to a given held-out error are several times as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.deadline import check
from mercer.gram import Gram, PartialFactor
from mercer.solvers.ridge.full.products import square_part

_WORK = 1e10  # operations between two chances to hear Ctrl-C
_CANCELLED = 1e6  # times P^-1 v: sums in float32 whose difference still has a digit
_LARGE = 1 << 22  # entries of W: beyond, no cache holds them, and reading takes the time
_CACHED = 1 << 18  # entries of W that are read at a time, so that two columns read them once


@dataclass(frozen=True, eq=False)
class Block:
    """Rows near one another and the Cholesky factor of what F leaves among them."""

    index: Array
    factor: Array

    def solve(self, V: Array) -> Array:
        """Return the inverse times V."""
        # the upper factor of a matrix by columns: LAPACK takes it without a copy
        return np.asarray(linalg.cho_solve((self.factor.T, False), V, check_finite=False))


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """v -> (F F' + B)^-1 v = B^-1 v - W W'v.

    Attributes
    ----------
    shift : (n, 1) array
        D.
    blocks : list of Block
        Of B; none where that is D.
    low : (n, r) array
        W, in float32 where its products are differences of numbers not too large for that: all of
        it is read in every step.
    """

    shift: Array
    blocks: list[Block]
    low: Array

    @classmethod
    def of(cls, gram: Gram, rough: PartialFactor, shift: Array, size: int) -> Preconditioner:
        """Build P for K + diag(shift), with blocks of up to `size` rows; 0 and 1 for none."""
        blocks = _blocks(gram, rough.factor, shift, size) if size > 1 else []
        plain = cls(shift[:, None], blocks, np.empty((len(shift), 0)))
        return cls(plain.shift, blocks, _low(plain, rough.factor))

    def __call__(self, V: Array) -> Array:
        """Multiply by the inverse of P."""
        if self.blocks:
            out = np.empty_like(V)
            for block in self.blocks:
                out[block.index] = block.solve(V[block.index])
        else:
            out = V / self.shift
        if self.low.shape[1]:
            self._take_off(V, out)
        return out

    def _take_off(self, V: Array, out: Array) -> None:
        """Subtract W W'V."""
        W = self.low
        step = max(1, _CACHED // W.shape[1])
        parts = [slice(first, first + step) for first in range(0, len(W), step)]
        V = V.astype(W.dtype, copy=False)
        inner = np.zeros((W.shape[1], V.shape[1]))
        for part in parts:
            inner += W[part].T @ V[part]
        inner = inner.astype(W.dtype, copy=False)
        for part in parts:
            out[part] -= W[part] @ inner


def _low(plain: Preconditioner, F: Array) -> Array:
    """Return W with W W' = B^-1 F (I + F'B^-1 F)^-1 F'B^-1."""
    n, rank = F.shape
    low, inner = np.empty((n, rank)), np.empty((rank, rank))
    step = max(1, int(_WORK / max(1, n * rank)))
    for first in range(0, rank, step):
        check()
        columns = slice(first, first + step)
        low[:, columns] = plain(F[:, columns])
        inner[:, columns] = F.T @ low[:, columns]
    inner = (inner + inner.T) / 2
    inner.flat[:: rank + 1] += 1.0
    largest = float(np.abs(inner).sum(axis=0).max(initial=0.0))  # no eigenvalue is larger
    if rank == 0 or choose_backend().cholesky(inner) != 0:
        return np.empty((n, 0))
    step = max(1, int(_WORK / max(1, rank * rank)))
    for first in range(0, n, step):
        check()
        rows = slice(first, first + step)
        low[rows] = linalg.solve_triangular(
            inner.T, low[rows].T, trans="T", lower=False, check_finite=False
        ).T
    return low.astype(np.float32) if low.size > _LARGE and largest < _CANCELLED else low


def _blocks(gram: Gram, F: Array, shift: Array, size: int) -> list[Block]:
    found = []
    for index in near_rows(gram, size):
        check()
        A = square_part(gram, index)
        A -= F[index] @ F[index].T
        A.flat[:: len(A) + 1] += shift[index]
        if choose_backend().cholesky(A) != 0:
            return []  # F explains all of K but rounding: D serves as well
        found.append(Block(index, A))
    return found


def near_rows(gram: Gram, size: int, random_state: int = 0) -> list[Array]:
    """Part all rows into groups near one another in feature space, each of at most `size`.

    Rows are halved again and again by whether they are nearer to one or another of two of them:
    |x - p|^2 - |x - q|^2 orders them as k(x, q) - k(x, p) does.

    Parameters
    ----------
    gram : Gram
        K.
    size : int
        The most rows of a group.
    random_state : int
        Seed of the draws.

    Returns
    -------
    list of (m,) int array
        Groups of nearly equal size, each in ascending order.
    """
    rng = np.random.default_rng(random_state)
    open_groups, done = [np.arange(gram.shape[0])], []
    while open_groups:
        index = open_groups.pop()
        if len(index) <= size:
            done.append(np.sort(index))
            continue
        two = np.asarray(gram.rows(rng.choice(index, 2, replace=False)), dtype=np.float64)
        order = np.argsort(two[0, index] - two[1, index], kind="stable")
        half = len(index) // 2
        open_groups += [index[order[:half]], index[order[half:]]]
    return done
