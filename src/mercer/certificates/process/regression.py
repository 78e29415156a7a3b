"""Is the posterior right? Mean by its equations; variance and likelihood computed another way."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.lapack import interruptible
from mercer.certificates.base import Certificate, certify
from mercer.certificates.process.triangles import solved_by_factor
from mercer.gram import exact
from mercer.points import to_dense
from mercer.problems.process.evidence import Evidence, log_likelihood, observations
from mercer.problems.process.regression import ProcessPosterior, ProcessRegression
from mercer.solvers.process.evidence import evidence

_TOL = 1e-6
_SAME = 1e-9  # of the noise: what is stored and read again may differ by
_ROWS = 256  # whose variance is judged: each costs n^2


@dataclass(frozen=True)
class ProcessQuantities:
    """Measures of the posterior of a Gaussian process.

    Attributes
    ----------
    relative_residual : float
        Norm of what is left of (K + noise S^-1) a + b = y, over that of y.
    bias_condition, mismatch, indefiniteness : float
        As in `LinearSystemQuantities`.
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
        quantities = _measured(problem, value, mean)
    flat = 0.0 if problem.search is None else problem.search.flat
    ok = mean.ok and quantities.variance_error <= tol
    ok = ok and quantities.stationarity <= max(flat, tol)
    if np.isfinite(quantities.log_likelihood):  # else nothing is known to compare with
        ok = ok and quantities.likelihood_error <= max(tol, _likelihood_rounding(problem, value))
    return Certificate(bool(ok), quantities, tol, _statement(quantities, mean, problem, tol))


def _measured(
    problem: ProcessRegression, value: ProcessPosterior, mean: Certificate
) -> ProcessQuantities:
    n, t = problem.targets.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.intp))
    primal = value.weights is not None
    other = (_by_features if primal else _by_matrix)(problem, value, rows)
    likelihood = log_likelihood(
        other.squares, other.log_determinant, problem.row_weights, problem.noise, problem.bias, t
    )
    # a constant that is known to the noise of few rows only has a variance far above k(x, x)
    sizes = np.abs(np.concatenate([problem.gram.diag(), other.variance]))
    size = max(float(sizes.max(initial=0.0)), np.finfo(float).tiny)
    error = np.abs(other.stored - other.variance).max(initial=0.0) / size
    apart = abs(likelihood - value.log_likelihood) / (observations(problem.row_weights) * t)
    steepest, at_lower, at_upper, bound = _flatness(problem, value.logs)
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


def _by_features(problem: ProcessRegression, value: ProcessPosterior, rows: Array) -> _Other:
    """Compare with a QR decomposition of the weighted features."""
    s, noise, bias = problem.row_weights, problem.noise, problem.bias
    F = to_dense(problem.gram.factor)
    total = float(s.sum())
    centre = s @ F / total if bias else np.zeros(F.shape[1])
    middle = s @ problem.targets / total if bias else np.zeros(problem.targets.shape[1])
    G, root = F - centre, np.sqrt(s)[:, None]
    wide = np.vstack([root * G, np.sqrt(noise) * np.eye(F.shape[1])])
    R = interruptible(np.linalg.qr, wide, mode="r")
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


def _flatness(problem: ProcessRegression, logs: Array | None) -> tuple[float, int, int, float]:
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
    near = search.at_bounds(logs)
    unit = float(search.row_weights.sum()) * search.targets.shape[1]
    steepest = float(np.abs(search.uphill(near, -slopes)).max(initial=0.0)) / unit
    free = search.lower < search.upper
    at_lower = int(np.sum(free & (near <= search.lower)))
    at_upper = int(np.sum(free & (near >= search.upper)))
    return (steepest if np.isfinite(steepest) else np.inf), at_lower, at_upper, value


def _is_used(search: Evidence, logs: Array, noise: float) -> bool:
    """Return whether these are logarithms of the parameters, with the noise of the posterior."""
    if logs.shape != search.lower.shape or not np.isfinite(logs).all():
        return False
    return bool(abs(search.noise_at(logs) - noise) <= _SAME * noise)


def _statement(
    q: ProcessQuantities, mean: Certificate, problem: ProcessRegression, tol: float
) -> str:
    statement = (
        f"of the posterior mean {mean.statement}; variances at {q.rows_judged} rows are right to "
        f"{q.variance_error:.1e} of the largest variance"
    )
    if q.likelihood_error > tol:
        statement += f"; the log-likelihood of a row is known to {q.likelihood_error:.0e} only"
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
