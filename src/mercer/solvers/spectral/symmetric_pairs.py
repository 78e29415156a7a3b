"""The largest eigenpairs of a stored symmetric matrix by LAPACK, counted and looked at.

Asked for some pairs only, LAPACK's bisection may return fewer, none, or vectors that are not
orthonormal where eigenvalues agree to rounding (K near the identity), and says nothing. So what it
returns is checked by residuals and orthonormality; all pairs are found instead where that fails.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend

_SUBSET = 1000  # rows: up to here a call that Ctrl-C has to wait for is short
_ROUNDING = 1e-13  # times the rows: residuals over the norm of A, and |V'V - I|, of sound pairs


def largest_pairs(A: Array, k: int) -> tuple[Array, Array, bool]:
    """Find the k largest eigenvalues of a finite A, largest first, and their vectors.

    Returns
    -------
    values : (k,) array
        The eigenvalues.
    vectors : (n, k) array
        Their vectors.
    sound : bool
        Whether residuals and orthonormality are those of rounding.
    """
    n = len(A)
    if n <= _SUBSET and 4 * k <= n:
        found = _subset(A, k)
        if found is not None and _sound(A, *found):
            return found[0], found[1], True
    try:
        values, vectors = choose_backend().eigh(A)
    except np.linalg.LinAlgError:  # divide and conquer gave up; QR steps do not
        values, vectors = linalg.eigh(A, driver="ev", check_finite=False)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return values, vectors, _sound(A, values, vectors)


def _subset(A: Array, k: int) -> tuple[Array, Array] | None:
    """Ask LAPACK for k pairs; None if it does not return that many."""
    n = len(A)
    try:
        values, vectors = linalg.eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return (values[::-1], vectors[:, ::-1]) if len(values) == k else None


def _sound(A: Array, values: Array, vectors: Array) -> bool:
    allowed = _ROUNDING * max(len(A), 1)
    size = float(np.abs(A).max(initial=0.0)) * len(A)  # at least the norm
    left = np.abs(A @ vectors - vectors * values).max(initial=0.0)
    overlap = np.abs(vectors.T @ vectors - np.eye(len(values))).max(initial=0.0)
    return bool(left <= allowed * size and overlap <= allowed)
