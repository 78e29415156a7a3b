"""Triangles as certificates solve them: what is singular gives no numbers, and no error."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array


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
