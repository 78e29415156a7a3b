"""Are means and variances those of the rows of each class? From the rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.certificates.base import Certificate, certify
from mercer.problems.bayes.column_gaussians import ColumnGaussians, MeansAndVariances

_TOL = 1e-6


@dataclass(frozen=True)
class ColumnGaussiansQuantities:
    """Measures of means and variances against the rows.

    Attributes
    ----------
    mean_error : float
        Largest distance of a mean from that of the rows, in standard deviations.
    variance_error : float
        Largest relative distance of a variance from that of the rows, with the constant added.
    """

    mean_error: float
    variance_error: float


@certify.register
def _(problem: ColumnGaussians, value: MeansAndVariances, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    off, wide = [0.0], [0.0]
    for c in range(problem.classes):
        mine = (problem.codes == c) & (problem.weights > 0)
        if not mine.any():
            continue  # nothing is known of this class, and nothing is said of it
        rows, weights = problem.X[mine], problem.weights[mine] / problem.weights[mine].sum()
        with np.errstate(all="ignore"):  # what overflows is not certified
            mean = weights @ rows
            mean += weights @ (rows - mean)  # what rounding left
            variance = weights @ np.square(rows - mean) + problem.added
            steps = np.abs(value.mean[c] - mean) / np.sqrt(value.variance[c])
            ratios = np.abs(variance / value.variance[c] - 1.0)
        off.append(float(np.where(value.mean[c] == mean, 0.0, steps).max()))
        wide.append(float(np.where(value.variance[c] == variance, 0.0, ratios).max()))
    quantities = ColumnGaussiansQuantities(max(off), max(wide))
    ok = bool(np.max([*off, *wide]) <= tol)  # NaN is not
    statement = (
        f"means are those of the rows of each class within {quantities.mean_error:.1e} standard "
        f"deviations, variances within {quantities.variance_error:.1e} (relative)"
    )
    return Certificate(ok, quantities, tol, statement)
