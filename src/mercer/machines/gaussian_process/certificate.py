"""Certificates of Gaussian process regression and classification, and triangular solves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.factorizations import (
    extend_triangle,
    solve_triangular,
    solve_with_determinant,
    triangle,
)
from mercer.gram import exact
from mercer.machines.gaussian_process.laplace import laplace_evidence
from mercer.machines.gaussian_process.marginal_likelihood import evidence
from mercer.machines.gaussian_process.problem import (
    Evidence,
    LaplaceEvidence,
    LaplacePosterior,
    ProcessClassification,
    ProcessPosterior,
    ProcessRegression,
    log_likelihood,
    observations,
)
from mercer.rows.points import to_dense
from mercer.solvers.bounded_descent import BoundedSearch
from mercer.solvers.certificate import Certificate, certify, larger

# --- regression ----------------------------------------------------------------------------------
#
# The mean is verified by its equations; variances and likelihood are computed another way.

_TOL = 1e-6
_SAME = 1e-9  # of the noise: what is stored and read again may differ by
_ROWS = 256  # whose variance is verified: each costs n^2


@dataclass(frozen=True)
class ProcessQuantities:
    """Measures of the posterior of a Gaussian process.

    Attributes
    ----------
    relative_residual, bias_condition, mismatch, indefiniteness : float
        As in `LinearSystemQuantities`, with the noise for the penalty.
    variance_error : float
        Largest difference of posterior variances at training rows, by the stored factor, from
        those by another decomposition of the exact matrix; in units of the largest k(x, x), or of
        the largest variance, if a constant makes that larger.
    rows_judged : int
        At how many rows they were compared.
    log_likelihood : float
        The logarithm of the marginal likelihood, by that other decomposition.
    likelihood_error : float
        Difference of the stored one from it, for one row and target on the average.
    stationarity : float
        Largest slope of the log-likelihood of one row, by the logarithm of a parameter that was
        learnt, that does not point out of its bounds; zero where none was.
    at_lower, at_upper : int
        How many parameters that were learnt are at a bound.
    dual_residual : float
        As in `LinearSystemQuantities`.
    """

    relative_residual: float
    bias_condition: float
    mismatch: float
    indefiniteness: float
    variance_error: float
    rows_judged: int
    log_likelihood: float
    likelihood_error: float
    stationarity: float = 0.0
    at_lower: int = 0
    at_upper: int = 0
    dual_residual: float = 0.0


@dataclass(frozen=True)
class ProcessBoundQuantities(ProcessQuantities):
    """The same, where landmarks stood for the kernel while its parameters were learnt.

    Attributes
    ----------
    lower_bound : float
        What the logarithm of the marginal likelihood with the kernel itself is at least.
    """

    lower_bound: float = -np.inf


class _Other(NamedTuple):
    """Variances at some rows, by the stored factor and another way, and the likelihood."""

    stored: Array
    variance: Array
    log_determinant: float
    squares: float


@certify.register
def _(problem: ProcessRegression, value: ProcessPosterior, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    mean = certify(problem.system(), value.coefficients, tol)
    with np.errstate(all="ignore"):  # judged by what comes of it
        quantities = _regression_measured(problem, value, mean)
    flat = 0.0 if problem.search is None else problem.search.flat
    ok = mean.ok and quantities.variance_error <= tol
    ok = ok and quantities.stationarity <= max(flat, tol)
    if np.isfinite(quantities.log_likelihood):  # else nothing is known to compare with
        ok = ok and quantities.likelihood_error <= max(tol, _likelihood_rounding(problem, value))
    return Certificate(
        bool(ok), quantities, tol, _regression_statement(quantities, mean, problem, value, tol)
    )


def _regression_measured(
    problem: ProcessRegression, value: ProcessPosterior, mean: Certificate
) -> ProcessQuantities:
    n, t = problem.targets.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.intp))
    primal = value.weights is not None
    other = (_regression_by_features if primal else _by_matrix)(problem, value, rows)
    likelihood = log_likelihood(
        other.squares, other.log_determinant, problem.row_weights, problem.noise, problem.bias, t
    )
    # a constant that is known to the noise of few rows only has a variance far above k(x, x)
    sizes = np.abs(np.concatenate([problem.gram.diag(), other.variance]))
    size = max(float(sizes.max(initial=0.0)), np.finfo(float).tiny)
    error = np.abs(other.stored - other.variance).max(initial=0.0) / size
    apart = abs(likelihood - value.log_likelihood) / (observations(problem.row_weights) * t)
    steepest, at_lower, at_upper, bound = _regression_flatness(problem, value.logs)
    found = mean.quantities
    known = ProcessQuantities(
        found.relative_residual,
        found.bias_condition,
        found.mismatch,
        found.indefiniteness,
        float(error) if np.isfinite(error) else np.inf,
        len(rows),
        likelihood,
        float(apart) if np.isfinite(apart) else np.inf,
        steepest,
        at_lower,
        at_upper,
        found.dual_residual,
    )
    if problem.search is None or problem.search.landmarks is None:
        return known
    return ProcessBoundQuantities(**asdict(known), lower_bound=bound)


def _likelihood_rounding(problem: ProcessRegression, value: ProcessPosterior) -> float:
    """Return what rounding may change in the log-likelihood of a row: epsilon times condition."""
    s = problem.row_weights
    largest = len(s) * float(np.abs(problem.gram.diag()).max()) + problem.noise / float(s.min())
    condition = largest * float(s.max()) / problem.noise
    squares = abs(float(np.sum(problem.targets * value.coef)))
    if problem.bias:  # what the constant explains was there before it was taken off
        squares = float(s @ np.square(problem.targets).sum(axis=1)) / problem.noise
    return likelihood_rounding(condition, squares / observations(s))


def likelihood_rounding(condition: float, squares: float) -> float:
    """Estimate what rounding changes in the log-likelihood of a row: epsilon times condition.

    An allowance for two likelihoods that were found in two ways. A bound would count the rows as
    well (Higham, theorem 10.3), and would let larger faults pass.

    Parameters
    ----------
    condition : float
        Of the covariance, at most.
    squares : float
        y'C^-1 y of a row.
    """
    return 16.0 * float(np.finfo(float).eps) * condition * (1.0 + squares)


def _by_matrix(problem: ProcessRegression, value: ProcessPosterior, rows: Array) -> _Other:
    """Compare with an LU decomposition of the matrix, evaluated anew."""
    C = np.array(exact(problem.gram).dense(), dtype=np.float64)
    own, across = C.diagonal()[rows].copy(), C[:, rows].copy()
    C.flat[:: len(C) + 1] += problem.system().shift(0)
    ones = np.ones(len(C))
    right = np.column_stack([across, problem.targets, ones])
    solved, sign, log_determinant = choose_backend().solve_with_determinant(C, right)
    log_determinant += float(np.sum(np.log(problem.row_weights)))
    g, a, u = solved[:, : len(rows)], solved[:, len(rows) : -1], solved[:, -1]
    half = solved_by_factor(value.factor, np.column_stack([across, ones]))
    stored = own - np.sum(half[:, :-1] ** 2, axis=0)
    variance = own - np.sum(across * g, axis=0)
    squares = float(np.sum(problem.targets * a))
    if problem.bias:
        total = float(u.sum())
        stored += (1.0 - half[:, -1] @ half[:, :-1]) ** 2 / float(half[:, -1] @ half[:, -1])
        variance += (1.0 - across.T @ u) ** 2 / total
        squares -= float(np.sum((problem.targets.T @ u) ** 2)) / total
        log_determinant += float(np.log(total))
    return _Other(stored, variance, float(log_determinant) if sign > 0 else np.nan, squares)


def _regression_by_features(
    problem: ProcessRegression, value: ProcessPosterior, rows: Array
) -> _Other:
    """Compare with a QR decomposition of the weighted features."""
    s, noise, bias = problem.row_weights, problem.noise, problem.bias
    F = to_dense(problem.gram.factor)
    total = float(s.sum())
    centre = s @ F / total if bias else np.zeros(F.shape[1])
    middle = s @ problem.targets / total if bias else np.zeros(problem.targets.shape[1])
    G, root = F - centre, np.sqrt(s)[:, None]
    wide = np.vstack([root * G, np.sqrt(noise) * np.eye(F.shape[1])])
    R = triangle(wide)
    extra = noise / total if bias else 0.0
    phi = G[rows].T
    stored = noise * np.sum(solved_by_factor(value.factor, phi) ** 2, axis=0)
    variance = noise * np.sum(solved_by_factor(R, phi, lower=False, transposed=True) ** 2, axis=0)
    log_determinant = 2.0 * float(np.sum(np.log(np.abs(R.diagonal()))))
    log_determinant += (len(F) - F.shape[1]) * float(np.log(noise))
    log_determinant += float(np.log(total / noise)) if bias else 0.0
    y = problem.targets - middle
    pulled = solved_by_factor(R, G.T @ (s[:, None] * y), lower=False, transposed=True)
    w = solved_by_factor(R, pulled, lower=False)
    squares = float(np.sum(s[:, None] * (y - G @ w) ** 2) / noise + np.sum(w**2))
    return _Other(stored + extra, variance + extra, log_determinant, squares)


def _regression_flatness(
    problem: ProcessRegression, logs: Array | None
) -> tuple[float, int, int, float]:
    """Return the largest slope not out of the bounds, how many are there, and the value.

    The slope is infinite where the posterior is that of another noise than was learnt, or nothing
    says what was.
    """
    search = problem.search
    if search is None:
        return 0.0, 0, 0, -np.inf
    if logs is None or not _is_used(search, logs, problem.noise):
        return np.inf, 0, 0, -np.inf
    value, slopes = evidence(search, logs)
    unit = float(search.row_weights.sum()) * search.targets.shape[1]
    return *steepest_slope(search, logs, slopes, unit), value


def steepest_slope(
    search: BoundedSearch, logs: Array, slopes: Array, unit: float
) -> tuple[float, int, int]:
    """Return the largest slope that does not point out of the bounds, and how many are there."""
    near = search.at_bounds(logs)
    steepest = float(np.abs(search.uphill(near, -slopes)).max(initial=0.0)) / unit
    free = search.lower < search.upper
    at_lower = int(np.sum(free & (near <= search.lower)))
    at_upper = int(np.sum(free & (near >= search.upper)))
    return (steepest if np.isfinite(steepest) else np.inf), at_lower, at_upper


def _is_used(search: Evidence, logs: Array, noise: float) -> bool:
    """Return whether these are logarithms of the parameters, with the noise of the posterior."""
    if logs.shape != search.lower.shape or not np.isfinite(logs).all():
        return False
    return bool(abs(search.noise_at(logs) - noise) <= _SAME * noise)


def _regression_statement(
    q: ProcessQuantities,
    mean: Certificate,
    problem: ProcessRegression,
    value: ProcessPosterior,
    tol: float,
) -> str:
    statement = (
        f"of the posterior mean {mean.statement}; variances at {q.rows_judged} rows are right to "
        f"{q.variance_error:.1e} of the largest variance"
    )
    # two ways to compute it share the rounding of the covariance
    known = max(q.likelihood_error, _likelihood_rounding(problem, value))
    if known > tol:
        statement += f"; the log-likelihood of a sample is known to {known:.0e} only"
    if problem.search is None:
        learnt = "; that prior and noise are true is assumed"
    elif isinstance(q, ProcessBoundQuantities):
        learnt = (
            f"; with the kernel itself the log-likelihood is at least {q.lower_bound:.6g}, and no "
            f"parameter has a slope of this bound above {q.stationarity:.1e} for one row: it is at "
            "a local maximum or a saddle; that the likelihood is, and that prior and noise are "
            "true, is not proved"
        )
    else:
        learnt = (
            f"; no parameter has a slope above {q.stationarity:.1e}, so the likelihood is at a "
            "local maximum or a saddle; that it is the largest of all, and that prior and noise "
            "are true, is not proved"
        )
    return statement + learnt


# --- classification ------------------------------------------------------------------------------
#
# The mode is verified by a duality gap; variances and evidence are computed another way.


@dataclass(frozen=True)
class LaplaceQuantities:
    """Measures of Laplace's approximation; over several questions, the worst.

    Attributes
    ----------
    relative_gap, mode_stationarity, indefiniteness : float
        How far the mode may be from the optimum, as in `SmoothRiskQuantities`.
    variance_error : float
        Largest difference of latent variances at training rows, by the stored factors, from those
        by another decomposition; in units of the largest k(x, x).
    rows_judged : int
        At how many rows they were compared.
    log_likelihood : float
        The logarithm of the approximate evidence, by that other decomposition.
    likelihood_error : float
        Difference of the stored one from it, for one row and question on the average.
    stationarity : float
        Largest slope of the log-evidence of one row, by the logarithm of a parameter that was
        learnt, that does not point out of its bounds; zero where none was.
    at_lower, at_upper : int
        How many parameters that were learnt are at a bound.
    """

    relative_gap: float
    mode_stationarity: float
    indefiniteness: float
    variance_error: float
    rows_judged: int
    log_likelihood: float
    likelihood_error: float
    stationarity: float = 0.0
    at_lower: int = 0
    at_upper: int = 0


@certify.register
def _(
    problem: ProcessClassification, value: LaplacePosterior, tol: float | None = None
) -> Certificate:
    tol = _TOL if tol is None else tol
    modes = [certify(problem.risk(t), value.mode(t), tol) for t in range(problem.signs.shape[1])]
    with np.errstate(all="ignore"):  # judged by what comes of it
        q = _classification_measured(problem, value, modes)
    flat = 0.0 if problem.search is None else problem.search.flat
    exactly = q.variance_error <= tol and q.likelihood_error <= tol
    ok = all(mode.ok for mode in modes) and exactly and q.stationarity <= max(flat, tol)
    return Certificate(bool(ok), q, tol, _classification_statement(q, problem, modes))


def _classification_measured(
    problem: ProcessClassification, value: LaplacePosterior, modes: list[Certificate]
) -> LaplaceQuantities:
    n, c = problem.signs.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.intp))
    gram, compared = (
        exact(problem.gram),
        _compared if value.weights is None else _classification_by_features,
    )
    K = np.array(gram.dense(), dtype=np.float64) if value.weights is None else gram.factor
    apart, likelihood = 0.0, 0.0
    for t in range(c):
        error, found = compared(problem, value, K, t, rows)
        apart, likelihood = larger(apart, error), likelihood + found
    size = max(float(np.abs(gram.diag()).max(initial=0.0)), np.finfo(float).tiny)
    off = abs(likelihood - value.log_likelihood) / (observations(problem.row_weights) * c)
    steepest, at_lower, at_upper = _classification_flatness(problem.search, value.logs)
    found_modes = [mode.quantities for mode in modes]
    return LaplaceQuantities(
        max(q.relative_gap for q in found_modes),
        max(q.stationarity for q in found_modes),
        max(q.indefiniteness for q in found_modes),
        apart / size if np.isfinite(apart) else np.inf,
        len(rows),
        likelihood,
        float(off) if np.isfinite(off) else np.inf,
        steepest,
        at_lower,
        at_upper,
    )


def _compared(
    problem: ProcessClassification, value: LaplacePosterior, K: Array, t: int, rows: Array
) -> tuple[float, float]:
    """Return the largest difference of variances, and the evidence, by an LU decomposition."""
    a, s, sign = value.coef[:, t], problem.row_weights, problem.signs[:, t]
    f = K @ a
    W = s * expit(f) * expit(-f)
    A = K * W
    A.flat[:: len(A) + 1] += 1.0  # I + K W
    across = K[:, rows]
    solved, _, logarithm = solve_with_determinant(A, across)
    variance = solved[rows, np.arange(len(rows))]
    half = solved_by_factor(value.factors[t], value.roots[:, [t]] * across)
    stored = across[rows, np.arange(len(rows))] - np.einsum("ij,ij->j", half, half)
    likelihood = float(s @ log_expit(sign * f) - 0.5 * (a @ f) - 0.5 * logarithm)
    return float(np.abs(variance - stored).max(initial=0.0)), likelihood


def _classification_by_features(
    problem: ProcessClassification, value: LaplacePosterior, F: Any, t: int, rows: Array
) -> tuple[float, float]:
    """Return the same for K = F F', by a QR decomposition of the weighted features."""
    assert value.weights is not None
    w, s, sign = value.weights[:, t], problem.row_weights, problem.signs[:, t]
    f = np.asarray(F @ w)
    root = np.sqrt(s * expit(f) * expit(-f))
    R = triangle_of(F, root)
    phi = to_dense(F[rows]).T
    variance = np.sum(solved_by_factor(R, phi, lower=False, transposed=True) ** 2, axis=0)
    stored = np.sum(solved_by_factor(value.factors[t], phi) ** 2, axis=0)
    determinant = float(np.sum(np.log(np.abs(R.diagonal()))))
    likelihood = float(s @ log_expit(sign * f) - 0.5 * (w @ w)) - determinant
    error = float(np.abs(variance - stored).max(initial=0.0))
    # the curvature is stored beside its factor: it counts in units of the prior variance, too
    off = np.abs(value.roots[:, t] - root).max(initial=0.0) / max(
        float(root.max()), np.finfo(float).tiny
    )
    return larger(error, float(off) * float(np.sum(phi**2, axis=0).max())), likelihood


