"""Partial factors of K from few of its rows: K ~ F F' by randomly pivoted Cholesky.

Rows are drawn with probability proportional to what is still unexplained on the diagonal, a batch
at a time; within a batch, a drawn row is kept with the probability that drawing one by one would
have given it. The trace of what is left bounds the error: ||K - F F'||_2 <= trace(K - F F').
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemm, dtrsm

from mercer.array_types import Array
from mercer.gram.base import Gram

_BATCH = 128


@dataclass(frozen=True)
class PartialFactor:
    """K ~ factor factor'.

    Attributes
    ----------
    factor : (n, rank) float64 array
        F.
    pivots : (rank,) int array
        The rows of K that were used.
    trace_left : float
        Trace of K - F F', a bound on its norm.
    """

    factor: Array
    pivots: Array
    trace_left: float


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
    rng = np.random.default_rng(random_state)
    left = np.maximum(gram.diag(), 0.0)  # an invalid kernel may have negative entries here
    floor = 1e-12 * max(left.max(initial=0.0), np.finfo(float).tiny)
    F = np.empty((len(left), min(rank, len(left))), order="F")  # columns side by side in memory
    pivots: list[int] = []
    while len(pivots) < F.shape[1] and left.sum() > max(trace_tol, floor * len(left)):
        drawn = rng.choice(len(left), size=min(_BATCH, len(left)), p=left / left.sum())
        batch = np.unique(drawn)[: F.shape[1] - len(pivots)]
        done = len(pivots)
        block = np.asarray(gram.rows(batch), dtype=np.float64)
        H = block[:, batch] - F[batch, :done] @ F[batch, :done].T
        accepted, L = _walk(H, left[batch], rng, floor)
        if not len(accepted):  # what is left was rounding, or is less than was thought
            true = np.diag(H)
            left[batch] = np.where(true > floor, true, 0.0)
            continue
        kept = batch[accepted]
        new = block[accepted].T  # columns too, changed in place: n times many are slow to copy
        if done:
            new = dgemm(-1.0, F[:, :done], F[kept, :done], 1.0, new, trans_b=1, overwrite_c=1)
        new = dtrsm(1.0, L, new, side=1, lower=1, trans_a=1, overwrite_b=1)
        F[:, done : done + len(kept)] = new
        pivots.extend(kept.tolist())
        left -= np.einsum("ji,ji->i", new.T, new.T)
        np.maximum(left, 0.0, out=left)
        left[kept] = 0.0
    factor = np.ascontiguousarray(F[:, : len(pivots)])
    return PartialFactor(factor, np.array(pivots, dtype=np.intp), float(left.sum()))


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
