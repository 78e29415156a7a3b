"""What the solvers of `Discriminant` share: from (S_W + penalty)^-1 to the best directions."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.problems import Discriminant

GOOD = 1e-6  # residual that the certificate asks for
_ROUNDING = 1e-13  # relative: class means this close are equal but for rounding
_EPS = float(np.finfo(np.float64).eps)
_ENTRY = 8.0  # times the rounding of an entry: less scatter than that is none
_MARGIN = 32.0


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
    rank = int((apart > _least_distance(apart, size)).sum())
    if rank == 0:
        raise EqualMeansError(
            "the classes have equal means in feature space, so that no direction tells them apart; "
            "use a kernel in whose space they differ, such as Gaussian or Polynomial"
        )
    return rank


def is_negative(apart: Array, size: float) -> bool:
    """Return whether a squared distance between means is negative beyond rounding: K is no kernel.

    Parameters
    ----------
    apart : (classes,) array
        Squared distances.
    size : float
        The squared length of rows.
    """
    return bool((apart < -_least_distance(apart, size)).any())


def _least_distance(apart: Array, size: float) -> float:
    return _ROUNDING * max(size, float(np.abs(apart).max(initial=0.0)))


def best_pairs(M: Array, count: int) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors, largest first."""
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    order = np.argsort(-values, kind="stable")[:count]
    order = order[values[order] > 0]
    return values[order], vectors[:, order]


def has_lost_pivots(L: Array, diagonal: Array, largest: Array) -> bool:
    """Return whether the factor of a scatter holds rounding in place of a column.

    Of a column that depends on the D - 1 others, rounding leaves a pivot of gamma times its
    diagonal entry, gamma = O(D eps): that of a factor (Higham, theorem 10.3) and of scatters, which
    are sums by blocks. Pivots up to 2.3 D eps were seen (50 to 50,000 rows), so a limit of D eps is
    met by chance. It is 32 D eps, far from both: features that are told apart by less than that
    have no digits of a direction without a penalty. What is below _ENTRY times the rounding of
    entries is a constant far from zero.

    Parameters
    ----------
    L : (D, D) array
        The factor, in the lower triangle.
    diagonal : (D,) array
        The diagonal of the scatter plus the penalty.
    largest : (D,) array
        The largest entry of each column of features.
    """
    least = np.maximum(_MARGIN * len(L) * _EPS * diagonal, np.square(_ENTRY * _EPS * largest))
    return bool((np.square(L.diagonal()) <= least).any())


def row_size(problem: Discriminant) -> float:
    """Return the weighted mean of |k(x, x)|: of an indefinite K the diagonal may be negative."""
    share = problem.row_weights / problem.row_weights.sum()
    return float(share @ np.abs(problem.gram.diag()))


NOT_DEFINITE = (
    "the scatter within classes plus the penalty is not positive definite to working precision: "
    "use a larger penalty, or a valid kernel (mercer.kernels.is_valid tells)"
)
