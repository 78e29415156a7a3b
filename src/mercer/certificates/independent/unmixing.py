"""Are these directions white, orthogonal, and a local maximum of the contrast? From the rows.

Whitened anew here. What is judged is the contrast: that a point has no slope and, where second
derivatives are few enough, no way up. A local maximum is all that is proved: another start may lead
to a higher one, and variables that are far from Gaussian need not be independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np

from mercer.array_types import Array
from mercer.certificates.base import Certificate, certify
from mercer.certificates.norms import larger
from mercer.points import is_sparse, to_dense
from mercer.problems import IndependentComponents, Unmixing
from mercer.problems.independent.unmixing import (
    joint_curvature,
    joint_moments,
    single_curvature,
    single_moments,
    tangent_basis,
)
from mercer.resources import require_memory

_TOL = 1e-6
_WHITE = 1e-6  # of variances: sums over rows far from the origin leave so much
_RISING = 1e-5  # second derivatives below may be rounding, or a slope that is below tol
_PAIRS = 780  # angles whose second derivatives are a matrix to decompose
_COPIES = 4  # of the rows: centred, white, and their products


@dataclass(frozen=True)
class UnmixingQuantities:
    """Measures of directions that are far from Gaussian.

    Attributes
    ----------
    whiteness : float
        How far means are from 0, variances from 1 and covariances from 0, at most.
    outside : float
        What is left of the directions, in white coordinates, beside the principal components they
        are sought among: as a share of variance.
    slope : float
        Largest derivative of the contrast by an angle.
    curvature : float
        Largest second derivative; not above zero at a local maximum. NaN where there are too many.
    contrast : float
        Sum over directions of |E G(y) - E G(gaussian)|.
    """

    whiteness: float
    outside: float
    slope: float
    curvature: float
    contrast: float


@certify.register
def _(problem: IndependentComponents, value: Unmixing, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    d = problem.rows.shape[1]
    if value.components.shape != (problem.count, d) or value.mean.shape != (d,):
        nothing = UnmixingQuantities(inf, inf, inf, nan, 0.0)
        return Certificate(False, nothing, tol, "no directions of the shape asked for")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = _measure(problem, value)
    white = found.whiteness <= _WHITE and found.outside <= _WHITE
    still = found.slope <= tol
    top = not found.curvature > _RISING
    return Certificate(bool(white and still and top), found, tol, _statement(found, tol))


def _statement(found: UnmixingQuantities, tol: float) -> str:
    if not (found.whiteness <= _WHITE and found.outside <= _WHITE):
        return (
            f"the variables are not white, or not of the space they are sought in: off by "
            f"{max(found.whiteness, found.outside):.1e}"
        )
    start = f"the variables are white within {found.whiteness:.0e}, and the contrast "
    if not found.slope <= tol:
        return start + f"still rises: its slope is {found.slope:.1e}"
    if found.curvature > _RISING:
        return start + "has no slope, but is no maximum: it rises when directions are turned"
    kind = "is stationary" if np.isnan(found.curvature) else "has a local maximum"
    return (
        f"{start}{kind} (slope {found.slope:.1e}). Another start may lead to a higher one; that "
        "the variables are independent is not proved"
    )


def _measure(problem: IndependentComponents, value: Unmixing) -> UnmixingQuantities:
    n, d = problem.rows.shape
    what = f"judging directions of {n} rows of {d} columns"
    require_memory(8 * _COPIES * n * d, what, "Fit to fewer rows, or columns.")
    share = problem.share
    X, W, mean = _in_units(problem, value)
    X = X - mean
    Y = X @ W.T
    means = share @ Y
    covariance = (share[:, None] * Y).T @ Y
    whiteness = float(np.abs(covariance - np.eye(len(W))).max())
    whiteness = larger(whiteness, float(np.abs(means).max()))
    if not np.isfinite(whiteness):
        return UnmixingQuantities(inf, inf, inf, nan, 0.0)
    axes, lengths = _principal(X - share @ X, share)
    if problem.count == problem.space:
        held = float(np.square((share[:, None] * X).T @ Y).sum())  # the variance of the space
        most = float(np.square(lengths[: problem.space]).sum())
        outside, Z, B = max(1.0 - held / most, 0.0) if most > 0 else inf, Y, np.eye(len(W))
    else:
        Z = X @ (axes[:, : problem.space] / lengths[: problem.space])
        B = (share[:, None] * Y).T @ Z
        outside = float(np.abs(B @ B.T - np.eye(len(B))).max())
    slope, curvature, contrast = (_together if problem.joint else _each)(problem, Z, B)
    return UnmixingQuantities(whiteness, outside, slope, curvature, contrast)


def _in_units(problem: IndependentComponents, value: Unmixing) -> tuple[Array, Array, Array]:
    """Return rows, components and mean in a unit, a power of two, of the size of the rows."""
    X = to_dense(problem.rows) if is_sparse(problem.rows) else problem.rows
    largest = float(np.abs(X).max(initial=0.0))
    unit = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0
    return X.astype(np.float64) / unit, value.components * unit, value.mean / unit


def _principal(X: Array, share: Array) -> tuple[Array, Array]:
    """Return principal axes, (d, r), and the standard deviations along them, largest first."""
    rows = np.sqrt(share)[:, None] * X
    if X.shape[0] > X.shape[1]:
        rows = np.asarray(np.linalg.qr(rows, mode="r"))
    _, lengths, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(axes.T), np.asarray(lengths)


def _together(problem: IndependentComponents, Z: Array, B: Array) -> tuple[float, float, float]:
    Y, share, contrast = Z @ B.T, problem.share, problem.contrast
    at = joint_moments(Y, share, contrast)
    k = len(B)
    curvature = nan
    if k * (k - 1) // 2 <= _PAIRS:
        found = joint_curvature(Y, share, contrast, at)
        curvature = _largest(found)
    return float(np.abs(at.slope).max(initial=0.0)), curvature, float(np.abs(at.excess).sum())


def _each(problem: IndependentComponents, Z: Array, B: Array) -> tuple[float, float, float]:
    """Judge one direction after another, in what those before leave."""
    share, contrast = problem.share, problem.contrast
    slope, curvature, total = 0.0, -inf, 0.0
    left = np.eye(B.shape[1])
    for i, b in enumerate(B):
        here, rows = left.T @ b, Z @ left
        at = single_moments(rows, here, share, contrast)
        slope = larger(slope, float(np.abs(at.slope(here)).max(initial=0.0)))
        if len(here) > 1:
            curvature = max(curvature, _largest(single_curvature(rows, here, share, contrast, at)))
        total += abs(at.excess)
        left = tangent_basis(np.linalg.qr(B[: i + 1].T)[0])
    return slope, 0.0 if curvature == -inf else curvature, total


def _largest(symmetric: Array) -> float:
    return float(np.linalg.eigvalsh(symmetric)[-1]) if symmetric.size else 0.0
