"""Description length: the model that lets model and data be written in the fewest bits.

The data take -log2 p(data | parameters) bits, and each parameter (1/2) log2 n: more digits of it
than the data can tell are not worth writing. More parameters shorten the first part and lengthen
the second.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def description_length(log_likelihood: float, parameters: float, n: int) -> float:
    """Return the bits of data and parameters: -log2 likelihood + (parameters / 2) log2 n.

    Parameters
    ----------
    log_likelihood : float
        Natural logarithm of the likelihood of all n rows at its maximum.
    parameters : float
        How many numbers were fitted.
    n : int
        How many rows.

    Returns
    -------
    float
        The length in bits; only differences between models of the same data mean anything.

    Examples
    --------
    >>> round(description_length(-100.0, parameters=3, n=64), 2)
    153.27
    """
    if n < 1 or parameters < 0 or not math.isfinite(log_likelihood):
        raise ValueError(
            f"n={n} must be positive, parameters={parameters} not negative and "
            f"log_likelihood={log_likelihood} finite"
        )
    return -log_likelihood / math.log(2) + parameters / 2 * math.log2(n)


def gaussian_log_likelihood(residuals: npt.ArrayLike) -> float:
    """Return the log-likelihood of residuals under a normal law with their own variance.

    Parameters
    ----------
    residuals : array-like
        Targets less predictions.

    Returns
    -------
    float
        -(n/2) (ln(2 pi s^2) + 1) with s^2 the mean square; the variance counts as a parameter.

    Examples
    --------
    >>> round(gaussian_log_likelihood([1.0, -1.0]), 4)
    -2.8379
    """
    r = np.asarray(residuals, dtype=np.float64).ravel()
    if not len(r) or not np.isfinite(r).all():
        raise ValueError("residuals must be finite numbers, and some")
    square = max(float(np.mean(r**2)), np.finfo(float).tiny)
    return -len(r) / 2 * (math.log(2 * math.pi * square) + 1)
