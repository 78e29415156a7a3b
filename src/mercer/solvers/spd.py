"""Positive definite systems that are nearly singular: scaled, and made definite where they must."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend


def factor_spd(H: Array) -> Callable[[Array], Array]:
    """Factor a positive definite system, scaled to a unit diagonal, with one refinement."""
    scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), np.finfo(float).tiny))
    S = H * scale * scale[:, None]
    jitter, info = 0.0, 1
    while info and jitter <= 1.0:
        L = S.copy()
        L.flat[:: len(L) + 1] += jitter
        info = choose_backend().cholesky(L)
        jitter = 1e-15 if not jitter else 10.0 * jitter
    factor = (L.T, False)

    def solve(right: Array) -> Array:
        r = scale * right
        y = linalg.cho_solve(factor, r, check_finite=False)
        y = y + linalg.cho_solve(factor, r - S @ y, check_finite=False)
        return np.asarray(scale * y)

    return solve
