"""Gaussian process regression: posterior, log marginal likelihood and its gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mercer import deadline
from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.factorizations import triangle
from mercer.backends.host import HostFactor
from mercer.backends.lapack import one_blas_thread
from mercer.expression import AbsDist, Expression, Statistic
from mercer.gram import ShiftedGram, Source
from mercer.gram.build import matrix_gram
from mercer.gram.policy import factor_bytes
from mercer.kernels.derivatives import (
    DistanceSlope,
    FormulaSlope,
    MappedSlope,
    ParameterSlope,
    columns_of_distance,
)
from mercer.machines.gaussian_process.problem import (
    Evidence,
    KernelParameters,
    LogParameters,
    ProcessPosterior,
    ProcessRegression,
    log_likelihood,
)
from mercer.machines.ridge.direct import eliminate_bias, least_norm, shifted_factor
from mercer.machines.ridge.primal import Design, Primal
from mercer.machines.ridge.problem import Coefficients
from mercer.resources import require_memory, rows_at_once
from mercer.rows.chunks import added, chunk_count, chunked, slices
from mercer.rows.points import row_count, take
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.bounded_descent import bounded_descent
from mercer.solvers.dispatch import choose

# --- posterior -----------------------------------------------------------------------------------
#
# The posterior by one Cholesky factor.

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


class _Found(NamedTuple):
    """Mean, factor, and what the likelihood is made of."""

    mean: Coefficients
    factor: Array
    squares: float
    log_determinant: float
    status: Status


@dataclass(frozen=True)
class ExactPosterior(Solver):
    """Factor K + noise S^-1, or, for K = F F', F'SF + noise I; nothing is added to the diagonal.

    The mean is that of kernel ridge regression with the noise as its penalty, by the same steps. A
    matrix that is singular to working precision gets the mean of least norm, and the factor of the
    nearest matrix that is not; the status says so.
    """

    answers = ProcessRegression

    def run(self, problem: ProcessRegression, watch: Watch, start: Any = None) -> Solution:
        """Factor and solve."""
        found = _dual(problem) if problem.gram.factor is None else _primal(problem)
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        likelihood = log_likelihood(
            found.squares,
            found.log_determinant,
            problem.row_weights,
            problem.noise,
            problem.bias,
            problem.targets.shape[1],
        )
        mean = found.mean
        value = ProcessPosterior(mean.coef, mean.intercept, mean.weights, found.factor, likelihood)
        return report(self, value, found.status, 1, watch)


def _dual(problem: ProcessRegression) -> _Found:
    system, n = problem.system(), problem.gram.shape[0]
    require_memory(
        factor_bytes(n),
        f"the Cholesky factor of {n} points",
        "Use a kernel with a small explicit feature map (Linear, low-degree Polynomial), or fewer "
        "rows.",
        held=problem.gram.nbytes,
    )
    shifted = ShiftedGram(problem.gram, system.shift(0))
    factor = shifted_factor(shifted)
    singular = factor is None
    if factor is None:
        factor = HostFactor(nearest_factor(*choose_backend().eigh(shifted.dense())))
    right = np.column_stack([problem.targets, np.ones(n)])
    solved = factor.solve(right)
    L = factor.lower()
    coef, intercept = eliminate_bias(solved, problem.bias)
    squares, status = float(np.sum(problem.targets * coef)), Status.SOLVED
    if singular:
        coef, intercept, status = least_norm(system, np.arange(problem.targets.shape[1]))
        status = Status.SINGULAR if status is Status.SOLVED else status
    log_determinant = 2.0 * float(np.sum(np.log(L.diagonal())))
    log_determinant += float(np.sum(np.log(problem.row_weights)))
    if problem.bias:
        log_determinant += float(np.log(max(solved[:, -1].sum(), _TINY)))
    return _Found(Coefficients(coef, intercept), L, squares, log_determinant, status)


def nearest_factor(values: Array, vectors: Array) -> Array:
    """Return the factor of the nearest matrix without eigenvalues at the level of rounding."""
    floor = len(values) * _EPS * float(np.abs(values).max(initial=_TINY))
    half = vectors * np.sqrt(np.maximum(values, floor))
    R = triangle(half.T)
    return np.ascontiguousarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)


def _primal(problem: ProcessRegression) -> _Found:
    ended = Primal().run(problem.system(), Watch())
    design = Design.of(problem.gram, problem.row_weights, problem.bias)
    normal = matrix_gram(design.normal_matrix())
    shifted = ShiftedGram(normal, problem.noise)
    factor, status = shifted_factor(shifted), ended.status
    if factor is None:
        status = Status.SINGULAR
        factor = HostFactor(nearest_factor(*choose_backend().eigh(shifted.dense())))
    L = factor.lower()
    mean: Coefficients = ended.value
    s, noise, (n, width) = problem.row_weights, problem.noise, problem.gram.factor.shape
    weights: Any = mean.weights
    residual = design.center(problem.targets) - design.push(weights)
    # y'Gy as a sum of squares
    squares = float(np.sum(s[:, None] * residual**2) / noise + np.sum(weights**2))
    log_determinant = 2.0 * float(np.sum(np.log(L.diagonal())))
    log_determinant += (n - width) * float(np.log(noise))
    if problem.bias:
        log_determinant += float(np.log(s.sum()) - np.log(noise))
    return _Found(mean, L, squares, log_determinant, status)


# --- marginal likelihood -------------------------------------------------------------------------
#
# The log marginal likelihood and its gradient: n^3 once, n^2 for each parameter.


@dataclass(frozen=True)
class EvidenceAscent(Solver):
    """L-BFGS-B on the logarithms of the parameters; the most likely end of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be: of the log-likelihood
        of one row and target on the average, by the logarithm of a parameter.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = Evidence

    tol: float = 1e-5
    max_iter: int = 200

    def run(self, problem: Evidence, watch: Watch, start: Any = None) -> Solution:
        """Ascend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        unit = 1.0 / (float(problem.row_weights.sum()) * problem.targets.shape[1])

        def measure(logs: Array) -> tuple[float, Array]:
            value, gradient = evidence(problem, logs)
            return -unit * value, -unit * gradient

        found = bounded_descent(problem, measure, watch, self.tol, self.max_iter, starts)
        value = LogParameters(found.best)
        return report(self, value, found.status, found.steps, watch, found.detail)


def evidence(problem: Evidence, logs: Array) -> tuple[float, Array]:
    """Return the log-likelihood of all targets, and its gradient by the logarithms.

    With landmarks, what they bound it by from below. Minus infinity, with a gradient of zero, where
    K + noise is not positive definite to working precision.

    Parameters
    ----------
    problem : Evidence
        What is asked.
    logs : (p,) array
        Logarithms of the parameters.
    """
    if problem.landmarks is not None:
        return evidence_by_landmarks(problem, logs)
    noise, inner = problem.noise_at(logs), logs[: problem.kernel.size]
    formula = problem.kernel.formula(inner)
    K = Source(formula, problem.X).pairs().dense()
    found = inverted(problem, K, noise)
    if found is None:
        return -np.inf, np.zeros(len(logs))
    t = problem.targets.shape[1]
    squares = float(np.sum(found.coef * problem.targets))
    s = problem.row_weights
    value = log_likelihood(squares, found.log_determinant, s, noise, problem.bias, t)
    if not np.isfinite(value):
        return -np.inf, np.zeros(len(logs))
    M = found.G  # dvalue = <M, dC>
    for some in deadline.row_slices(len(M), len(M)):
        M[some] *= -0.5 * t
        M[some] += (0.5 * found.coef[some]) @ found.coef.T
    gradient = contracted(problem.kernel, inner, M, problem.X, {formula: K})
    if problem.learns_noise:
        copies = float(s.sum()) - len(s)
        gradient = np.append(gradient, noise * np.sum(M.diagonal() / s) - 0.5 * t * copies)
    return value, gradient


# --- inducing points -----------------------------------------------------------------------------
#
# A lower bound of the marginal likelihood by landmarks: n m^2 once, n m a parameter.
#
# With K(z, z) = L L', features F = K(X, z) L'^-1, F_c their distances from their mean where there
# is a bias, B = F_c'S F_c, A = B + noise I, w = A^-1 F_c'S Y and a = S (Y_c - F_c w) / noise, the
# slope of the bound by Q = F F' is half of
#
#     M = a a' + t / noise (s s'/N + S F_c A^-1 F_c'S),
#     M F = a w' + t / noise (s f' + S F_c (I - noise A^-1)),
#
# with f the mean of F; s s' and f are there with a bias only. Rows come in blocks, twice: what
# they add up to, then their slopes.

# Added to the diagonal of K(z, z), as a share of its mean: slopes are differences of numbers that
# K(z, z)^-1 makes large, and keep eight digits so. The bound stays one: Q becomes smaller.
JITTER = 1e-8
_ROWS_AT_ONCE = 256  # of a thread: 1024 are no faster, and allocators of threads keep their pages
_FEWEST = 1024  # rows of a thread, where it has enough to do with them
_ARRAYS = 4  # of a block: values, features, slopes, and what they are multiplied by


@dataclass(frozen=True, eq=False)
class _RowSums:
    """What all rows add up to.

    Attributes
    ----------
    middle : (m,) array
        Mean of the features; zero without a bias.
    B : (m, m) array
        F_c'S F_c.
    pulled : (m, t) array
        F_c'S Y_c.
    left_out : float
        tr S(K - Q).
    """

    middle: Array
    B: Array
    pulled: Array
    left_out: float


def evidence_by_landmarks(problem: Evidence, logs: Array) -> tuple[float, Array]:
    """Return the bound for all targets, and its gradient by the logarithms of the parameters.

    Minus infinity, with a gradient of zero, where the matrix of the landmarks is not positive
    definite.

    Parameters
    ----------
    problem : Evidence
        What is asked, with landmarks.
    logs : (p,) array
        Logarithms of the parameters.
    """
    bound = _Bound.at(problem, logs)
    if bound is None:
        return -np.inf, np.zeros(len(logs))
    return bound.value_and_gradient()


def _factor(A: Array) -> Array | None:
    """Return the Cholesky factor; None where A has entries that overflowed, or is not definite."""
    if not np.isfinite(A).all():
        return None
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None


@dataclass(frozen=True, eq=False)
class _Bound:
    """The bound at some parameters."""

    problem: Evidence
    logs: Array
    noise: float
    L: Array
    targets: Array

    @classmethod
    def at(cls, problem: Evidence, logs: Array) -> _Bound | None:
        """Factor the kernel between the landmarks; None where that fails."""
        z: Any = problem.landmarks
        formula = problem.kernel.formula(logs[: problem.kernel.size])
        K = np.array(choose_backend().pairs(formula, z, None, np.float64).dense())
        # of landmarks at which the kernel is zero any other number leaves nothing of Q, too
        K.flat[:: len(K) + 1] += JITTER * float(K.diagonal().mean()) or 1.0
        L = _factor(K)
        if L is None:
            return None
        s, Y = problem.row_weights, problem.targets
        middle = s @ Y / s.sum() if problem.bias else 0.0
        return cls(problem, logs, problem.noise_at(logs), L, Y - middle)

    def value_and_gradient(self) -> tuple[float, Array]:
        """Return the bound, and its gradient."""
        nothing = -np.inf, np.zeros(len(self.logs))
        sums, noise, problem = self._sums(), self.noise, self.problem
        s, t, m = problem.row_weights, self.targets.shape[1], len(self.L)
        A = sums.B.copy()
        A.flat[:: m + 1] += noise
        R = _factor(A)
        if R is None:
            return nothing
        inverse = solve_triangular(R, np.eye(m), lower=True)
        inverse = inverse.T @ inverse
        w = inverse @ sums.pulled
        slopes, residual = self._slopes(sums, inverse, w)
        total = float(s.sum())
        determinant = 2.0 * float(np.sum(np.log(R.diagonal()))) + (len(s) - m) * np.log(noise)
        determinant += float(np.log(total / noise)) if problem.bias else 0.0
        squares = residual / noise + float(np.sum(w**2))
        value = log_likelihood(squares, determinant, s, noise, problem.bias, t)
        value -= 0.5 * t * sums.left_out / noise
        if not np.isfinite(value):
            return nothing
        slopes -= self._between_landmarks(sums, inverse, w)
        if problem.learns_noise:
            free = total - float(problem.bias) - m + noise * float(inverse.trace())
            by_noise = (residual + t * sums.left_out) / noise - t * free
            slopes = np.append(slopes, 0.5 * by_noise)
        return value, slopes

    @property
    def _inner(self) -> Array:
        return self.logs[: self.problem.kernel.size]

    @cached_property
    def _inverse(self) -> Array:
        """L^-1: products are several times as fast as solving, and pivots are not small."""
        return np.asarray(solve_triangular(self.L, np.eye(len(self.L)), lower=True))

    def _in_blocks(self, work: Callable[[slice, Points, Array], tuple[Any, ...]]) -> list[Any]:
        """Add up what a work returns for blocks of rows with their features, in threads."""
        problem, z = self.problem, self.problem.landmarks
        formula = problem.kernel.formula(self._inner)
        n = row_count(problem.X)
        at_once = _ARRAYS * chunk_count(n, _FEWEST)
        step = rows_at_once(len(self.L), _ROWS_AT_ONCE, arrays=at_once)

        def chunk(rows: slice) -> list[Any]:
            found = []
            for part in slices(rows.start, rows.stop, step):
                X = take(problem.X, part)
                F = choose_backend().pairs(formula, X, z, np.float64).dense() @ self._inverse.T
                found.append(work(part, X, F))
            return [added(found, place) for place in range(len(found[0]))]

        with one_blas_thread():
            every = chunked(chunk, n, _FEWEST)
        return [added(every, place) for place in range(len(every[0]))]

    def _sums(self) -> _RowSums:
        s, problem = self.problem.row_weights, self.problem

        def work(rows: slice, X: Points, F: Array) -> tuple[Any, ...]:
            roots = np.sqrt(s[rows])
            F *= roots[:, None]
            pulled = F.T @ (roots[:, None] * self.targets[rows])
            return F.T @ F, pulled, roots @ F, float(np.vdot(F, F))

        B, pulled, first, kept = self._in_blocks(work)
        own = choose_backend().diagonal(problem.kernel.formula(self._inner), problem.X, np.float64)
        middle = first / s.sum() if problem.bias else np.zeros_like(first)
        if problem.bias:
            B -= np.outer(first, middle)
        return _RowSums(middle, B, pulled, max(0.0, float(s @ own) - kept))

    def _slopes(self, sums: _RowSums, inverse: Array, w: Array) -> tuple[Array, float]:
        """Return the slopes by K(X, z) and by k(x, x), and the sum of squared residuals."""
        kernel, noise, z = self.problem.kernel, self.noise, self.problem.landmarks
        s, t = self.problem.row_weights, self.targets.shape[1]
        shrunk = -noise * inverse
        shrunk.flat[:: len(shrunk) + 1] += 1.0
        shrunk = shrunk @ self._inverse
        back, middle = w.T @ self._inverse, sums.middle @ self._inverse

        def work(rows: slice, X: Points, F: Array) -> tuple[Any, ...]:
            F -= sums.middle
            left = self.targets[rows] - F @ w
            P = F @ shrunk
            P += middle
            P *= t
            P += left @ back
            P *= s[rows, None] / noise
            by_rows = contracted(kernel, self._inner, P, X, Y=z)
            by_rows -= 0.5 * t / noise * diagonal_slopes(kernel, self._inner, s[rows], X)
            return by_rows, float(np.sum(s[rows, None] * left**2))

        found, residual = self._in_blocks(work)
        return found, residual

    def _between_landmarks(self, sums: _RowSums, inverse: Array, w: Array) -> Array:
        """Return the slopes by K(z, z), what is added to its diagonal among it."""
        problem, noise, t = self.problem, self.noise, self.targets.shape[1]
        z: Any = problem.landmarks
        E = sums.B + noise * (noise * inverse)  # the square of a noise may be no number
        E.flat[:: len(E) + 1] -= noise
        if problem.bias:
            E += problem.row_weights.sum() * np.outer(sums.middle, sums.middle)
        E = 0.5 * (w @ w.T + t / noise * E)
        R = self._inverse.T @ E @ self._inverse
        R = 0.5 * (R + R.T)
        share = JITTER * float(R.trace()) / len(R)
        return contracted(problem.kernel, self._inner, R, z) + diagonal_slopes(
            problem.kernel, self._inner, np.full(len(R), share), z
        )


# --- parameter slopes ----------------------------------------------------------------------------
#
# Changes of a matrix product <M, K> with the parameters of the kernel.


def contracted(
    kernel: KernelParameters,
    logs: Array,
    M: Array,
    X: Points,
    known: dict[Expression, Array] | None = None,
    Y: Points | None = None,
) -> Array:
    """Return <M, dK(X, Y)> for the logarithm of each parameter.

    Parameters
    ----------
    kernel : KernelParameters
        The kernel, and which of its parameters are learnt.
    logs : (p,) array
        Where.
    M : (n, m) array
        What is multiplied by; symmetric where there is no Y.
    X : Points
        Rows.
    known : dict of Expression to (n, m) array, optional
        Matrices that were evaluated before.
    Y : Points, optional
        Other rows; X by default.
    """
    parts = [contraction(slope, M, X, known or {}, Y) for slope in kernel.slopes(logs)]
    return np.concatenate(parts) if parts else np.zeros(0)


@singledispatch
def contraction(
    slope: ParameterSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    """Return <M, dK> for each entry of one parameter."""
    raise TypeError(f"no contraction for {type(slope).__name__}")


@contraction.register
def _(
    slope: FormulaSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    bent = known.get(slope.outer)
    if bent is None:
        bent = choose_backend().pairs(slope.outer, X, Y, np.float64).dense()
        bent = np.where(np.isfinite(bent), bent, 0.0)
    return np.array([np.vdot(M, bent)])


@contraction.register
def _(
    slope: DistanceSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    bent = finite_slopes(slope.outer, X, Y)
    bent *= M
    raw = columns_of_distance(slope.leaf, X)
    other = None if Y is None else columns_of_distance(slope.leaf, Y)
    stretch: Any = slope.leaf.steps[-1]
    return by_scales(bent, raw, 1.0 / stretch.factors.array, slope.leaf, other)


@contraction.register
def _(
    slope: MappedSlope, M: Array, X: Points, known: dict[Expression, Array], Y: Points | None
) -> Array:
    backend = choose_backend()
    bent = slope.function(backend.pairs(slope.inner, X, Y, np.float64).dense())
    bent = bent * backend.pairs(slope.outer, X, Y, np.float64).dense()
    return np.array([np.vdot(M, np.where(np.isfinite(bent), bent, 0.0))])


def diagonal_slopes(kernel: KernelParameters, logs: Array, weights: Array, X: Points) -> Array:
    """Return sum_i w_i dk(x_i, x_i) for the logarithm of each parameter."""
    parts = [_on_diagonal(slope, weights, X) for slope in kernel.slopes(logs)]
    return np.concatenate(parts) if parts else np.zeros(0)


@singledispatch
def _on_diagonal(slope: ParameterSlope, weights: Array, X: Points) -> Array:
    raise TypeError(f"no slope on the diagonal for {type(slope).__name__}")


@_on_diagonal.register
def _(slope: FormulaSlope, weights: Array, X: Points) -> Array:
    own = choose_backend().diagonal(slope.outer, X, np.float64)
    return np.array([weights @ np.where(np.isfinite(own), own, 0.0)])


@_on_diagonal.register
def _(slope: DistanceSlope, weights: Array, X: Points) -> Array:
    stretch: Any = slope.leaf.steps[-1]
    return np.zeros(len(stretch.factors.array))  # no row has a distance to itself


@_on_diagonal.register
def _(slope: MappedSlope, weights: Array, X: Points) -> Array:
    backend = choose_backend()
    own = slope.function(backend.diagonal(slope.inner, X, np.float64))
    own = own * backend.diagonal(slope.outer, X, np.float64)
    return np.array([weights @ np.where(np.isfinite(own), own, 0.0)])


# --- inverse and slopes by scales ----------------------------------------------------------------
#
# The inverse of K + noise, and slopes of distances by their scales.

_PANEL = 1024  # rows of one product between two chances to hear Ctrl-C
_LARGE = 1e100  # slopes beyond are those of a square root at zero, where the distance is zero


def finite_slopes(bent: Expression, X: Points, Y: Points | None = None) -> Array:
    """Evaluate dk/dD, or D dk/dD; zero where D is: slopes of square roots are not finite there."""
    values = choose_backend().pairs(bent, X, Y, np.float64).dense()
    values = np.where(np.abs(values) < _LARGE, values, 0.0)
    if Y is None:
        np.fill_diagonal(values, 0.0)
    return values


@dataclass(frozen=True, eq=False)
class Inverted:
    """C inverted at some scales and penalty.

    Attributes
    ----------
    G : (n, n) array
        The inverse of C, bordered by the bias.
    coef : (n, t) array
        a = G y.
    penalty : float
        In C.
    log_determinant : float
        log |C| + sum log s + log 1'C^-1 1 (the last with a bias).
    """

    G: Array
    coef: Array
    penalty: float
    log_determinant: float


def inverted(problem: Any, K: Array, penalty: float) -> Inverted | None:
    """Invert C = K + penalty S^-1, or return None if it is not positive definite.

    Parameters
    ----------
    problem : Evidence or Relevance
        The problem, for its row weights, targets and bias.
    K : (n, n) array
        The kernel matrix.
    penalty : float
        The penalty.
    """
    root = np.sqrt(problem.row_weights)
    A = np.empty(K.shape)
    for some in deadline.row_slices(len(K), len(K)):
        np.multiply(K[some], root[some, None] * root, out=A[some])
    A.flat[:: len(A) + 1] += penalty
    factor = choose_backend().cholesky_factor(A)
    if factor is None:
        return None
    log_determinant = 2.0 * float(np.sum(np.log(factor.diagonal())))
    G = factor.inverse()
    for some in deadline.row_slices(len(G), len(G)):
        G[some] *= root[some, None] * root
    if problem.bias:
        u = G.sum(axis=1)
        total = float(u.sum())
        if not total > 0:
            return None
        log_determinant += float(np.log(total))
        for some in deadline.row_slices(len(G), len(G)):
            G[some] -= (u[some, None] / total) * u
    return Inverted(G, G @ problem.targets, penalty, log_determinant)


def by_scales(
    A: Array, raw: Array, scales: Array, leaf: Statistic, other: Array | None = None
) -> Array:
    """Sum A_ij dD_ij over all pairs, for the logarithm of each scale.

    Parameters
    ----------
    A : (n, m) array
        What slopes are multiplied by.
    raw : (n, d) array
        Columns that the distance looks at.
    scales : (d,) array
        Scales.
    leaf : Statistic
        The distance D.
    other : (m, d) array, optional
        Columns of the other rows; `raw` by default.
    """
    other = raw if other is None else other
    if isinstance(leaf, AbsDist):
        pairs = zip(raw.T, other.T, scales, strict=True)
        return np.array([-_absolute(A, x, y) / scale for x, y, scale in pairs])
    middle = raw.mean(axis=0)  # distances do not see it, rounding does
    x, y = (raw - middle) / scales, (other - middle) / scales  # squares of others may overflow
    squares = A.sum(axis=1) @ x**2 + A.sum(axis=0) @ y**2 - 2.0 * np.sum(x * (A @ y), axis=0)
    return np.asarray(-2.0 * squares)


def _absolute(A: Array, x: Array, y: Array) -> float:
    """Sum A_ij |x_i - y_j|."""
    total = 0.0
    for first in range(0, len(x), _PANEL):
        rows = slice(first, first + _PANEL)
        total += float(np.sum(A[rows] * np.abs(x[rows][:, None] - y)))
    return total


# --- choice --------------------------------------------------------------------------------------

choose.register(ProcessRegression)(lambda problem: ExactPosterior())
choose.register(Evidence)(lambda problem: EvidenceAscent())
