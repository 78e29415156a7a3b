"""Discriminant directions by Cholesky factors of K, or in the space of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, sparse

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Factor
from mercer.gram import DenseGram, FactoredGram, PrecomputedGram
from mercer.gram.base import written_out
from mercer.gram.policy import factor_bytes
from mercer.machines.discriminant.problem import Directions, Discriminant
from mercer.resources import require_memory
from mercer.rows.points import is_sparse, to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose
from mercer.solvers.eigen.dense import signs_of

# --- discriminate --------------------------------------------------------------------------------
#
# What the solvers of `Discriminant` share: from (S_W + penalty)^-1 to the best directions.

GOOD = 1e-6  # residual that the certificate asks for
_ROUNDING = 1e-13  # relative: class means this close are equal but for rounding
_DISCRIMINATE_EPS = float(np.finfo(np.float64).eps)
_ENTRY = 8.0  # times the rounding of an entry: less scatter than that is none
_MARGIN = 32.0


class EqualMeansError(ValueError):
    """The means of all classes coincide: there is no direction to find."""


def rank_of(apart: Array, size: float) -> int:
    """Count the directions between class means.

    Parameters
    ----------
    apart : (classes,) array
        How far apart they are along each: singular values, or their squares.
    size : float
        The length of rows, or its square: the means carry the rounding of that.
    """
    rank = int((apart > _least_distance(apart, size)).sum())
    if rank == 0:
        raise EqualMeansError(
            "the classes have equal means in feature space, so that no direction tells them apart; "
            "use a kernel in whose space they differ, such as Gaussian or Polynomial"
        )
    return rank


def is_negative(apart: Array, size: float) -> bool:
    """Return whether a squared distance between means is negative beyond rounding: K is no kernel.

    Parameters
    ----------
    apart : (classes,) array
        Squared distances.
    size : float
        The squared length of rows.
    """
    return bool((apart < -_least_distance(apart, size)).any())


def _least_distance(apart: Array, size: float) -> float:
    return _ROUNDING * max(size, float(np.abs(apart).max(initial=0.0)))


def best_pairs(M: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors, largest first."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    order = np.argsort(-values, kind="stable")[:count]
    order = order[values[order] > 0]
    return values[order], vectors[:, order]


def has_lost_pivots(L: Array, diagonal: Array, largest: Array) -> bool:
    """Return whether the factor of a scatter holds rounding in place of a column.

    Of a column that depends on the D - 1 others, rounding leaves a pivot of gamma times its
    diagonal entry, gamma = O(D eps): that of a factor (Higham, theorem 10.3) and of scatters, which
    are sums by blocks. Pivots up to 2.3 D eps were seen (50 to 50,000 rows), so a limit of D eps is
    met by chance. It is 32 D eps, far from both: features that are told apart by less than that
    have no digits of a direction without a penalty. What is below _ENTRY times the rounding of
    entries is a constant far from zero.

    Parameters
    ----------
    L : (D, D) array
        The factor, in the lower triangle.
    diagonal : (D,) array
        The diagonal of the scatter plus the penalty.
    largest : (D,) array
        The largest entry of each column of features.
    """
    least = np.maximum(
        _MARGIN * len(L) * _DISCRIMINATE_EPS * diagonal,
        np.square(_ENTRY * _DISCRIMINATE_EPS * largest),
    )
    return bool((np.square(L.diagonal()) <= least).any())


def row_size(problem: Discriminant) -> float:
    """Return the weighted mean of |k(x, x)|: of an indefinite K the diagonal may be negative."""
    share = problem.row_weights / problem.row_weights.sum()
    return float(share @ np.abs(problem.gram.diag()))


NOT_DEFINITE = (
    "the scatter within classes plus the penalty is not positive definite to working precision: "
    "use a larger penalty, or a valid kernel (mercer.kernels.is_valid tells)"
)


# --- primal --------------------------------------------------------------------------------------
#
# Discriminant directions with K = F F', in the space of the features.

_PRIMAL_ROWS_AT_ONCE = (
    1024  # centred in the cache: fresh memory for a copy costs more than the work
)
_CANCELLED = 1e-6  # of a sum of squares: less, and taking off the mean cost too many digits


@dataclass(frozen=True)
class PrimalDiscriminant(Solver):
    """Factor S_W + penalty I = L L'; singular vectors of L^-1 (m_c - m) sqrt(p_c) are L'w."""

    answers = Discriminant

    def _obstacle(self, problem: Discriminant) -> str | None:
        """Take problems whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "PrimalDiscriminant needs a Discriminant whose kernel has an explicit feature map"

    def run(self, problem: Discriminant, watch: Watch, start: Any = None) -> Solution:
        """Factor the scatter, whiten the class means, rotate."""
        F = problem.gram.factor  # refused otherwise
        require_memory(
            2 * F.shape[1] ** 2 * 8, f"the scatter of {F.shape[1]} features", "Use fewer features."
        )
        means = np.asarray(F.T @ problem.averages)  # (D, classes)
        S, left = _scatter(problem, F, means)
        means += left
        B = problem.between(means, means @ problem.shares)
        rank = rank_of(np.linalg.svd(B, compute_uv=False), float(np.sqrt(row_size(problem))))
        L = _primal_factor(problem, S, F)
        watch.tick(1, np.nan)
        white = linalg.solve_triangular(L, B, lower=True, check_finite=False)
        U, sigma, _ = np.linalg.svd(white, full_matrices=False)
        count = min(problem.count, rank)
        W = linalg.solve_triangular(L, U[:, :count], lower=True, trans="T", check_finite=False)
        f = np.asarray(F @ W) - (means @ problem.shares) @ W
        turn = signs_of(f)
        W, f, values = W * turn, f * turn, sigma[:count] ** 2
        residual = _residual(problem, W, f, B, values)
        watch.tick(2, residual)
        status = Status.SOLVED if residual <= GOOD else Status.INACCURATE
        detail = f"residual {residual:.1e}"
        return report(self, Directions(values, weights=W), status, 1, watch, detail)


