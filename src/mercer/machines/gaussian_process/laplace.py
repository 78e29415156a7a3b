"""Laplace's approximation: solvers for the mode, in rows or features, and evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.special import expit, log_expit

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Factor, StoredMatrix
from mercer.backends.factorizations import triangle
from mercer.backends.host import HostFactor
from mercer.gram import Source
from mercer.gram.base import written_out
from mercer.machines.gaussian_process.marginal_likelihood import contracted
from mercer.machines.gaussian_process.problem import (
    LaplaceEvidence,
    LaplacePosterior,
    LogParameters,
    ProcessClassification,
)
from mercer.machines.logistic.newton import NewtonRisk
from mercer.machines.logistic.problem import SmoothRisk
from mercer.resources import require_memory
from mercer.rows.points import to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.bounded_descent import bounded_descent
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import dual_form, weighted_gram

# --- posterior -----------------------------------------------------------------------------------
#
# Newton's method to the mode of each question, and the curvature there.

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


# --- mode by the kernel matrix -------------------------------------------------------------------
#
# Newton's method on the coefficients of training samples.

_HALVINGS = 40
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Mode:
    """The mode of one question, and the curvature there.

    Attributes
    ----------
    coef : (n,) array
        The mode is f = K coef.
    f : (n,) array
        Its values at the rows.
    root : (n,) array
        Root of the curvature of the likelihood.
    factor : Factor or None
        Of I + W^1/2 K W^1/2, or of I + F'W F where there are weights; None where K is so far from
        positive semidefinite that there is none.
    log_likelihood : float
        The logarithm of the approximate evidence.
    left : float
        Gradient minus coef, zero at the mode, over the gradient: sums of sizes, each times the
        length of its row, which bound what the certificate measures.
    steps : int
        Steps taken.
    weights : (D,) array or None
        Of features: F'coef.
    indefinite : bool
        Whether it is that of the nearest positive semidefinite matrix.
    """

    coef: Array
    f: Array
    root: Array
    factor: Factor | None
    log_likelihood: float
    left: float
    steps: int
    weights: Array | None = None
    indefinite: bool = False


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
    value, steps = _mode_objective(a, f, signs, s), 0
    lengths = np.sqrt(np.maximum(K.diagonal(), 0.0))
    while True:
        deadline.check()
        gradient, root = likelihood(f, signs, s)
        factor = K.cholesky(np.ones(len(s)), root)
        pull = float(lengths @ np.abs(gradient))
        left = float(lengths @ np.abs(gradient - a)) / pull if pull > 0 else 0.0
        if left <= 1e-2 * tol or steps >= max_iter:  # Newton's last step squares what is left
            break
        moved = None
        if factor is not None:
            moved = _mode_step(a, f, K, factor, gradient, root, signs, s, value)
        if moved is None:
            break
        a, f, value = moved
        steps += 1
    determinant = np.nan if factor is None else float(np.sum(np.log(factor.diagonal())))
    return Mode(a, f, root, factor, value - determinant, left, max(steps, 1))


def _mode_step(
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
    b = root**2 * f + gradient
    goal = b - root * factor.solve(root * _times(K, b))
    way = (goal - a, _times(K, goal) - f)
    return _halved(a, f, way, value, lambda a, f: _mode_objective(a, f, signs, s))


def _halved(
    a: Array, f: Array, way: tuple[Array, Array], value: float, objective: Callable[..., float]
) -> tuple[Array, Array, float] | None:
    """Go the whole Newton step, or half of it, ...; None where nothing is gained but rounding."""
    share = 1.0
    for _ in range(_HALVINGS):
        new_a, new_f = a + share * way[0], f + share * way[1]
        found = objective(new_a, new_f)
        if found >= value - 4 * _EPS * abs(value):
            return None if np.array_equal(new_a, a) else (new_a, new_f, found)
        share /= 2
    return None


def _times(K: StoredMatrix, v: Array) -> Array:
    return K.product(v[:, None])[:, 0]


def nearest(K: StoredMatrix) -> StoredMatrix:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = choose_backend().eigh(K.dense())
    return choose_backend().stored((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _mode_objective(a: Array, f: Array, signs: Array, s: Array) -> float:
    return float(s @ log_expit(signs * f)) - 0.5 * float(a @ f)


def likelihood(f: Array, signs: Array, s: Array) -> tuple[Array, Array]:
    """Return gradient and root of the curvature of the log-likelihood."""
    p = expit(f)
    return np.asarray(s * signs * expit(-signs * f)), np.asarray(np.sqrt(s * p * expit(-f)))


# --- mode by features ----------------------------------------------------------------------------
#
# Newton's method on the weights w of f = F w, w ~ N(0, I).

# n D^2 of a matrix of second derivatives, of which Newton's steps take eight or so: beyond, the
# solvers of logistic regression, which avoid it, find the mode, and one is made there.
_MANY = 1e9


def feature_mode(problem: ProcessClassification, column: int, tol: float, max_iter: int) -> Mode:
    """Return the mode of sum s log(1 / (1 + exp(-sign F w))) - |w|^2 / 2.

    Parameters
    ----------
    problem : ProcessClassification
        With K = F F'.
    column : int
        Which question.
    tol : float
        What may be left of the gradient, over what pulls on the function.
    max_iter : int
        Largest number of steps.
    """
    F: Any = problem.gram.factor
    signs, s, D = problem.signs[:, column], problem.row_weights, F.shape[1]
    w, steps = np.zeros(D), 0
    if len(s) * float(D) ** 2 > _MANY:
        w, steps = _begun(problem.risk(column), 1e-2 * tol, max_iter)
    f = np.asarray(F @ w)
    value = _feature_mode_objective(w, f, signs, s)
    lengths = np.sqrt(problem.gram.diag())
    while True:
        deadline.check()
        gradient, root = likelihood(f, signs, s)
        factor = _factor(F, root)
        uphill = np.asarray(F.T @ gradient) - w
        pull = float(lengths @ np.abs(gradient))
        left = float(np.linalg.norm(uphill)) / pull if pull > 0 else 0.0
        if left <= 1e-2 * tol or steps >= max_iter or factor is None:
            break
        moved = _feature_mode_step(w, f, F, factor.solve(uphill[:, None])[:, 0], signs, s, value)
        if moved is None:
            break
        w, f, value = moved
        steps += 1
    coef = dual_form(F, None, s, False, gradient[:, None], w[:, None])[:, 0]
    determinant = np.nan if factor is None else float(np.sum(np.log(factor.diagonal())))
    return Mode(coef, f, root, factor, value - determinant, left, max(steps, 1), w)


def _begun(risk: SmoothRisk, tol: float, max_iter: int) -> tuple[Array, int]:
    """Return weights near the mode, as logistic regression finds them, and its steps."""
    found = NewtonRisk(tol=tol, max_iter=max_iter).run(risk, Watch())
    return np.array(found.value.weights[:, 0]), min(found.iterations, max_iter - 1)


def _factor(F: Any, root: Array) -> Factor | None:
    """Return the factor of I + F'W F; by a QR decomposition where squares lose too much.

    None where features are no numbers.
    """
    normal = weighted_gram(F, root**2)
    found = choose_backend().stored(normal).cholesky(np.ones(len(normal)))
    if found is not None or not np.isfinite(normal).all():
        return found
    R = triangle(np.vstack([root[:, None] * to_dense(F), np.eye(len(normal))]))
    signs = np.where(R.diagonal() < 0, -1.0, 1.0)
    return HostFactor(np.ascontiguousarray((R * signs[:, None]).T))


def _feature_mode_step(
    w: Array, f: Array, F: Any, way: Array, signs: Array, s: Array, value: float
) -> tuple[Array, Array, float] | None:
    ahead = (way, np.asarray(F @ way))
    return _halved(w, f, ahead, value, lambda w, f: _feature_mode_objective(w, f, signs, s))


def _feature_mode_objective(w: Array, f: Array, signs: Array, s: Array) -> float:
    return float(s @ log_expit(signs * f)) - 0.5 * float(w @ w)


# --- evidence ------------------------------------------------------------------------------------
#
# The approximate log marginal likelihood, and its gradient by the hyperparameters.


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
    value, M = 0.0, np.zeros(K.shape)
    for t in range(problem.signs.shape[1]):
        s = problem.row_weights
        mode = newton(stored, problem.signs[:, t], s, LaplaceMode.tol, LaplaceMode.max_iter)
        if mode.factor is None or not np.isfinite(mode.log_likelihood):
            return -np.inf, np.zeros(len(logs))
        value += mode.log_likelihood
        _add_slope(M, K, mode, mode.factor, s)
    return value, contracted(problem.kernel, logs, M, problem.X, {formula: K})


def _add_slope(M: Array, K: Array, mode: Mode, factor: Factor, s: Array) -> None:
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
    for some in deadline.row_slices(len(R), len(R)):
        R[some] *= mode.root[some, None] * mode.root
    u = 0.5 * variance * third
    q, a = u - R @ (K @ u), mode.coef
    for some in deadline.row_slices(len(R), len(R)):
        M[some] += 0.5 * ((a + q)[some, None] * a + a[some, None] * q - R[some])


# --- choice --------------------------------------------------------------------------------------

choose.register(ProcessClassification)(lambda problem: LaplaceMode())
choose.register(LaplaceEvidence)(lambda problem: LaplaceAscent())
