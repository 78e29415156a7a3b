"""Cholesky factors by panels: between two of them, Ctrl-C is heard, and a deadline kept.

One LAPACK call on the whole matrix would be as short, but SciPy's holds the interpreter's lock to
its end, however many minutes that takes.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer import deadline
from mercer.array_types import Array

_PANEL = 128


def cholesky_in_place(A: Array) -> int:
    """Factor the C-ordered A = L L' into its lower triangle; the part above is kept.

    Returns 0, or the one-based order of the first leading minor that is not positive.
    """
    for first in range(0, len(A), _PANEL):
        deadline.check()
        last = min(first + _PANEL, len(A))
        done, block = A[first:last, :first], A[first:last, first:last]
        factor, info = linalg.lapack.dpotrf(block - done @ done.T, lower=1, clean=0)
        lower = np.tril_indices(last - first)
        block[lower] = factor[lower]
        if info:
            return first + int(info)
        below = A[last:, first:last]
        below -= A[last:, :first] @ done.T
        below[:] = linalg.solve_triangular(factor, below.T, lower=True, check_finite=False).T
    return 0
