"""Eigenpairs by LAPACK: of the whole matrix, or from the singular values of F when K = F F'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.gram import FactoredGram, Gram, exact
from mercer.points import is_sparse, to_dense
from mercer.problems import Eigenproblem, Modes
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.spectral.signs import signs_of
from mercer.solvers.spectral.symmetric_pairs import largest_pairs

DECOMPOSED = 5  # matrices held by a full solve: K, LAPACK's copy, its workspace of two, vectors
_SKEW = 1e-5  # ratio of extreme pivots from which on Cholesky of F'F, taken twice, is as good as QR


@dataclass(frozen=True)
class Eigh(Solver):
    """Dense symmetric eigenvalues; exact to rounding, for small problems or many pairs."""

    answers = Eigenproblem

    def run(self, problem: Eigenproblem, watch: Watch, start: Any = None) -> Solution:
        """Decompose the smaller of the two matrices."""
        gram, k = problem.gram, problem.n_pairs
        plain = problem.known is None
        if plain and isinstance(gram, FactoredGram) and k <= gram.rank < gram.shape[0]:
            modes, sound = _from_features(gram, k), True
        else:
            modes, sound = _from_matrix(gram, k, problem.known)
        return report(self, modes, Status.SOLVED if sound else Status.INACCURATE, 1, watch)


def _from_matrix(gram: Gram, k: int, known: Array | None) -> tuple[Modes, bool]:
    n = gram.shape[0]
    require_memory(
        DECOMPOSED * 8 * n * n,
        f"the eigendecomposition of {n} points",
        "Ask for fewer pairs with solver=Lanczos(), which needs products only.",
        held=gram.nbytes,
    )
    # float32 is for products; where the whole matrix is decomposed it is evaluated anew
    held = gram if np.dtype(gram.dtype) == np.float64 else exact(gram)
    A = np.asarray(held.dense(), dtype=np.float64)
    if known is not None and known.shape[1]:
        A = below_everything(A, known)
    if not np.isfinite(A).all():  # LAPACK would answer, with anything
        return Modes(np.full(k, np.nan), np.full((n, k), np.nan)), False
    values, vectors, sound = largest_pairs(A, k)
    return ordered(values, vectors, k), sound


def below_everything(A: Array, known: Array) -> Array:
    """Return A with the eigenvalues of known eigenvectors moved below all others."""
    P = known @ (known.T @ A)
    A = A - P - P.T + known @ ((known.T @ P.T) @ known) @ known.T
    shift = 2.0 * float(np.abs(A).sum(axis=0).max(initial=0.0)) + np.finfo(float).tiny
    return np.asarray((A + A.T) / 2 - shift * (known @ known.T))


def _from_features(gram: FactoredGram, k: int) -> Modes:
    """Take the left singular vectors of F: they are orthonormal also where eigenvalues are tiny."""
    n, d = gram.factor.shape
    if is_sparse(gram.factor):
        require_memory(
            4 * 8 * n * d,
            f"dense singular vectors of {n} x {d} features",
            "Ask for fewer pairs with solver=Lanczos(), which needs products only.",
        )
    Q, R = _orthonormal(to_dense(gram.factor))
    U, s, _ = np.linalg.svd(R)
    vectors = Q @ U[:, :k]
    del Q  # as large as the features: not held while columns are sorted
    return ordered(s[:k] ** 2, vectors, k)


def _orthonormal(F: Array) -> tuple[Array, Array]:
    """Factor F = Q R: two Cholesky factors of F'F where F is not too skew, else Householder."""
    if not np.isfinite(F).all():
        return np.full_like(F, np.nan), np.zeros((F.shape[1], F.shape[1]))
    Q, total = F, np.eye(F.shape[1])
    for _ in range(2):
        try:
            R = linalg.cholesky(Q.T @ Q, check_finite=False)
        except linalg.LinAlgError:
            break
        if R.diagonal().min(initial=1.0) <= _SKEW * R.diagonal().max(initial=0.0):
            break
        inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
        Q, total = Q @ inverse, R @ total
    else:
        return Q, total
    Q, R = interruptible(np.linalg.qr, F)
    return Q, R


def ordered(values: Array, vectors: Array, k: int) -> Modes:
    """Sort by size, keep k, and fix signs: the largest entry of a vector is positive."""
    order = np.argsort(values, kind="stable")[::-1][:k]
    vectors = vectors[:, order]
    vectors *= signs_of(vectors)  # a copy already
    return Modes(values[order], vectors)
