"""Is it the mode, and the curvature there? A duality gap; variance and evidence another way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from mercer.array_types import Array
from mercer.backends.lapack import interruptible, solved_if_regular
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import larger
from mercer.certificates.process.triangles import solved_by_factor, triangle_of
from mercer.gram import exact
from mercer.points import to_dense
from mercer.problems.process.classification import (
    LaplaceEvidence,
    LaplacePosterior,
    ProcessClassification,
)
from mercer.problems.process.evidence import observations
from mercer.solvers.process.laplace import laplace_evidence

_TOL = 1e-6
_ROWS = 256  # whose variance is judged: each costs n^2


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
        q = _measured(problem, value, modes)
    flat = 0.0 if problem.search is None else problem.search.flat
    exactly = q.variance_error <= tol and q.likelihood_error <= tol
    ok = all(mode.ok for mode in modes) and exactly and q.stationarity <= max(flat, tol)
    return Certificate(bool(ok), q, tol, _statement(q, problem, modes))


def _measured(
    problem: ProcessClassification, value: LaplacePosterior, modes: list[Certificate]
) -> LaplaceQuantities:
    n, c = problem.signs.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.intp))
    gram, compared = exact(problem.gram), _compared if value.weights is None else _by_features
    K = np.array(gram.dense(), dtype=np.float64) if value.weights is None else gram.factor
    apart, likelihood = 0.0, 0.0
    for t in range(c):
        error, found = compared(problem, value, K, t, rows)
        apart, likelihood = larger(apart, error), likelihood + found
    size = max(float(np.abs(gram.diag()).max(initial=0.0)), np.finfo(float).tiny)
    off = abs(likelihood - value.log_likelihood) / (observations(problem.row_weights) * c)
    steepest, at_lower, at_upper = _flatness(problem.search, value.logs)
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
    variance = solved_if_regular(A, across)[rows, np.arange(len(rows))]
    half = solved_by_factor(value.factors[t], value.roots[:, [t]] * across)
    stored = across[rows, np.arange(len(rows))] - np.einsum("ij,ij->j", half, half)
    determinant = interruptible(np.linalg.slogdet, A)
    likelihood = float(s @ log_expit(sign * f) - 0.5 * (a @ f) - 0.5 * determinant[1])
    return float(np.abs(variance - stored).max(initial=0.0)), likelihood


def _by_features(
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


def _flatness(search: LaplaceEvidence | None, logs: Array | None) -> tuple[float, int, int]:
    """Return the largest slope that does not point out of the bounds, and how many are there."""
    if search is None or logs is None:
        return 0.0, 0, 0
    _, slopes = laplace_evidence(search, logs)
    near = search.at_bounds(logs)
    unit = float(search.row_weights.sum()) * search.signs.shape[1]
    steepest = float(np.abs(search.uphill(near, -slopes)).max(initial=0.0)) / unit
    free = search.lower < search.upper
    at_lower = int(np.sum(free & (near <= search.lower)))
    at_upper = int(np.sum(free & (near >= search.upper)))
    return (steepest if np.isfinite(steepest) else np.inf), at_lower, at_upper


def _statement(
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
