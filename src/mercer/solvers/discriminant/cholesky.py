"""Discriminant directions from one Cholesky factor of the within-class centred K."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor
from mercer.gram import DenseGram, PrecomputedGram
from mercer.gram.base import written_out
from mercer.gram.sizes import factor_bytes
from mercer.problems import Directions, Discriminant
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.discriminant.discriminate import (
    GOOD,
    NOT_DEFINITE,
    best_pairs,
    is_negative,
    rank_of,
    row_size,
)
from mercer.solvers.spectral.signs import signs_of

_ROWS_AT_ONCE = 64  # of the centred matrix while it is made: they stay in the cache
_REFINEMENTS = 4
_MATRICES = 3  # on a card: K, what is factored, and the factor
_FINE = 1e-12
_EPS = float(np.finfo(float).eps)


class _IndefiniteError(Exception):
    """K has an eigenvalue that is more negative than rounding can make it."""


@dataclass(frozen=True)
class CholeskyDiscriminant(Solver):
    """Factor G = P R K R P + penalty I, with R = diag(sqrt(q)) and P the centring of classes.

    By Woodbury (S_W + penalty)^-1 Phi'B = Phi'a with a = (B - R P G^-1 P R K B) / penalty. What the
    division by a small penalty costs is won back by refinement against K itself. The rest is an
    eigenproblem of the size of the classes.
    """

    answers = Discriminant

    def _obstacle(self, problem: Discriminant) -> str | None:
        """Take problems with a penalty."""
        if problem.penalty <= 0:
            return (
                "without a penalty a kernel separates its training rows perfectly in many ways: "
                "use penalty > 0, or a kernel with fewer features than rows (Linear)"
            )
        return None

    def run(self, problem: Discriminant, watch: Watch, start: Any = None) -> Solution:
        """Factor, solve for the contrasts of the classes, rotate."""
        n = problem.gram.shape[0]
        require_memory(
            factor_bytes(n),
            f"the Cholesky factor of {n} points",
            "Use fewer rows, or a kernel with a small feature map (Linear, Polynomial).",
            held=problem.gram.nbytes,
        )
        try:
            value, steps, residual = _directions(problem, watch)
            status = Status.SOLVED if residual <= GOOD else Status.INACCURATE
        except _IndefiniteError:
            value, steps, residual = _nearest(problem, watch)
            status = Status.NOT_CONVEX
        return report(self, value, status, steps, watch, f"residual {residual:.1e}")


def _directions(
    problem: Discriminant, watch: Watch, *, semidefinite: bool = False
) -> tuple[Directions, int, float]:
    """Return the directions, steps and the residual.

    Raises `_IndefiniteError` if K is indefinite by more than rounding, unless it is known to be
    `semidefinite`: a K of rank r in the contrasts has r positive ratios, so that fewer of them next
    to a negative one, or a negative distance between means, show it.
    """
    averages, B = problem.averages, problem.contrasts
    means = np.asarray(problem.gram @ averages)  # k(x_i, m_c)
    KB = problem.between(means, means @ problem.shares)
    apart, size = np.linalg.eigvalsh(_symmetric(B.T @ KB)), row_size(problem)
    if not semidefinite and is_negative(apart, size):
        raise _IndefiniteError
    rank = rank_of(apart, size)
    factor = _factored(problem, means, semidefinite)
    watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
    a, Ka, residual, steps = _refined(problem, partial(_inverse, problem, factor.solve), B, KB)
    M, wanted = KB.T @ a, min(problem.count, rank)
    values, U = best_pairs(M, wanted)
    floor = _ratio_rounding(problem, KB, a, residual)
    if not semidefinite and (values > floor).sum() < wanted and _least(M) < -floor:
        raise _IndefiniteError
    if not len(values):
        raise np.linalg.LinAlgError(NOT_DEFINITE)
    U = U / np.sqrt(values)
    f = Ka @ U  # less the middle, so that no sign depends on where the origin is
    U = U * signs_of(f - problem.shares @ (averages.T @ f))
    watch.tick(2, residual)
    return Directions(values, a @ U), steps, residual


def _nearest(problem: Discriminant, watch: Watch) -> tuple[Directions, int, float]:
    """Return the directions for the nearest positive semidefinite matrix K+.

    Eigenvalues up to n eps |K| are rounding and count as zero. Coefficients are projected on the
    range of K+, where K a = K+ a, so that new rows are compared by K itself.
    """
    values, V = choose_backend().eigh(written_out(problem.gram))
    kept = values > len(values) * _EPS * float(np.abs(values).max(initial=0.0))
    values, V = values[kept], V[:, kept]
    nearest = replace(problem, gram=PrecomputedGram((V * values) @ V.T))
    found, steps, residual = _directions(nearest, watch, semidefinite=True)
    return replace(found, coef=V @ (V.T @ found.coef)), steps, residual


def _ratio_rounding(problem: Discriminant, KB: Array, a: Array, residual: float) -> float:
    """Bound the error of eigenvalues of B'K a.

    Rounding of the products moves entries by gamma_n |KB|'|a| (Higham, eq. 3.13), and a norm of a
    c x c matrix is at most c times its largest entry. An a with the relative residual r moves
    B'K a = b'(S_W + penalty)^-1 b by at most |b|^2 r / penalty.
    """
    n, c = KB.shape
    products = c * n * _EPS * float((np.abs(KB).T @ np.abs(a)).max())
    size = float(np.abs(np.einsum("ij,ij->j", problem.contrasts, KB)).max())
    return float(products + c * size * residual / problem.penalty)


def _least(M: Array) -> float:
    return float(np.linalg.eigvalsh(_symmetric(M))[0])


def _refined(
    problem: Discriminant, invert: Callable[[Array, Array], Array], B: Array, KB: Array
) -> tuple[Array, Array, float, int]:
    """Solve (S_W + penalty) Phi'a = Phi'B; give a, K a, the residual in feature space, steps."""
    size = np.sqrt(max(float(np.einsum("ij,ij->j", B, KB).max()), np.finfo(float).tiny))
    a = invert(B, KB)
    Ka = np.asarray(problem.gram @ a)
    left = B - problem.within(Ka) - problem.penalty * a
    Kleft = np.asarray(problem.gram @ left)
    residual, step = _length(left, Kleft) / size, 0
    while residual > _FINE and step < _REFINEMENTS:
        better = a + invert(left, Kleft)
        K_better = np.asarray(problem.gram @ better)
        left = B - problem.within(K_better) - problem.penalty * better
        Kleft = np.asarray(problem.gram @ left)
        now, step = _length(left, Kleft) / size, step + 1
        if not now < residual:
            break
        a, Ka, before, residual = better, K_better, residual, now
        if residual > 0.5 * before:
            break  # rounding of K is all that is left
    return a, Ka, residual, step


def _symmetric(M: Array) -> Array:
    return np.asarray((M + M.T) / 2)


def _length(left: Array, Kleft: Array) -> float:
    """Return the largest length of columns Phi'left."""
    return float(np.sqrt(max(0.0, np.einsum("ij,ij->j", left, Kleft).max())))


