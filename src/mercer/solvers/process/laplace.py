"""Laplace's approximation: Newton's method to the mode, the curvature there, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import expit, log_expit

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor, StoredMatrix
from mercer.gram import Source
from mercer.gram.base import written_out
from mercer.problems.process.classification import (
    LaplaceEvidence,
    LaplacePosterior,
    ProcessClassification,
)
from mercer.problems.process.evidence import LogParameters
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.kernel_learning.bounded_descent import bounded_descent
from mercer.solvers.process.evidence import contracted

_HALVINGS = 40
_COLUMNS_AT_ONCE = 512  # of a triangular solve, between two chances to hear Ctrl-C
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode of one question, and the curvature there.

    Attributes
    ----------
    coef : (n,) array
        The mode is f = K coef.
    f : (n,) array
        Its values.
    root : (n,) array
        Root of the curvature of the likelihood.
    factor : Factor or None
        Of I + W^1/2 K W^1/2; None where K is so far from positive semidefinite that it has none.
    log_likelihood : float
        The logarithm of the approximate evidence.
    left : float
        Gradient minus coef, zero at the mode, over the gradient: sums of sizes, each times the
        length of its row, which bound what the certificate measures.
    steps : int
        Steps taken.
    """

    coef: Array
    f: Array
    root: Array
    factor: Factor | None
    log_likelihood: float
    left: float
    steps: int


@dataclass(frozen=True)
class LaplaceMode(Solver):
    """Newton steps with halving, each a Cholesky factor of I + W^1/2 K W^1/2.

    Parameters
    ----------
    tol : float
        What may be left of the gradient, over what pulls on the function.
    max_iter : int
        Largest number of Newton steps of each column.
    """

    answers = ProcessClassification

    tol: float = 1e-8
    max_iter: int = 100

    def run(self, problem: ProcessClassification, watch: Watch, start: Any = None) -> Solution:
        """Find the mode of each column."""
        n, c = problem.signs.shape
        require_memory(
            8 * n * n * (c + 3),
            f"Laplace's approximation on {n} rows of {c} question(s)",
            "Use LogisticRegression, or fewer rows.",
            held=problem.gram.nbytes,
        )
        K, indefinite = choose_backend().stored(written_out(problem.gram)), False
        factors = np.empty((c, n, n))
        modes: list[Mode] = []
        for t in range(c):
            asked = (problem.signs[:, t], problem.row_weights, self.tol, self.max_iter)
            mode = newton(K, *asked)
            if not np.isfinite(mode.log_likelihood) and not problem.gram.valid:
                K, indefinite = _nearest(K), True  # said by the status
                mode = newton(K, *asked)
            factors[t] = np.nan if mode.factor is None else mode.factor.lower()
            modes.append(mode)
            if watch.tick(sum(m.steps for m in modes), mode.left) and t + 1 < c:
                deadline.check()
        steps = max(mode.steps for mode in modes)
        value = LaplacePosterior(
            np.column_stack([mode.coef for mode in modes]),
            np.column_stack([mode.root for mode in modes]),
            factors,
            float(sum(mode.log_likelihood for mode in modes)),
        )
        status = Status.NOT_CONVEX if indefinite else self._status(modes)
        return report(self, value, status, steps, watch)

    def _status(self, modes: list[Mode]) -> Status:
        if max(mode.left for mode in modes) <= self.tol:
            return Status.SOLVED
        limited = any(mode.steps >= self.max_iter for mode in modes)
        return Status.ITERATION_LIMIT if limited else Status.INACCURATE


def newton(
    K: StoredMatrix, signs: Array, s: Array, tol: float, max_iter: int, start: Array | None = None
) -> Mode:
    """Return the mode of sum s log(1 / (1 + exp(-sign f))) - f'K^-1 f / 2.

    Parameters
    ----------
    K : StoredMatrix
        Covariance.
    signs : (n,) array
        1 or -1.
    s : (n,) array
        Weights.
    tol : float
        What may be left of the gradient, over what pulls on the function.
    max_iter : int
        Largest number of steps.
    start : (n,) array, optional
        Coefficients to start from.
    """
    a = np.zeros(len(s)) if start is None else start
    f = _times(K, a)
    value, steps = _objective(a, f, signs, s), 0
    lengths = np.sqrt(np.maximum(K.diagonal(), 0.0))
    while True:
        deadline.check()
        gradient, root = _likelihood(f, signs, s)
        factor = K.cholesky(np.ones(len(s)), root)
        pull = float(lengths @ np.abs(gradient))
        left = float(lengths @ np.abs(gradient - a)) / pull if pull > 0 else 0.0
        if left <= 1e-2 * tol or steps >= max_iter:  # Newton's last step squares what is left
            break
        moved = None
        if factor is not None:
            moved = _step(a, f, K, factor, gradient, root, signs, s, value)
        if moved is None:
            break
        a, f, value = moved
        steps += 1
    determinant = np.nan if factor is None else float(np.sum(np.log(factor.diagonal())))
    return Mode(a, f, root, factor, value - determinant, left, max(steps, 1))


