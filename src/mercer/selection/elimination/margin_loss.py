"""What |w|^2 loses without a feature, the coefficients being kept.

f = sum_i a_i k(x_i, .) has |w|^2 = a'Ka. Guyon, Weston, Barnhill and Vapnik (Gene selection for
cancer classification using support vector machines, Machine Learning 46 (2002)) rank a feature by
|a'Ka - a'K(-p)a| / 2, where K(-p) is the matrix of rows without it. For the linear kernel that is
half of w_p^2.
"""

from __future__ import annotations

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.kernels import Kernel, Linear


def margin_losses(kernel: Kernel, X: Array, coef: Array) -> Array:
    """Return the change of |w|^2 / 2 without each column, summed over functions.

    Parameters
    ----------
    kernel : Kernel
        What similarity is.
    X : (n, d) array
        Rows.
    coef : (n, k) array
        Coefficients of k functions.

    Returns
    -------
    (d,) array
        At least zero. A column is left out by making all its entries zero, which no kernel of
        distances or products can see.
    """
    if isinstance(kernel, Linear):
        return np.asarray(np.square(X.T @ coef).sum(axis=1) / 2)
    rows = np.flatnonzero(coef.any(axis=1))
    X, coef = X[rows], coef[rows]
    whole = _squares(kernel, X, coef)
    losses = np.empty(X.shape[1])
    for p in range(X.shape[1]):
        deadline.check()
        without = X.copy()
        without[:, p] = 0.0
        losses[p] = np.abs(whole - _squares(kernel, without, coef)).sum() / 2
    return losses


def _squares(kernel: Kernel, X: Array, coef: Array) -> Array:
    """Return a'Ka of each column of coefficients."""
    K = np.asarray(kernel(X), dtype=np.float64)
    return np.asarray(np.einsum("ij,ij->j", coef, K @ coef))
