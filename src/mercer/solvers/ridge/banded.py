"""Systems with a band plus a penalty: what a matrix that was reduced to a band is solved by."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mercer.array_types import Array
from mercer.backends import Band


def solve_band(band: Band, penalty: float, rotated: Array) -> Array:
    """Return (B + p)^-1 times columns that Q' has turned; NaN where B + p is not definite."""
    lower = band.lower.T.copy(order="F")
    lower[0] += penalty
    _, solved, info = lapack.dpbsv(lower, rotated, lower=1, overwrite_ab=1)
    return np.asarray(solved) if info == 0 else np.full_like(rotated, np.nan)
