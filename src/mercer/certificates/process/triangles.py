"""Triangles as certificates make and solve them: what is singular gives no numbers, no error."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends.lapack import interruptible
from mercer.points import to_dense

_ROWS = 4  # times the features: rows that one QR decomposition takes in


def solved_by_factor(
    L: Array, right: Array, *, lower: bool = True, transposed: bool = False
) -> Array:
    """Return L^-1 right, or L'^-1 right, of a triangle L; not a number where it is singular.

    Parameters
    ----------
    L : (n, n) array
        A triangle.
    right : (n,) or (n, k) array
        Right-hand sides.
    lower : bool
        Which triangle.
    transposed : bool
        Whether L' is meant.
    """
    trans: Any = int(transposed)
    try:
        found = linalg.solve_triangular(L, right, lower=lower, trans=trans, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)
    return np.asarray(found)


def triangle_of(F: Any, roots: Array, start: Array | None = None) -> Array:
    """Return R with R'R = I + F'diag(roots)^2 F, block of rows by block: F'F is never formed.

    Parameters
    ----------
    F : (n, D) array or sparse array
        Features.
    roots : (n,) array
        Roots of the weights of the rows.
    start : (D, D) array, optional
        A triangle, whose start'start is there in place of I.
    """
    R, step = np.eye(F.shape[1]) if start is None else start, max(_ROWS * F.shape[1], 1)
    for first in range(0, F.shape[0], step):
        some = slice(first, first + step)
        block = np.vstack([R, roots[some, None] * to_dense(F[some])])
        R = interruptible(np.linalg.qr, block, mode="r")
    return np.asarray(R)