def _residual(problem: Discriminant, W: Array, f: Array, B: Array, values: Array) -> float:
    """Measure S_B w - lambda (S_W + penalty) w by products with the features themselves."""
    F = problem.gram.factor
    between = B @ (B.T @ W)
    inside = np.asarray(F.T @ problem.within(f)) + problem.penalty * W
    size = float(np.linalg.norm(between[:, 0]))
    left = float(np.linalg.norm(between - values * inside, axis=0).max())
    return left / max(size, float(np.finfo(float).tiny))


def _primal_factor(problem: Discriminant, S: Array, F: Any) -> Array:
    A = np.ascontiguousarray(S)
    A.flat[:: len(A) + 1] += problem.penalty
    diagonal = A.diagonal().copy()
    info = choose_backend().cholesky(A)
    if info or has_lost_pivots(A, diagonal, np.abs(_largest(F))):
        raise np.linalg.LinAlgError(NOT_DEFINITE)
    return A


def _largest(F: Any) -> Array:
    """Return the largest entry of each column."""
    highest, lowest = (to_dense(end).ravel() for end in (F.max(axis=0), F.min(axis=0)))
    return np.maximum(highest, -lowest)


def _scatter(problem: Discriminant, F: Any, means: Array) -> tuple[Array, Array]:
    """Return S_W, and what rounding left of the class means.

    Sparse features are not centred, their means are taken off afterwards; unless these are so large
    that nothing but rounding would be left.
    """
    root = np.sqrt(problem.row_weights)
    mass = np.bincount(problem.codes, problem.row_weights, len(problem.shares))
    if is_sparse(F):
        weighted = sparse.diags_array(root) @ F
        squares = (weighted.T @ weighted).toarray()
        S = np.asarray(squares - (means * mass) @ means.T)
        if (S.diagonal() > _CANCELLED * squares.diagonal()).all():
            return S, np.zeros_like(means)
    total, left, averages = np.zeros((F.shape[1],) * 2), np.zeros_like(means), problem.averages
    for first in range(0, F.shape[0], _PRIMAL_ROWS_AT_ONCE):
        deadline.check()
        part = slice(first, first + _PRIMAL_ROWS_AT_ONCE)
        away = to_dense(F[part]) - means.T[problem.codes[part]]
        left += away.T @ averages[part]
        away *= root[part, None]
        total += away.T @ away
    return total - (left * mass) @ left.T, left


# --- cholesky ------------------------------------------------------------------------------------
#
# Discriminant directions from one Cholesky factor of the within-class centred K.

_CHOLESKY_ROWS_AT_ONCE = 64  # of the centred matrix while it is made: they stay in the cache
_REFINEMENTS = 4
_MATRICES = 3  # on a card: K, what is factored, and the factor
_FINE = 1e-12
_CHOLESKY_EPS = float(np.finfo(float).eps)


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
    kept = values > len(values) * _CHOLESKY_EPS * float(np.abs(values).max(initial=0.0))
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
    products = c * n * _CHOLESKY_EPS * float((np.abs(KB).T @ np.abs(a)).max())
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
        factor = _cholesky_factor(problem, means)
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
    return 5 * (n + 8) * _CHOLESKY_EPS * t


def _cholesky_factor(problem: Discriminant, means: Array) -> Factor | None:
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
    for first in range(0, len(q), _CHOLESKY_ROWS_AT_ONCE):
        deadline.check()
        last = min(first + _CHOLESKY_ROWS_AT_ONCE, len(q))
        part = A[first:last, :last]
        np.multiply(problem.gram.rows(slice(first, last))[:, :last], root[:last], out=part)
        part *= root[first:last, None]
        part -= u[first:last, None] * across[codes[first:last], :last]
        part -= np.take(E[first:last], codes[:last], axis=1) * u[:last]
    A.flat[:: len(q) + 1] += problem.penalty
    return A


# --- choice -------------------------------------------------------------------------------------


@choose.register
def _(problem: Discriminant) -> Solver:
    return (
        PrimalDiscriminant() if isinstance(problem.gram, FactoredGram) else CholeskyDiscriminant()
    )