def _inverse(problem: Discriminant, solve: Callable[[Array], Array], b: Array, Kb: Array) -> Array:
    """Return the coefficients of (S_W + penalty)^-1 Phi'b."""
    root = np.sqrt(problem.row_weights)[:, None]
    Z = solve(problem.within(Kb) / root)
    inside = problem.within(Z / root)  # R P Z
    return np.asarray((b - inside) / problem.penalty)


def _factored(problem: Discriminant, means: Array, semidefinite: bool) -> Factor:
    """Factor G, or raise: `LinAlgError` if rounding swallows the penalty, else `_IndefiniteError`.

    See `_rounding` for why no rounding decides which of them.
    """
    if problem.penalty > _rounding(problem):
        factor = _factor(problem, means)
        if factor is not None:
            return factor
        if not semidefinite:
            raise _IndefiniteError
    raise np.linalg.LinAlgError(NOT_DEFINITE)


def _rounding(problem: Discriminant) -> float:
    """Bound the rounding of G, and that of its Cholesky factor, in the norm.

    Let T = R K R with K positive semidefinite, t its trace, and gamma = (n + 8) eps, which exceeds
    gamma_n+8 of unit roundoff eps / 2. The matrix |T| of absolute values has norm t at most, by
    |t_ij|^2 <= t_ii t_jj. G is T less T U U' and U U' T and plus U U' T U U', with |U U'| of norm
    1, so rounding moves it by 4 gamma t at most. The factor L of G is that of a matrix which
    differs by gamma |L| |L'| (Higham, theorem 10.3), of norm gamma trace(G) at most. So with a
    penalty above 5 gamma t there is a factor on every processor if K is positive semidefinite:
    if there is none,
    K is not. (The share of the penalty in trace(G), n gamma times itself, decides nothing.)
    """
    n, t = len(problem.row_weights), float(problem.row_weights @ np.abs(problem.gram.diag()))
    return 5 * (n + 8) * _EPS * t


def _factor(problem: Discriminant, means: Array) -> Factor | None:
    """Factor the centred matrix: on a card where K lies there, else a matrix made here."""
    gram, q = problem.gram, problem.row_weights
    if isinstance(gram, DenseGram) and choose_backend().keeps(_MATRICES * 8.0 * len(q) ** 2):
        u, E = _corrections(problem, means)
        U = np.zeros_like(E)
        U[np.arange(len(q)), problem.codes] = u
        return gram.stored.cholesky(np.full(len(q), problem.penalty), np.sqrt(q), (U, E))
    return choose_backend().cholesky_factor(centred_matrix(problem, means))


def _corrections(problem: Discriminant, means: Array) -> tuple[Array, Array]:
    """Return the entries u of U, one in a row, and E; see `centred_matrix`."""
    q, codes = problem.row_weights, problem.codes
    mass = np.bincount(codes, q, len(problem.shares))
    root, u = np.sqrt(q), np.sqrt(q / mass[codes])
    TU = root[:, None] * means * np.sqrt(mass)
    inner = np.zeros((len(mass), len(mass)))
    np.add.at(inner, codes, u[:, None] * TU)
    return u, TU - 0.5 * u[:, None] * inner[codes]


def centred_matrix(problem: Discriminant, means: Array) -> Array:
    """Return the lower triangle of P R K R P + penalty I in a new matrix, without temporaries.

    With U the orthonormal columns sqrt(q_i / q_c) of the classes, P = I - U U' and
    P T P = T - U E' - E U' for E = T U - U (U'T U) / 2. Each row of U has one entry, so that both
    corrections are read off E. `means` holds k(x_i, m_c).
    """
    q, codes = problem.row_weights, problem.codes
    root, (u, E) = np.sqrt(q), _corrections(problem, means)
    across = np.ascontiguousarray(E.T)
    A = choose_backend().empty(len(q), len(q))
    for first in range(0, len(q), _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, len(q))
        part = A[first:last, :last]
        np.multiply(problem.gram.rows(slice(first, last))[:, :last], root[:last], out=part)
        part *= root[first:last, None]
        part -= u[first:last, None] * across[codes[first:last], :last]
        part -= np.take(E[first:last], codes[:last], axis=1) * u[:last]
    A.flat[:: len(q) + 1] += problem.penalty
    return A
