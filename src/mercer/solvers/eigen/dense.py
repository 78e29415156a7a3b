"""Dense eigenpairs by LAPACK, their scaling, and the sign convention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import multiplied, qr, squared, svd
from mercer.gram import CenteredGram, FactoredGram, Gram, PrecomputedGram, ScaledGram, exact, scaled
from mercer.resources import require_memory
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.problem import Eigenproblem, Modes

# --- eigh ----------------------------------------------------------------------------------------
#
# Eigenpairs by LAPACK: of the whole matrix, or from the singular values of F when K = F F'.

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
    """Return A with the eigenvalues of known eigenvectors moved below all others.

    The shift exceeds the norm of the given A also where nothing but its rounding is left beside the
    known vectors: a smaller one would let this rounding mix them with all others.
    """
    largest = float(np.abs(A).sum(axis=0).max(initial=0.0))
    P = known @ (known.T @ A)
    A = A - P - P.T + known @ ((known.T @ P.T) @ known) @ known.T
    shift = largest + 2.0 * float(np.abs(A).sum(axis=0).max(initial=0.0)) + np.finfo(float).tiny
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
    U, s, _ = svd(R)
    vectors = multiplied(Q, U[:, :k])
    del Q  # as large as the features: not held while columns are sorted
    return ordered(s[:k] ** 2, vectors, k)


def _orthonormal(F: Array) -> tuple[Array, Array]:
    """Factor F = Q R: two Cholesky factors of F'F where F is not too skew, else Householder."""
    if not np.isfinite(F).all():
        return np.full_like(F, np.nan), np.zeros((F.shape[1], F.shape[1]))
    Q, total = F, np.eye(F.shape[1])
    for _ in range(2):
        try:
            R = linalg.cholesky(squared(Q), check_finite=False)
        except linalg.LinAlgError:
            break
        if R.diagonal().min(initial=1.0) <= _SKEW * R.diagonal().max(initial=0.0):
            break
        inverse = linalg.solve_triangular(R, np.eye(len(R)), check_finite=False)
        Q, total = multiplied(Q, inverse), R @ total
    else:
        return Q, total
    Q, R = qr(F)
    return Q, R


def ordered(values: Array, vectors: Array, k: int) -> Modes:
    """Sort by size, keep k, and fix signs: the largest entry of a vector is positive."""
    order = np.argsort(values, kind="stable")[::-1][:k]
    vectors = vectors[:, order]
    vectors *= signs_of(vectors)  # a copy already
    return Modes(values[order], vectors)


# --- symmetric pairs -----------------------------------------------------------------------------
#
# The largest eigenpairs of a stored symmetric matrix by LAPACK, counted and looked at.
#
# Asked for some pairs only, LAPACK's bisection may return fewer, none, or vectors that are not
# orthonormal where eigenvalues agree to rounding (K near the identity), and says nothing. So what
# it returns is checked by residuals and orthonormality; all pairs are found instead where that
# fails.

_SUBSET = 1000  # rows: up to here a call that Ctrl-C has to wait for is short
_ROUNDING = 1e-13  # times the rows: residuals over the norm of A, and |V'V - I|, of sound pairs


def largest_pairs(A: Array, k: int) -> tuple[Array, Array, bool]:
    """Find the k largest eigenvalues of a finite A, largest first, and their vectors.

    Returns
    -------
    values : (k,) array
        The eigenvalues.
    vectors : (n, k) array
        Their vectors.
    sound : bool
        Whether residuals and orthonormality are those of rounding.
    """
    n = len(A)
    if n <= _SUBSET and 4 * k <= n:
        found = _subset(A, k)
        if found is not None and _sound(A, *found):
            return found[0], found[1], True
    try:
        values, vectors = choose_backend().eigh(A)
    except np.linalg.LinAlgError:  # divide and conquer gave up; QR steps do not
        values, vectors = linalg.eigh(A, driver="ev", check_finite=False)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return values, vectors, _sound(A, values, vectors)


def _subset(A: Array, k: int) -> tuple[Array, Array] | None:
    """Ask LAPACK for k pairs; None if it does not return that many."""
    n = len(A)
    try:
        values, vectors = linalg.eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return (values[::-1], vectors[:, ::-1]) if len(values) == k else None


def _sound(A: Array, values: Array, vectors: Array) -> bool:
    allowed = _ROUNDING * max(len(A), 1)
    size = float(np.abs(A).max(initial=0.0)) * len(A)  # at least the norm
    left = np.abs(A @ vectors - vectors * values).max(initial=0.0)
    overlap = np.abs(vectors.T @ vectors - np.eye(len(values))).max(initial=0.0)
    return bool(left <= allowed * size and overlap <= allowed)


# --- eigen units ---------------------------------------------------------------------------------
#
# Eigenproblems near the ends of float64, in units in which the squares of products are numbers.

_ORDINARY = 1e60  # K below this, and above its inverse, is taken as it is

_LEAST = -500  # the power of two whose square has an inverse


def evaluated(gram: Gram) -> tuple[Gram, Array]:
    """Return the Gram under centring and scaling, and what its diagonal is multiplied by."""
    factor = np.ones(gram.shape[0])
    while isinstance(gram, CenteredGram | ScaledGram):
        if isinstance(gram, ScaledGram):
            factor = factor * gram.scale**2
        gram = gram.base
    return gram, factor


def in_units(problem: Eigenproblem) -> tuple[Eigenproblem, float]:
    """Return the problem of K / u^2, and u: a power of two; one where K is of ordinary size."""
    base, factor = evaluated(problem.gram)
    with np.errstate(over="ignore", invalid="ignore"):
        size = float((_largest(base) * factor).max(initial=0.0))
    if size == 0 or not np.isfinite(size) or 1 / _ORDINARY < size < _ORDINARY:
        return problem, 1.0
    unit = 2.0 ** max(np.floor(np.log2(size) / 2), _LEAST)
    smaller = scaled(problem.gram, np.full(problem.gram.shape[0], 1 / unit))
    return replace(problem, gram=smaller), float(unit)


def _largest(gram: Gram) -> Array:
    """Bound the entries of each row: K that is positive semidefinite has none above max K_ii."""
    if gram.valid or not isinstance(gram, PrecomputedGram):
        return np.abs(gram.diag())
    return np.asarray(np.abs(gram.dense()).max(axis=1, initial=0.0))


# --- signs ---------------------------------------------------------------------------------------
#
# Which of two opposite vectors: one rule for components, directions and variates.

_SAME = 1e-8  # entries this close tie


def signs_of(table: Array) -> Array:
    """Return the sign of each column that makes its entry of largest magnitude positive.

    Of entries that tie the first decides; those tie that are equal to eight digits, or else
    rounding would choose the sign.
    """
    if not table.size:
        return np.ones(table.shape[1])
    magnitude = np.abs(table)
    first = np.argmax(magnitude >= magnitude.max(axis=0) * (1 - _SAME), axis=0)
    return np.where(table[first, np.arange(table.shape[1])] < 0, -1.0, 1.0)