def _classification_flatness(
    search: LaplaceEvidence | None, logs: Array | None
) -> tuple[float, int, int]:
    """Return the largest slope that does not point out of the bounds, and how many are there."""
    if search is None or logs is None:
        return 0.0, 0, 0
    _, slopes = laplace_evidence(search, logs)
    unit = float(search.row_weights.sum()) * search.signs.shape[1]
    return steepest_slope(search, logs, slopes, unit)


def _classification_statement(
    q: LaplaceQuantities, problem: ProcessClassification, modes: list[Certificate]
) -> str:
    worst = next((mode for mode in modes if not mode.ok), modes[0])
    statement = (
        f"of the mode of the posterior {worst.statement}; variances of the Gaussian at "
        f"{q.rows_judged} rows are right to {q.variance_error:.1e} of the largest prior variance"
    )
    if problem.search is not None:
        statement += (
            f"; no parameter has a slope above {q.stationarity:.1e}, so the approximate evidence "
            "is at a local maximum or a saddle, not proved to be the largest"
        )
    return statement + "; that the posterior is near that Gaussian is Laplace's guess, not proved"


# --- triangular factors --------------------------------------------------------------------------
#
# Factors and solves of certificates: a singular triangle gives NaN, no error.


def solved_by_factor(
    L: Array, right: Array, *, lower: bool = True, transposed: bool = False
) -> Array:
    """Return L^-1 right, or L'^-1 right, of a triangle L; not a number where it is singular.

    Parameters
    ----------
    L : (n, n) array
        A triangle.
    right : (n,) or (n, k) array
        Right-hand sides.
    lower : bool
        Which triangle.
    transposed : bool
        Whether L' is meant.
    """
    try:
        return solve_triangular(L, right, lower, transposed)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)


def triangle_of(F: Any, roots: Array, start: Array | None = None) -> Array:
    """Return R with R'R = I + F'diag(roots)^2 F, block of rows by block: F'F is never formed.

    Parameters
    ----------
    F : (n, D) array or sparse array
        Features.
    roots : (n,) array
        Roots of the weights of the rows.
    start : (D, D) array, optional
        A triangle, whose start'start is there in place of I.
    """
    R = np.array(np.eye(F.shape[1]) if start is None else start, order="F")
    extend_triangle(R, F, roots)
    return R  # below the diagonal it was zero, and is not touched
