"""The mean of a sigmoid under a Gaussian: probabilities averaged over an uncertain score."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtr

from mercer.array_types import Array
from mercer.resources import rows_at_once
from mercer.row_chunks import slices

# The trapezoidal rule on a line converges like exp(-2 pi w / h) for functions analytic within w of
# it: pi here, the first poles of the sigmoid. With h = 1/4 that is 1e-34.
_STEP = 0.25
_NARROW = 9.0  # standard deviations: beyond, a Gaussian has 1e-19 of its mass
_ROWS_AT_ONCE = 4096  # each has hundreds of terms
_WIDE = 42.0  # a logistic variable has 1e-18 of its mass beyond


def averaged_sigmoid(mean: Array, variance: Array) -> Array:
    """Return the mean of 1 / (1 + exp(-z)) for z ~ N(mean, variance), to about 1e-14.

    Where the Gaussian is narrower than the sigmoid, the sum is over the Gaussian; where it is
    wider, over the density of which the sigmoid is the distribution function.

    Parameters
    ----------
    mean, variance : (n,) array
        Of the Gaussians.

    Examples
    --------
    >>> import numpy as np
    >>> averaged_sigmoid(np.array([0.0, 2.0, 2.0]), np.array([5.0, 0.0, 5.0])).round(4).tolist()
    [0.5, 0.8808, 0.76]
    """
    found = np.empty(len(mean))
    terms = int(2 * max(_NARROW, _WIDE) / _STEP) + 2
    for rows in slices(0, len(mean), rows_at_once(terms, _ROWS_AT_ONCE, arrays=3)):
        found[rows] = _averaged(mean[rows], variance[rows])
    return found


def _averaged(mean: Array, variance: Array) -> Array:
    spread, narrow = np.sqrt(variance), variance < 1.0
    found = np.empty(len(mean))
    z = np.arange(-_NARROW, _NARROW + _STEP, _STEP)
    mass = np.exp(-0.5 * z**2)
    scores = mean[narrow, None] + spread[narrow, None] * z
    found[narrow] = expit(scores) @ (mass / mass.sum())
    z = np.arange(-_WIDE, _WIDE + _STEP, _STEP)
    mass = expit(z) * expit(-z)
    found[~narrow] = ndtr((mean[~narrow, None] + z) / spread[~narrow, None]) @ (mass / mass.sum())
    return found
