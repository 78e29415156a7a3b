"""What the solvers of `Discriminant` share: from (S_W + penalty)^-1 to the best directions."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.problems import Discriminant

GOOD = 1e-6  # residual that the certificate asks for
_ROUNDING = 1e-13  # relative: class means this close are equal but for rounding


class EqualMeansError(ValueError):
    """The means of all classes coincide: there is no direction to find."""


def rank_of(apart: Array, size: float) -> int:
    """Count the directions between class means.

    Parameters
    ----------
    apart : (classes,) array
        How far apart they are along each: singular values, or their squares.
    size : float
        The length of rows, or its square: the means carry the rounding of that.
    """
    rank = int((apart > _ROUNDING * max(size, float(apart.max(initial=0.0)))).sum())
    if rank == 0:
        raise EqualMeansError(
            "the classes have equal means in feature space, so that no direction tells them apart; "
            "use a kernel in whose space they differ, such as Gaussian or Polynomial"
        )
    return rank


def best_pairs(M: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors, largest first."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    order = np.argsort(-values, kind="stable")[:count]
    order = order[values[order] > 0]
    return values[order], vectors[:, order]


def row_size(problem: Discriminant) -> float:
    """Return the weighted mean of k(x, x)."""
    share = problem.row_weights / problem.row_weights.sum()
    return float(share @ problem.gram.diag())


NOT_DEFINITE = (
    "the scatter within classes plus the penalty is not positive definite to working precision: "
    "use a larger penalty, or a valid kernel (mercer.kernels.is_valid tells)"
)
