"""What a few labels leave open: the posterior variance of a function, which needs no labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.points import row_count


def posterior_variance(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return v(x) = k(x, x) - k(x, L) (K_LL + noise I)^-1 k(L, x) for rows x and labelled rows L.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to judge.
    noise : float
        Variance of the noise of labels, in units of the kernel; not negative.

    Returns
    -------
    (n,) array
        Variances, none negative.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> posterior_variance(Gaussian(1.0), np.array([[0.0]]), np.array([[0.0], [9.0]]), 1.0)
    array([0.5, 1. ])
    """
    prior = np.asarray(kernel.diag(rows), dtype=np.float64)
    if row_count(labelled) == 0:
        return prior
    half = _half(kernel, labelled, rows, noise)
    return np.asarray(np.maximum(prior - np.sum(half**2, axis=0), 0.0))


def expected_change(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return how far a label at each row is expected to move the ridge solution f, in its norm.

    With g = k(x, .) - k(x, L) (K_LL + noise I)^-1 k(L, .) a label y at x changes f by
    g (y - f(x)) / (noise + v(x)), and y - f(x) ~ N(0, noise + v(x)) has the mean magnitude
    sqrt(2 / pi) of its standard deviation.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to judge.
    noise : float
        Penalty of the ridge, above zero.

    Returns
    -------
    (n,) array
        Expected norms.
    """
    prior = np.asarray(kernel.diag(rows), dtype=np.float64)
    variance, squared = prior, prior
    if row_count(labelled):
        cross = np.asarray(kernel(labelled, rows), dtype=np.float64)
        K = np.asarray(kernel(labelled), dtype=np.float64)
        weights = cho_solve(_factor(K, noise), cross)
        variance = np.maximum(prior - np.sum(cross * weights, axis=0), 0.0)
        # |g|^2 = k(x, x) - 2 a'k + a'K a with a = (K + noise I)^-1 k, and a'K a = a'k - noise a'a
        squared = np.maximum(variance - noise * np.sum(weights**2, axis=0), 0.0)
    return np.asarray(np.sqrt(2.0 / np.pi * squared / np.maximum(variance + noise, 1e-300)))


def most_open(kernel: Kernel, labelled: Any, rows: Any, noise: float, count: int) -> Array:
    """Return the places of rows of largest variance, each after those before it are labelled too.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    labelled : rows
        Rows whose labels are known; may be none.
    rows : rows
        Rows to choose from.
    noise : float
        Variance of the noise of labels.
    count : int
        How many to choose.
    """
    variance = posterior_variance(kernel, labelled, rows, noise)
    half = np.empty((0, len(variance)))
    if row_count(labelled):
        half = _half(kernel, labelled, rows, noise)
    chosen: list[int] = []
    for _ in range(count):
        open_ = variance.copy()
        open_[chosen] = -np.inf
        best = int(np.argmax(open_))
        chosen.append(best)
        one = np.asarray(kernel(rows[best : best + 1], rows), dtype=np.float64)[0]
        row = (one - half[:, best] @ half) / np.sqrt(max(variance[best] + noise, 1e-300))
        half = np.vstack([half, row])
        variance = np.maximum(variance - row**2, 0.0)
    return np.array(chosen, dtype=np.intp)


def _factor(K: Array, noise: float) -> Any:
    shifted = K + noise * np.eye(len(K))
    try:
        return cho_factor(shifted, lower=True)
    except LinAlgError:  # rows that are equal, and no noise: as little as rounding sees
        tiny = 1e-10 * float(np.trace(K)) / len(K)
        return cho_factor(shifted + max(tiny, 1e-300) * np.eye(len(K)), lower=True)


def _half(kernel: Kernel, labelled: Any, rows: Any, noise: float) -> Array:
    """Return L^-1 k(labelled, rows) with L L' = K_LL + noise I."""
    lower = _factor(np.asarray(kernel(labelled), dtype=np.float64), noise)[0]
    cross = np.asarray(kernel(labelled, rows), dtype=np.float64)
    return np.asarray(solve_triangular(lower, cross, lower=True))