def _step(
    a: Array,
    f: Array,
    K: StoredMatrix,
    factor: Factor,
    gradient: Array,
    root: Array,
    signs: Array,
    s: Array,
    value: float,
) -> tuple[Array, Array, float] | None:
    """Go the whole Newton step, or half of it, ...; None where nothing is gained but rounding."""
    b = root**2 * f + gradient
    goal = b - root * factor.solve(root * _times(K, b))
    image = _times(K, goal)
    share = 1.0
    for _ in range(_HALVINGS):
        new_a, new_f = a + share * (goal - a), f + share * (image - f)
        found = _objective(new_a, new_f, signs, s)
        if found >= value - 4 * _EPS * abs(value):
            return None if np.array_equal(new_a, a) else (new_a, new_f, found)
        share /= 2
    return None


def _times(K: StoredMatrix, v: Array) -> Array:
    return K.product(v[:, None])[:, 0]


def _nearest(K: StoredMatrix) -> StoredMatrix:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = choose_backend().eigh(K.dense())
    return choose_backend().stored((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _objective(a: Array, f: Array, signs: Array, s: Array) -> float:
    return float(s @ log_expit(signs * f) - 0.5 * (a @ f))


def _likelihood(f: Array, signs: Array, s: Array) -> tuple[Array, Array]:
    """Return gradient and root of the curvature of the log-likelihood."""
    p = expit(f)
    return np.asarray(s * signs * expit(-signs * f)), np.asarray(np.sqrt(s * p * expit(-f)))


# --- the evidence and its gradient ---------------------------------------------------------------


@dataclass(frozen=True)
class LaplaceAscent(Solver):
    """L-BFGS-B on the logarithms of the parameters; the most likely end of all starts is kept.

    Parameters
    ----------
    tol : float
        What the largest slope that does not point out of the bounds may be: of the log-evidence of
        one row on the average, by the logarithm of a parameter.
    max_iter : int
        Largest number of steps of one start.
    """

    answers = LaplaceEvidence

    tol: float = 1e-5
    max_iter: int = 200

    def run(self, problem: LaplaceEvidence, watch: Watch, start: Any = None) -> Solution:
        """Ascend from each start."""
        starts = problem.starts if start is None else start.logs[None, :]
        unit = 1.0 / (float(problem.row_weights.sum()) * problem.signs.shape[1])

        def measure(logs: Array) -> tuple[float, Array]:
            value, gradient = laplace_evidence(problem, logs)
            return -unit * value, -unit * gradient

        found = bounded_descent(problem, measure, watch, self.tol, self.max_iter, starts)
        value = LogParameters(found.best)
        return report(self, value, found.status, found.steps, watch, found.detail)


def laplace_evidence(problem: LaplaceEvidence, logs: Array) -> tuple[float, Array]:
    """Return the logarithm of the approximate evidence, and its gradient by the logarithms.

    With R = W^1/2 (I + W^1/2 K W^1/2)^-1 W^1/2 and S = K - K R K, the posterior covariance, the
    slope is <M, dK> with M = (a a' - R + q a' + a q') / 2, where q = (I - R K) u follows the mode,
    and u_i = S_ii d^3 log p(f_i) / 2.

    Parameters
    ----------
    problem : LaplaceEvidence
        What is asked.
    logs : (p,) array
        Logarithms of the parameters.
    """
    formula = problem.kernel.formula(logs)
    stored = Source(formula, problem.X).pairs().stored()
    K = stored.dense()
    value, M = 0.0, np.zeros_like(K)
    for t in range(problem.signs.shape[1]):
        s = problem.row_weights
        mode = newton(stored, problem.signs[:, t], s, LaplaceMode.tol, LaplaceMode.max_iter)
        if mode.factor is None or not np.isfinite(mode.log_likelihood):
            return -np.inf, np.zeros(len(logs))
        value += mode.log_likelihood
        M += _slope(K, mode, mode.factor, s)
    return value, contracted(problem.kernel, logs, M, problem.X, {formula: K})


def _slope(K: Array, mode: Mode, factor: Factor, s: Array) -> Array:
    variance, L = K.diagonal().copy(), factor.lower()
    for first in range(0, len(K), _COLUMNS_AT_ONCE):
        deadline.check()
        some = slice(first, first + _COLUMNS_AT_ONCE)
        half = linalg.solve_triangular(
            L, mode.root[:, None] * K[:, some], lower=True, check_finite=False
        )
        variance[some] -= np.einsum("ij,ij->j", half, half)
    p = expit(mode.f)
    third = -s * p * expit(-mode.f) * (1.0 - 2.0 * p)
    R = factor.inverse()
    R *= mode.root[:, None] * mode.root
    u = 0.5 * variance * third
    q = u - R @ (K @ u)
    R *= -1.0
    R += np.outer(mode.coef + q, mode.coef) + np.outer(mode.coef, q)
    return np.asarray(0.5 * R)
