"""Certificate of multi-task Gaussian processes: mean, variances, likelihood and its gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.factorizations import solve_with_determinant
from mercer.gram import Gram, definiteness, exact
from mercer.gram.build import matrix_gram
from mercer.machines.gaussian_process.certificate import (
    likelihood_rounding,
    solved_by_factor,
    steepest_slope,
    triangle_of,
)
from mercer.machines.gaussian_process.problem import observations
from mercer.machines.multitask.posterior import Kronecker, readings_matrix, task_evidence
from mercer.machines.multitask.problem import (
    TaskEvidence,
    TaskPosterior,
    TaskRegression,
    readings_of,
    task_log_likelihood,
    task_root,
)
from mercer.rows.points import to_dense
from mercer.solvers.certificate import Certificate, certify, larger

# --- posterior -----------------------------------------------------------------------------------
#
# The posterior is verified by its equations, with the exact matrix.
#
# For a covariance c of a place with all readings, and any g, c'C^-1 c = 2 c'g - g'Cg + r'C^-1 r
# with r = c - Cg, and the last term lies between zero and |r|^2 over the smallest noise. So one
# product with the exact C bounds the error of a posterior variance made of g, whoever made g.

_TOL = 1e-6
_PLACES = 64  # training rows whose variance is judged, one task each
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class TaskQuantities:
    """Measures of the posterior of several tasks.

    Attributes
    ----------
    relative_residual : float
        Norm of what is left of K A B + noise S^-1 A = Y where there are readings, over that of Y.
    unread : float
        Largest coefficient where there is no reading, over the largest: zero.
    indefiniteness : float
        As in `LinearSystemQuantities`, of K; infinite, too, if B has a negative eigenvalue.
    variance_error : float
        Bound on the errors of posterior variances at training rows, in units of the largest prior
        variance.
    places_judged : int
        At how many rows, one task each.
    log_likelihood : float
        The logarithm of the marginal likelihood, by LU decompositions.
    likelihood_error : float
        Difference of the stored one from it, for one reading on the average.
    stationarity : float
        Largest slope of the log-likelihood of one reading by anything that was learnt that does not
        point out of its bounds; zero where nothing was.
    at_lower, at_upper : int
        How many of these are at a bound.
    mismatch : float
        Where there are weights beside coefficients A: how far F'A B is from them, over their size.
    """

    relative_residual: float
    unread: float
    indefiniteness: float
    variance_error: float
    places_judged: int
    log_likelihood: float
    likelihood_error: float
    stationarity: float = 0.0
    at_lower: int = 0
    at_upper: int = 0
    mismatch: float = 0.0


@certify.register
def _(problem: TaskRegression, value: TaskPosterior, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    convex = definiteness(problem.gram)
    with np.errstate(all="ignore"):  # judged by what comes of it
        q = _measured(problem, value, convex.shift)
    flat = 0.0 if problem.search is None else problem.search.flat
    right = max(q.relative_residual, q.unread, q.mismatch, q.variance_error) <= tol
    ok = right and not convex.seen and np.isfinite(q.indefiniteness)
    ok = ok and q.stationarity <= max(flat, tol)
    if np.isfinite(q.log_likelihood):  # else nothing is known to compare with
        ok = ok and q.likelihood_error <= max(tol, _likelihood_rounding(problem, value))
    statement = (
        "the answer solves the equations of all tasks exactly once their right-hand side is "
        f"changed by {q.relative_residual:.1e} of its norm; variances at {q.places_judged} places "
        f"are right to {q.variance_error:.1e} of the largest prior variance"
    )
    known = max(q.likelihood_error, _likelihood_rounding(problem, value))
    if known > tol:
        statement += f"; the log-likelihood of a reading is known to {known:.0e} only"
    if problem.search is not None:
        statement += (
            f"; nothing that was learnt has a slope above {q.stationarity:.1e}, so the likelihood "
            "is at a local maximum or a saddle, not proved to be the largest"
        )
    if not convex.shown:
        statement += f"; {convex.obstacle}"
    return Certificate(bool(ok), q, tol, f"{statement}; that the prior is true is assumed")


def _measured(problem: TaskRegression, value: TaskPosterior, shift: float) -> TaskQuantities:
    K: Any = exact(problem.gram)
    if value.weights is None:
        K = matrix_gram(np.array(K.dense(), dtype=np.float64))
    seen = ~np.isnan(problem.targets)
    Y, A = np.where(seen, problem.targets, 0.0), value.coef
    residual = np.where(seen, Y - _image(problem, K, A), 0.0)
    size = max(float(np.linalg.norm(Y)), np.finfo(float).tiny)
    largest = max(float(np.abs(A).max(initial=0.0)), np.finfo(float).tiny)
    error, places = _variances(problem, value, K, seen)
    if value.weights is None:
        likelihood = _likelihood(problem, K.dense(), Y)
    else:
        likelihood = likelihood_of_features(problem, K.factor, Y)
    total = observations(problem.row_weights[problem.readings.row])
    apart = abs(likelihood - value.log_likelihood) / total
    m = np.linalg.eigvalsh(problem.tasks)
    valid = m[0] >= -len(m) * _EPS * max(abs(m[0]), abs(m[-1])) * 16
    steepest, at_lower, at_upper = _flatness(problem.search, value.logs)
    return TaskQuantities(
        _number(np.linalg.norm(residual) / size),
        _number(np.abs(np.where(seen, 0.0, A)).max(initial=0.0) / largest),
        shift if valid else np.inf,
        _number(error),
        places,
        likelihood,
        _number(apart),
        steepest,
        at_lower,
        at_upper,
        _number(_mismatch(K, value, problem.tasks)),
    )


def _likelihood_rounding(problem: TaskRegression, value: TaskPosterior) -> float:
    """Return what rounding may change in the log-likelihood of a reading."""
    s, count = problem.row_weights, problem.targets.size
    prior = float(np.abs(problem.gram.diag()).max() * np.abs(problem.tasks.diagonal()).max())
    condition = (count * prior + problem.noise / float(s.min())) * float(s.max()) / problem.noise
    squares = abs(float(np.nansum(problem.targets * value.coef)))
    return likelihood_rounding(condition, squares / observations(s[problem.readings.row]))


def _number(x: Any) -> float:
    return float(x) if np.isfinite(x) else float("inf")


def _mismatch(K: Gram, value: TaskPosterior, B: Array) -> float:
    if value.weights is None:
        return 0.0
    off = np.linalg.norm(np.asarray(K.factor.T @ value.coef) @ B - value.weights)
    return float(off / max(float(np.linalg.norm(value.weights)), np.finfo(float).tiny))


def _image(problem: TaskRegression, K: Gram, A: Array) -> Array:
    """Return C applied to coefficients, at all rows and tasks."""
    return np.asarray((K @ A) @ problem.tasks + problem.noise / problem.row_weights[:, None] * A)


def _variances(
    problem: TaskRegression, value: TaskPosterior, K: Gram, seen: Array
) -> tuple[float, int]:
    """Return a bound on the errors of variances, in units of the largest prior variance."""
    n, T = seen.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, _PLACES)).astype(np.intp))
    B, least = problem.tasks, problem.noise / float(problem.row_weights.max())
    largest = max(float(np.abs(K.diag()).max() * np.abs(B.diagonal()).max()), 1e-300)
    worst = 0.0
    for k, i in enumerate(rows):
        t = k % T
        c = np.where(seen, np.outer(K.rows([i])[0], B[t]), 0.0)
        if value.weights is None:
            g, explained = _solved(problem, value, c)
        else:
            g, explained = solved_by_features(problem, value, K.factor, int(i), t)
        image = np.where(seen, _image(problem, K, g), 0.0)
        r, true = c - image, 2.0 * np.sum(c * g) - np.sum(g * image)
        # least is zero where noise over a weight is below all numbers: then nothing is shown
        beyond = float(np.sum(r**2)) / least if least > 0 else np.inf
        worst = larger(worst, abs(explained - true) + beyond)
    return worst / largest, len(rows)


def _solved(problem: TaskRegression, value: TaskPosterior, c: Array) -> tuple[Array, float]:
    """Return C^-1 c and c'C^-1 c by what is stored."""
    if value.factor is not None:
        readings = problem.readings
        half = solved_by_factor(value.factor, c[readings.row, readings.task])
        g = np.zeros_like(c)
        back = solved_by_factor(value.factor, half, transposed=True)
        g[readings.row, readings.task] = back
        return g, float(half @ half)
    m, V = np.linalg.eigh(problem.tasks)
    assert value.basis is not None
    assert value.values is not None
    root = np.sqrt(problem.row_weights)
    held = Kronecker(value.basis, value.values, V, np.maximum(m, 0.0), root, problem.noise)
    g = held.solve(c)
    return g, float(np.sum(c * g))


