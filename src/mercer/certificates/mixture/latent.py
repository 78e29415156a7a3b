"""Is this plane the most likely one? Its likelihood, the slope of it, the optimum if known.

The slope is judged beside the likelihood, which is flat at its top: parameters that are wrong by
a hundredth lower it by a ten-thousandth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, nan, pi

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.points import is_sparse, row_count, to_dense
from mercer.problems.mixture.latent import LatentGaussian, Plane
from mercer.problems.mixture.latent_moments import moments

_TOL = 1e-5
_SMALL = 1500  # rows or columns: up to here all variances are found in a moment
_FALL = 1e-10  # of a log-likelihood that is only rounding


@dataclass(frozen=True)
class LatentQuantities:
    """Measures of a plane.

    Attributes
    ----------
    log_likelihood : float
        Mean over rows of the log-density of what was observed.
    slope : float
        Largest derivative of it, by a loading, an entry of the mean (both in standard deviations of
        the column) or the logarithm of the noise variance.
    shortfall : float
        How far it is below the largest possible value; NaN where entries are missing, or rows and
        columns are both many.
    largest_fall : float
        Largest relative fall of the likelihood between two steps on the way.
    """

    log_likelihood: float
    slope: float
    shortfall: float
    largest_fall: float


@certify.register
def _(problem: LatentGaussian, value: Plane, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    shaped = value.loadings.shape == (problem.X.shape[1], problem.count)
    if not shaped or not (np.isfinite(value.noise) and value.noise > 0):
        nothing = LatentQuantities(-inf, inf, inf, inf)
        return Certificate(False, nothing, tol, "no plane with noise of the shape asked for")
    total = float(problem.weights.sum())
    sums = moments(problem, value)
    mean = sums.log_likelihood / total
    quantities = LatentQuantities(
        mean,
        sums.slope(value, problem.floor, total),
        _best(problem) - mean,
        _largest_fall(value.likelihoods),
    )
    optimal = not quantities.shortfall > tol * max(1.0, abs(mean))
    ok = (
        value.noise >= problem.floor * (1 - 1e-9)
        and quantities.slope <= max(tol, _rounding(value))
        and optimal
        and quantities.largest_fall <= _FALL
    )
    below = max(quantities.shortfall, 0.0)
    known = "" if np.isnan(quantities.shortfall) else f", {below:.1e} below the best"
    statement = f"mean log-likelihood {mean:.6g}, no derivative above {quantities.slope:.1e}{known}"
    return Certificate(bool(ok), quantities, tol, statement)


def _rounding(value: Plane) -> float:
    """Estimate what rounding makes of the slope: sums of squares, over the noise.

    An allowance, so that a slope that is zero but for rounding passes; the slope itself is stated.
    """
    d, q = value.loadings.shape
    widest = float(np.square(value.loadings).sum(axis=1).max(initial=0.0)) + value.noise
    return float(4 * (d + q + 8) * np.finfo(float).eps * widest / value.noise)


def _best(problem: LatentGaussian) -> float:
    """Return the largest mean log-likelihood, in closed form, for rows without missing entries."""
    X, (n, d), q = problem.X, (row_count(problem.X), problem.X.shape[1]), problem.count
    if min(n, d) > _SMALL or (not is_sparse(X) and bool(np.isnan(X).any())):
        return nan
    share = problem.weights / problem.weights.sum()
    rows = to_dense(X)
    rows = (rows - share @ rows) * np.sqrt(share)[:, None]
    small = rows.T @ rows if d <= n else rows @ rows.T
    variances = np.zeros(d)
    found = np.maximum(np.linalg.eigvalsh(small)[::-1], 0.0)[:d]
    variances[: len(found)] = found
    return _largest(variances, q, problem.floor)


def _largest(variances: Array, q: int, floor: float) -> float:
    d, left = len(variances), variances[q:]
    noise = max(float(left.mean()) if len(left) else 0.0, floor)
    top = np.maximum(variances[:q], noise)
    misfit = float((variances[:q] / top).sum() + left.sum() / noise)
    volume = float(np.log(top).sum()) + (d - len(top)) * log(noise)
    return -0.5 * (d * log(2.0 * pi) + volume + misfit)


def _largest_fall(likelihoods: Array | None) -> float:
    if likelihoods is None or len(likelihoods) < 2:
        return 0.0
    falls = likelihoods[:-1] - likelihoods[1:]
    return max(0.0, float((falls / np.maximum(np.abs(likelihoods[:-1]), 1.0)).max()))
