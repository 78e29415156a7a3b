"""Matrices that walks go along: what they take, and whether a walk on them has one end."""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.gram.build import box_bytes

_LOOKED_AT = 1000  # rows of a given matrix, to tell whether it is positive
_ROUNDED = 1e-5  # of its largest entry: eigenvalues that rounding to float32 may have made


def of_matrix(n: int, entry: float) -> float:
    """Return the bytes of a matrix between n rows, with what a descent copies of it."""
    return float(box_bytes(n, n, np.dtype(f"f{int(entry)}")))


def of_answers(n: int, classes: int, judged: int) -> float:
    """Return the bytes of coefficients, gradients and sums of one setting, over all class pairs."""
    programmes = max(1, classes * (classes - 1) // 2)
    return 16.0 * classes * n + 24.0 * programmes * judged


def indefinite(K: Array) -> bool:
    """Return whether a given matrix, by some of its rows, has several lowest points.

    Which of them a descent ends at depends on where it starts: only fits end where fits do.
    """
    some = np.arange(0, len(K), max(1, -(-len(K) // _LOOKED_AT)))
    part = np.array(K[np.ix_(some, some)], dtype=np.float64)
    part.flat[:: len(part) + 1] += _ROUNDED * np.abs(part).max(initial=np.finfo(float).tiny)
    try:
        np.linalg.cholesky(part)
    except np.linalg.LinAlgError:
        return True
    return False
