"""Laplace's approximation: Newton's method to the mode, the curvature there, and the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import expit

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor
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
from mercer.solvers.process.feature_mode import feature_mode
from mercer.solvers.process.mode import Mode, nearest, newton
from mercer.solvers.process.slopes import contracted

_COLUMNS_AT_ONCE = 512  # of a triangular solve, between two chances to hear Ctrl-C
_REMEDY = "Use approximation=Nystrom(1000), LogisticRegression, or fewer rows."


@dataclass(frozen=True)
class LaplaceMode(Solver):
    """Newton steps with halving, each a Cholesky factor of I + W^1/2 K W^1/2.

    For K = F F' of fewer features than rows it is the smaller I + F'W F, of as many rows and
    columns as there are features.

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
        c, primal = problem.signs.shape[1], problem.gram.factor is not None
        order = problem.gram.factor.shape[1] if primal else problem.signs.shape[0]
        require_memory(
            8 * order * order * (c + 3),
            f"Laplace's approximation on {len(problem.signs)} rows of {c} question(s)",
            "Use fewer features or rows." if primal else _REMEDY,
            held=problem.gram.nbytes,
        )
        mode_of = self._by_features(problem) if primal else self._by_matrix(problem)
        factors = np.empty((c, order, order))
        modes: list[Mode] = []
        for t in range(c):
            mode = mode_of(t)
            factors[t] = np.nan if mode.factor is None else mode.factor.lower()
            modes.append(replace(mode, factor=None))
            if watch.tick(sum(m.steps for m in modes), mode.left) and t + 1 < c:
                deadline.check()
        weights = [mode.weights for mode in modes if mode.weights is not None]
        value = LaplacePosterior(
            np.column_stack([mode.coef for mode in modes]),
            np.column_stack([mode.root for mode in modes]),
            factors,
            float(sum(mode.log_likelihood for mode in modes)),
            weights=np.column_stack(weights) if weights else None,
        )
        indefinite = any(mode.indefinite for mode in modes)
        status = Status.NOT_CONVEX if indefinite else self._status(modes)
        return report(self, value, status, max(mode.steps for mode in modes), watch)

    def _by_matrix(self, problem: ProcessClassification) -> Callable[[int], Mode]:
        stored = [choose_backend().stored(written_out(problem.gram))]

        def mode_of(t: int) -> Mode:
            asked = (problem.signs[:, t], problem.row_weights, self.tol, self.max_iter)
            mode = newton(stored[0], *asked)
            if np.isfinite(mode.log_likelihood) or problem.gram.valid:
                return mode
            stored[0] = nearest(stored[0])
            return replace(newton(stored[0], *asked), indefinite=True)  # said by the status

        return mode_of

    def _by_features(self, problem: ProcessClassification) -> Callable[[int], Mode]:
        return lambda t: feature_mode(problem, t, self.tol, self.max_iter)

    def _status(self, modes: list[Mode]) -> Status:
        if max(mode.left for mode in modes) <= self.tol:
            return Status.SOLVED
        limited = any(mode.steps >= self.max_iter for mode in modes)
        return Status.ITERATION_LIMIT if limited else Status.INACCURATE


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