def _likelihood(problem: TaskRegression, K: Array, Y: Array) -> float:
    """Compute the likelihood by LU decompositions: one for each eigenvalue of B, or of all."""
    readings, s, noise = problem.readings, problem.row_weights, problem.noise
    if readings.whole:
        m, V = np.linalg.eigh(problem.tasks)
        rotated, squares, determinant = Y @ V, 0.0, 0.0
        for j, value in enumerate(np.maximum(m, 0.0)):
            C = value * K
            C.flat[:: len(C) + 1] += noise / s
            solved, _, logarithm = solve_with_determinant(C, rotated[:, j])
            squares += float(rotated[:, j] @ solved)
            determinant += logarithm + float(np.sum(np.log(s)))
    else:
        C = readings_matrix(K, problem.tasks, readings)
        C.flat[:: len(C) + 1] += noise / s[readings.row]
        y = Y[readings.row, readings.task]
        solved, _, logarithm = solve_with_determinant(C, y)
        squares = float(y @ solved)
        determinant = logarithm + float(np.sum(np.log(s[readings.row])))
    return task_log_likelihood(squares, determinant, readings, s, noise)


def _flatness(search: TaskEvidence | None, place: Array | None) -> tuple[float, int, int]:
    """Return the largest slope that does not point out of the bounds, and how many are there."""
    if search is None or place is None:
        return 0.0, 0, 0
    _, slopes = task_evidence(search, place)
    unit = float(search.row_weights[readings_of(search.targets).row].sum())
    return steepest_slope(search, place, slopes, unit)


