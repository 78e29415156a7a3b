"""Leave-one-out in closed form: all rows and all penalties from one reduction of the matrix.

With C = K + p S^-1 and G = C^-1 (G - u u'/1'u with u = G 1, where there is a bias), the fit to all
rows but i is off by y_i - f(x_i) = (G y)_i / G_ii at that row. Rows of weight zero change no fit.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import Band, choose_backend
from mercer.selection.sharing.ridge.system import FoldAnswer

_WIDTH = 32
_CHUNK = 16  # penalties at a time
_EXACT = 1e-8  # of the targets: what the equations of all rows may leave


def leaves_one_out(splits: tuple[tuple[Array, Array], ...], n: int) -> bool:
    """Return whether each row is left out once, alone."""
    if len(splits) != n or any(len(test) != 1 or len(train) != n - 1 for train, test in splits):
        return False
    left = np.array([int(test[0]) for _, test in splits])
    if not np.array_equal(np.sort(left), np.arange(n)):
        return False
    whole = n * (n - 1) // 2
    return all(
        int(train.sum()) == whole - int(test[0]) and len(np.unique(train)) == n - 1
        for train, test in splits
    )


def left_out(K: Array, y: Array, weights: Array | None, bias: bool, penalties: Array) -> FoldAnswer:
    """Predict each row by the fit to all others, for every penalty.

    `values` of the answer has these predictions; a penalty is met where the equations of all rows
    are, to nearly all digits.
    """
    s = np.ones(len(y)) if weights is None else weights
    rows = np.flatnonzero(s > 0)
    root = np.sqrt(s[rows])
    m = len(rows)
    right = root[:, None] * np.column_stack([y[rows], np.ones(m)])
    A = np.ascontiguousarray(root[:, None] * K[np.ix_(rows, rows)] * root)
    band = choose_backend().band_reduce(A, min(_WIDTH, m))
    rotated = band.Qt @ right
    values = np.full((len(y), len(penalties)), np.nan)
    met = np.zeros(len(penalties), dtype=bool)
    for first in range(0, len(penalties), _CHUNK):
        chunk = penalties[first : first + _CHUNK]
        diagonals = choose_backend().band_inverse_diagonals(band, chunk)
        for k, penalty in enumerate(chunk.tolist(), first):
            solved = root[:, None] * _solve(band, penalty, rotated)
            a, G, b = solved[:, 0], s[rows] * diagonals[k - first], 0.0
            if bias:
                u = solved[:, 1]
                b = a.sum() / u.sum()
                a, G = a - b * u, G - u * (u / u.sum())
            full = np.zeros(len(y))
            full[rows] = a
            fit = K @ full + b
            values[:, k] = fit
            values[rows, k] = y[rows] - a / G
            off = y[rows] - fit[rows] - penalty * a / s[rows]
            met[k] = bool(
                np.isfinite(values[:, k]).all()
                and (G > 0).all()
                and np.linalg.norm(off) <= _EXACT * np.linalg.norm(y[rows])
            )
    return FoldAnswer(values, met)


def _solve(band: Band, penalty: float, rotated: Array) -> Array:
    """Return Q (B + p)^-1 Q' right; NaN where that is not positive definite."""
    lower = band.lower.T.copy()
    lower[0] += penalty
    try:
        factor = linalg.cholesky_banded(lower, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return np.full_like(rotated, np.nan)
    return np.asarray(
        band.Qt.T @ linalg.cho_solve_banded((factor, True), rotated, check_finite=False)
    )
