"""Are these the most likely Gaussians? The slope of the likelihood in their own coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.certificates.base import Certificate, certify
from mercer.problems.gaussian_classes import GaussianClasses, Spread

_TOL = 1e-6
_AT_FLOOR = 1 + 1e-9


@dataclass(frozen=True)
class GaussianClassesQuantities:
    """Measures of means and covariances.

    Attributes
    ----------
    mean_slope : float
        Largest distance of a mean from that of the rows, in standard deviations of the column.
    slope : float
        Largest entry of |E^-1/2 S E^-1/2 - I|, S the sample covariance: the slope of the
        likelihood along E. In directions at the floor only what calls for more variance counts.
    condition : float
        Largest ratio of eigenvalues of a covariance, in units of the columns.
    raised : int
        How many eigenvalues are at the floor.
    """

    mean_slope: float
    slope: float
    condition: float
    raised: int


@certify.register
def _(problem: GaussianClasses, value: Spread, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    scale, held = problem.scale(), problem.filled()
    sample, _weight = problem.sample()
    ratio = value.scale / scale
    low = problem.floor * _AT_FLOOR
    slopes = [
        _slope(
            one, value.values[c], None if value.vectors is None else value.vectors[c], ratio, low
        )
        for c, one in enumerate(sample)
    ]
    quantities = GaussianClassesQuantities(
        float(np.abs((value.mean - held.mean) / scale).max(initial=0.0)),
        max(slopes),
        float((value.values.max(axis=1) / value.values.min(axis=1)).max()),
        int(np.count_nonzero(value.values <= low)),
    )
    # eigenvectors of a product of D and V are only as good as rounding over the eigenvalue lets
    rounding = 64 * np.finfo(float).eps * quantities.condition
    ok = quantities.mean_slope <= tol and quantities.slope <= max(tol, rounding)
    shape = value.values.shape == (len(sample), held.mean.shape[1])
    statement = f"no change of a mean or a covariance is worth more than {quantities.slope:.1e}"
    if quantities.raised:
        statement += f"; {quantities.raised} variances were raised to the floor {problem.floor:.1e}"
    return Certificate(bool(ok and shape), quantities, tol, statement)


def _slope(sample: Array, values: Array, vectors: Array | None, ratio: Array, low: float) -> float:
    """Compare a covariance with the sample's, in coordinates in which the former is I."""
    if vectors is None:
        excess = sample / (values * ratio**2) - 1.0
        return float(np.where(values <= low, np.maximum(excess, 0.0), np.abs(excess)).max())
    half = vectors / ratio[:, None] / np.sqrt(values)
    excess = half.T @ sample @ half - np.eye(len(values))
    diagonal = np.diagonal(excess).copy()
    np.fill_diagonal(excess, 0.0)
    diagonal = np.where(values <= low, np.maximum(diagonal, 0.0), np.abs(diagonal))
    return max(float(np.abs(excess).max()), float(diagonal.max()))
