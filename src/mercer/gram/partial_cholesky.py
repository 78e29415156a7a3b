"""Partial Cholesky factors K ~ F F' from few rows of K, by random pivots.

Rows are drawn with probability proportional to what is still unexplained on the diagonal, a batch
at a time; within a batch, a drawn row is kept with the probability that drawing one by one would
have given it. The trace of what is left bounds the error: ||K - F F'||_2 <= trace(K - F F').
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dgemm, dtrsm

from mercer.array_types import Array
from mercer.backends.lapack import one_blas_thread
from mercer.gram.base import Gram

_BATCH = 128
_ALONE = 4e9  # operations up to which threads of BLAS wait for one another longer than they work


@dataclass(frozen=True)
class PartialFactor:
    """K ~ factor factor'.

    Attributes
    ----------
    columns : (n, rank) float64 array
        F, columns side by side in memory.
    pivots : (rank,) int array
        The rows of K that were used.
    trace_left : float
        Trace of K - F F', a bound on its norm.
    """

    columns: Array
    pivots: Array
    trace_left: float

    @cached_property
    def factor(self) -> Array:
        """F, rows side by side in memory."""
        return np.ascontiguousarray(self.columns)


def pivoted_cholesky(
    gram: Gram, rank: int, random_state: int = 0, trace_tol: float = 0.0
) -> PartialFactor:
    """Factor K approximately from at most `rank` of its rows.

    Parameters
    ----------
    gram : Gram
        Positive semidefinite.
    rank : int
        Largest number of columns of F.
    random_state : int
        Seed of the draws.
    trace_tol : float
        Stop when the trace left is below this.

    Returns
    -------
    PartialFactor
        The factor, its pivots and the trace left.
    """
    n = gram.shape[0]
    alone = n * min(rank, n) ** 2 <= _ALONE
    with one_blas_thread() if alone else nullcontext():
        return _drawn(gram, rank, np.random.default_rng(random_state), trace_tol)


def _drawn(gram: Gram, rank: int, rng: np.random.Generator, trace_tol: float) -> PartialFactor:
    left = np.maximum(gram.diag(), 0.0)  # an invalid kernel may have negative entries here
    floor = 1e-12 * max(left.max(initial=0.0), np.finfo(float).tiny)
    F = np.empty((len(left), min(rank, len(left))), order="F")  # columns side by side in memory
    pivots: list[int] = []
    while len(pivots) < F.shape[1] and left.sum() > max(trace_tol, floor * len(left)):
        drawn = rng.choice(len(left), size=min(_BATCH, len(left)), p=left / left.sum())
        batch = np.unique(drawn)[: F.shape[1] - len(pivots)]
        done = len(pivots)
        block = np.asarray(gram.rows(batch), dtype=np.float64)
        # by the same library as below: threads of two would wait on the same cores
        H, before = block[:, batch], np.asfortranarray(F[batch, :done])
        if done:
            H = dgemm(-1.0, before, before, 1.0, H, trans_b=1)
        accepted, L = _walk(H, left[batch], rng, floor)
        if not len(accepted):  # what is left was rounding, or is less than was thought
            true = np.diag(H)
            left[batch] = np.where(true > floor, true, 0.0)
            continue
        kept = batch[accepted]
        new = block[accepted].T  # columns too, changed in place: n times many are slow to copy
        if done:
            new = dgemm(-1.0, F[:, :done], before[accepted], 1.0, new, trans_b=1, overwrite_c=1)
        new = dtrsm(1.0, L, new, side=1, lower=1, trans_a=1, overwrite_b=1)
        F[:, done : done + len(kept)] = new
        pivots.extend(kept.tolist())
        left -= np.einsum("ji,ji->i", new.T, new.T)
        np.maximum(left, 0.0, out=left)
        left[kept] = 0.0
    return PartialFactor(F[:, : len(pivots)], np.array(pivots, dtype=np.intp), float(left.sum()))


def _walk(H: Array, left: Array, rng: np.random.Generator, floor: float) -> tuple[Array, Array]:
    """Accept rows of a batch one after another; return them and the Cholesky factor among them.

    H is what is left of K on the batch. A drawn row is kept with the probability that drawing one
    by one would have given it: what earlier accepted rows leave of it, over what it was drawn by.
    """
    accepted: list[int] = []
    L = np.zeros_like(H)
    for j in rng.permutation(len(H)):
        m = len(accepted)
        remaining = H[j, j] - L[j, :m] @ L[j, :m]
        if remaining <= floor or rng.random() * left[j] > remaining:
            continue
        L[:, m] = (H[:, j] - L[:, :m] @ L[j, :m]) / np.sqrt(remaining)
        accepted.append(int(j))
    order = np.array(accepted, dtype=np.intp)
    return order, np.tril(L[order][:, : len(order)])
