"""Are these the most likely Gaussians? The slope of the likelihood in their own coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.problems.bayes.gaussian_classes import GaussianClasses, Spread

_TOL = 1e-6
_AT_FLOOR = 1 + 1e-9


@dataclass(frozen=True)
class GaussianClassesQuantities:
    """Measures of means and covariances.

    Attributes
    ----------
    mean_slope : float
        Largest distance of a mean from that of the rows, in standard deviations of the class.
    slope : float
        Largest entry of |E^-1/2 S E^-1/2 - I|, S the sample covariance: the slope of the
        likelihood along E. In directions at the floor only what calls for more variance counts.
    beyond_rounding : float
        The slope less what rounding of S alone can make of it, direction by direction.
    infeasibility : float
        How far axes are from orthonormal, and the largest share that a variance lacks of the floor.
    condition : float
        Largest ratio of eigenvalues of a covariance, in units of the columns.
    raised : int
        How many eigenvalues are at the floor.
    """

    mean_slope: float
    slope: float
    beyond_rounding: float
    infeasibility: float
    condition: float
    raised: int


@certify.register
def _(problem: GaussianClasses, value: Spread, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    held = (value.mean, value.scale, value.values, value.vectors)
    if not all(x is None or np.isfinite(x).all() for x in held):
        nothing = GaussianClassesQuantities(np.inf, np.inf, np.inf, np.inf, np.inf, 0)
        return Certificate(False, nothing, tol, "means or covariances are not finite")
    sample, _weight = problem.sample()
    steps = (value.mean - problem.filled().mean) / problem.scale()
    units = value.scale / problem.scale()
    judged = [_judged(one, *_axes(value, c, units), problem.floor) for c, one in enumerate(sample)]
    halves = [_half(*_axes(value, c, units)) for c in range(len(sample))]
    white = [_whitened(step, halves[min(c, len(halves) - 1)]) for c, step in enumerate(steps)]
    slope, beyond, infeasible = (max(each) for each in zip(*judged, strict=True))
    quantities = GaussianClassesQuantities(
        float(np.abs(white).max(initial=0.0)),
        slope,
        beyond,
        infeasible,
        float((value.values.max(axis=1) / value.values.min(axis=1)).max()),
        int(np.count_nonzero(value.values <= problem.floor * _AT_FLOOR)),
    )
    measured = [quantities.mean_slope, beyond, infeasible]
    ok = bool(np.isfinite([*measured, slope]).all()) and max(measured) <= tol
    shape = value.values.shape == (len(sample), value.mean.shape[1])
    statement = f"no change of a mean or a covariance is worth more than {quantities.slope:.1e}"
    if quantities.raised:
        statement += f"; {quantities.raised} variances were raised to the floor {problem.floor:.1e}"
    return Certificate(bool(ok and shape), quantities, tol, statement)


def _axes(value: Spread, c: int, units: Array) -> tuple[Array, Array | None]:
    """Return eigenvalues and axes of a covariance in the units of the problem."""
    if value.vectors is None:
        return value.values[c] * units**2, None
    if (units == 1.0).all():
        return value.values[c], value.vectors[c]
    left, root, _ = np.linalg.svd(units[:, None] * value.vectors[c] * np.sqrt(value.values[c]))
    return root**2, left


def _half(values: Array, vectors: Array | None) -> Array:
    """Return what makes rows white: a matrix, or its diagonal."""
    with np.errstate(divide="ignore"):
        width = 1.0 / np.sqrt(values)
    return width if vectors is None else vectors * width


def _whitened(step: Array, half: Array) -> Array:
    return step * half if half.ndim == 1 else step @ half


def _judged(
    sample: Array, values: Array, vectors: Array | None, floor: float
) -> tuple[float, float, float]:
    """Compare a covariance with the sample's, in coordinates in which the former is I."""
    half = _half(values, vectors)
    lacking = float(np.maximum(1.0 - values / floor, 0.0).max())
    if vectors is None:
        excess, largest, skew = np.diag(sample * half**2 - 1.0), sample.max(), 0.0
    else:
        excess, largest = half.T @ sample @ half - np.eye(len(values)), np.diagonal(sample).max()
        skew = float(np.abs(vectors.T @ vectors - np.eye(len(values))).max())
    size = np.abs(excess)
    diagonal = np.diagonal(excess)
    np.fill_diagonal(
        size, np.where(values <= floor * _AT_FLOOR, np.maximum(diagonal, 0), size.diagonal())
    )
    # S is known to rounding of its largest entries, which small variances magnify: an allowance,
    # beyond which slopes are judged; the whole slope is stated beside it
    width = 1.0 / np.sqrt(values)
    rounding = 64 * np.finfo(float).eps * max(float(largest), floor) * np.outer(width, width)
    beyond = float(np.maximum(size - rounding, 0.0).max())
    return float(size.max()), beyond, max(lacking, skew)