# --- features ------------------------------------------------------------------------------------
#
# The same quantities for K = F F': by the stored forms, and by QR decompositions of F.

_ROWS = 4  # times the features: rows that are written out at a time


def solved_by_features(
    problem: TaskRegression, value: TaskPosterior, F: Any, row: int, task: int
) -> tuple[Array, float]:
    """Return C^-1 c and c'C^-1 c by what is stored, c the covariance of a place with all readings.

    With p = R_t (x) phi and H = Phi'S Phi + noise I, C^-1 c = S Phi H^-1 p, and the variance that
    is left is noise p'H^-1 p.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    value : TaskPosterior
        The answer.
    F : (n, D) array or sparse array
        The features.
    row, task : int
        The place.
    """
    R, noise, phi = task_root(problem.tasks), problem.noise, to_dense(F[[row]])[0]
    p = np.outer(phi, R[task])
    if value.factor is not None:
        half = solved_by_factor(value.factor, p.T.ravel())
        u = solved_by_factor(value.factor, half, transposed=True).reshape(p.T.shape).T
        left = noise * float(half @ half)
    else:
        assert value.basis is not None
        assert value.values is not None
        m, V = np.linalg.eigh(problem.tasks)
        parts = np.outer(value.values, np.maximum(m, 0.0)) + noise
        turned = value.basis.T @ p @ V
        u = value.basis @ (turned / parts) @ V.T
        left = noise * float(np.sum(turned**2 / parts))
    s = problem.row_weights[:, None]
    g = np.where(problem.seen, s * np.asarray(F @ (u @ R)), 0.0)
    return g, float(phi @ phi) * float(problem.tasks[task, task]) - left


def likelihood_of_features(problem: TaskRegression, F: Any, Y: Array) -> float:
    """Return log p(Y) by a QR decomposition for each eigenvalue of B, or of all readings.

    Parameters
    ----------
    problem : TaskRegression
        What was asked.
    F : (n, D) array or sparse array
        The features.
    Y : (n, T) array
        The readings; zero where there are none.
    """
    s, noise, readings = problem.row_weights, problem.noise, problem.readings
    if readings.whole:
        m, V = np.linalg.eigh(problem.tasks)
        rotated = Y @ V
        parts = [
            _one_task(F, rotated[:, j], s, noise, max(float(m[j]), 0.0)) for j in range(len(m))
        ]
        squares, determinant = sum(a for a, _ in parts), sum(b for _, b in parts)
    else:
        squares, determinant = _all_readings(problem, F, Y)
    return task_log_likelihood(squares, determinant, readings, s, noise)


def _one_task(F: Any, y: Array, s: Array, noise: float, m: float) -> tuple[float, float]:
    """Return y'C^-1 y and log |SC| for C = m F F' + noise S^-1."""
    R = triangle_of(F, np.sqrt(s * (m / noise)))
    right = np.sqrt(m) / noise * np.asarray(F.T @ (s * y))
    half = solved_by_factor(R, right, lower=False, transposed=True)
    w = solved_by_factor(R, half, lower=False)
    left = y - np.sqrt(m) * np.asarray(F @ w)
    squares = float(s @ left**2) / noise + float(w @ w)
    determinant = 2.0 * float(np.sum(np.log(np.abs(R.diagonal())))) + len(y) * np.log(noise)
    return squares, determinant


def _all_readings(problem: TaskRegression, F: Any, Y: Array) -> tuple[float, float]:
    """Return y'C^-1 y and log |SC| with the features of all readings, block by block."""
    root, s, noise = task_root(problem.tasks), problem.row_weights, problem.noise
    D, T = F.shape[1], len(root)
    R, step = np.eye(T * D), max(_ROWS * T * D, 1)
    for t in range(T):
        rows = np.flatnonzero(problem.seen[:, t])
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            phi = np.kron(root[[t]], to_dense(F[some]))
            R = triangle_of(phi, np.sqrt(s[some] / noise), R)
    right = (np.asarray(F.T @ (s[:, None] * Y)) @ root / noise).T.ravel()
    half = solved_by_factor(R, right, lower=False, transposed=True)
    u = solved_by_factor(R, half, lower=False).reshape(T, D).T
    left = np.where(problem.seen, Y - np.asarray(F @ (u @ root)), 0.0)
    squares = float(s @ np.square(left).sum(axis=1)) / noise + float(np.square(u).sum())
    determinant = 2.0 * float(np.sum(np.log(np.abs(R.diagonal()))))
    return squares, determinant + len(problem.readings.row) * float(np.log(noise))
