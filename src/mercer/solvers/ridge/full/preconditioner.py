"""A preconditioner of K + D from a low rank and blocks: near and far in one.

P = F F' + B, with F of a randomly pivoted Cholesky factor (what rows far apart share) and B the
diagonal blocks of K - F F' + D over groups of rows near one another (what F leaves out). Both parts
are positive definite, so P is; it is the covariance that sparse Gaussian processes call PITC. With
B = D alone the iterations to a given held-out error are several times as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.long_arrays import HERE, LongArrays
from mercer.backends.stored import Factor
from mercer.deadline import check
from mercer.gram import Gram, PartialFactor
from mercer.solvers.ridge.full.products import stored_part

_WORK = 1e10  # operations between two chances to hear Ctrl-C
_CANCELLED = 1e6  # times P^-1 v: sums in float32 whose difference still has a digit
_LARGE = 1 << 22  # entries of W: beyond, no cache holds them, and reading takes the time
_COPIES = 3  # of F on a card: it, W, and what W is made of


@dataclass(frozen=True, eq=False)
class Block:
    """Rows near one another and the Cholesky factor of what F leaves among them."""

    index: Any
    factor: Factor


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """v -> (F F' + B)^-1 v = B^-1 v - W W'v, held and applied where products with K are made.

    Attributes
    ----------
    arrays : LongArrays
        Where.
    shift : (n, 1) array
        D.
    blocks : list of Block
        Of B; none where that is D.
    low : (n, r) array or None
        W, in float32 where its products are differences of numbers not too large for that: all of
        it is read in every step.
    """

    arrays: LongArrays
    shift: Any
    blocks: list[Block]
    low: Any = None

    @classmethod
    def of(cls, gram: Gram, rough: PartialFactor, shift: Array, size: int) -> Preconditioner:
        """Build P for K + diag(shift), with blocks of up to `size` rows; 0 and 1 for none."""
        arrays, F = gram.operator().arrays, rough.factor
        if not arrays.has_room(8.0 * len(shift) * (_COPIES * F.shape[1] + size)):
            arrays = HERE
        blocks = _blocks(gram, F, shift, size, arrays) if size > 1 else []
        plain = cls(arrays, arrays.put(shift[:, None]), blocks)
        return replace(plain, low=_low(plain, F))

    def __call__(self, V: Array) -> Array:
        """Multiply by the inverse of P."""
        V = self.arrays.put(V)
        out = self.without_low(V)
        if self.low is not None:
            self.arrays.take_off(self.low, V, out)
        return self.arrays.get(out)

    def without_low(self, V: Any) -> Any:
        """Return B^-1 V, for an array that lies there."""
        if not self.blocks:
            return V / self.shift
        out = self.arrays.empty(*V.shape)
        for block in self.blocks:
            out[block.index] = block.factor.solve_there(V[block.index])
        return out


def _low(plain: Preconditioner, F: Array) -> Any:
    """Return W with W W' = B^-1 F (I + F'B^-1 F)^-1 F'B^-1; None where there is none."""
    arrays, (n, rank) = plain.arrays, F.shape
    there, low, inner = arrays.lent(F), arrays.empty(n, rank), np.empty((rank, rank))
    step = max(1, int(_WORK / max(1, n * rank)))
    for first in range(0, rank, step):
        check()
        columns = slice(first, first + step)
        low[:, columns] = plain.without_low(there[:, columns])
        inner[:, columns] = arrays.get(there.T @ low[:, columns])
    inner = (inner + inner.T) / 2
    inner.flat[:: rank + 1] += 1.0
    largest = float(np.abs(inner).sum(axis=0).max(initial=0.0))  # no eigenvalue is larger
    factor = choose_backend().cholesky_factor(inner) if rank else None
    if factor is None:
        return None
    factor = factor.here() if arrays is HERE else factor
    step = max(1, int(_WORK / max(1, rank * rank)))
    for first in range(0, n, step):
        check()
        rows = slice(first, first + step)
        low[rows] = factor.half_there(low[rows].T).T
    return arrays.rounded(low) if n * rank > _LARGE and largest < _CANCELLED else low


def _blocks(gram: Gram, F: Array, shift: Array, size: int, arrays: LongArrays) -> list[Block]:
    found = []
    for index in near_rows(gram, size):
        check()
        factor = stored_part(gram, index).cholesky(shift[index], less=(F[index], None))
        if factor is None:
            return []  # F explains all of K but rounding: D serves as well
        factor = factor.here() if arrays is HERE else factor
        found.append(Block(arrays.numbers(index), factor))
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
