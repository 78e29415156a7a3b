"""Are these the discriminant directions? Scatters of all rows are made anew, block by block."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.certificates.base import Certificate, certify
from mercer.certificates.discriminant import DiscriminantQuantities
from mercer.problems import Directions
from mercer.problems.blocks.class_moments import BlockDiscriminant

_TOL = 1e-6
_TINY = float(np.finfo(np.float64).tiny)


@certify.register
def _(problem: BlockDiscriminant, value: Directions, tol: float | None = None) -> Certificate:
    tol = _TOL if tol is None else tol
    found = problem.moments()
    B, W = problem.between(found.means), value.weights
    assert W is not None
    A = found.within.copy()
    A.flat[:: len(A) + 1] += problem.penalty
    between = B @ (B.T @ W)
    left = np.linalg.norm(between - (A @ W) * value.values, axis=0).max()
    residual = float(left / max(float(np.linalg.norm(between[:, 0])), _TINY))
    off = float(np.abs(W.T @ A @ W - np.eye(W.shape[1])).max())
    inside = float(W[:, 0] @ found.within @ W[:, 0])
    apart = float(np.square(B.T @ W[:, 0]).sum())
    measured = DiscriminantQuantities(
        residual, off, apart / inside if inside > 0 else float("inf"), _gain(problem, A, B, value)
    )
    ok = all(q <= tol for q in (residual, off, measured.gain))
    statement = (
        f"{W.shape[1]} direction(s) solve the generalised eigenproblem with relative residual "
        f"{residual:.1e}, over all rows of the blocks; along the first, classes are "
        f"{measured.ratio:.3g} times as far apart as they are wide (squared)"
    )
    return Certificate(bool(ok), measured, tol, statement)


def _gain(problem: BlockDiscriminant, A: np.ndarray, B: np.ndarray, value: Directions) -> float:
    """Return by how much the best ratios of all directions exceed those given."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return float("inf")
    white = linalg.solve_triangular(L, B, lower=True, check_finite=False)
    best = np.square(np.linalg.svd(white, compute_uv=False))[: problem.count]
    claimed = np.zeros(len(best))
    given = np.sort(value.values)[::-1][: len(best)]
    claimed[: len(given)] = given
    return float((best - claimed).max(initial=0.0) / max(float(best.max(initial=0.0)), _TINY))
