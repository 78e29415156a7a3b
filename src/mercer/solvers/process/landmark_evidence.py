"""A lower bound of the marginal likelihood by landmarks: n m^2 once, n m a parameter.

With K(z, z) = L L', features F = K(X, z) L'^-1, F_c their distances from their mean where there is
a bias, B = F_c'S F_c, A = B + noise I, w = A^-1 F_c'S Y and a = S (Y_c - F_c w) / noise, the slope
of the bound by Q = F F' is half of

    M = a a' + t / noise (s s'/N + S F_c A^-1 F_c'S),
    M F = a w' + t / noise (s f' + S F_c (I - noise A^-1)),

with f the mean of F; s s' and f are there with a bias only. Rows come in blocks, twice: what they
add up to, then their slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.backends.blas import one_blas_thread
from mercer.points import row_count, take
from mercer.problems.process.evidence import Evidence, log_likelihood
from mercer.resources import rows_at_once
from mercer.row_chunks import added, chunk_count, chunked, slices
from mercer.solvers.process.slopes import contracted, diagonal_slopes

# Added to the diagonal of K(z, z), as a share of its mean: slopes are differences of numbers that
# K(z, z)^-1 makes large, and keep eight digits so. The bound stays one: Q becomes smaller.
JITTER = 1e-8
_ROWS_AT_ONCE = 256  # of a thread: 1024 are no faster, and allocators of threads keep their pages
_FEWEST = 1024  # rows of a thread, where it has enough to do with them
_ARRAYS = 4  # of a block: values, features, slopes, and what they are multiplied by


@dataclass(frozen=True, eq=False)
class _Sums:
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

    def _sums(self) -> _Sums:
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
        return _Sums(middle, B, pulled, max(0.0, float(s @ own) - kept))

    def _slopes(self, sums: _Sums, inverse: Array, w: Array) -> tuple[Array, float]:
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

    def _between_landmarks(self, sums: _Sums, inverse: Array, w: Array) -> Array:
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
