"""Description lengths: the bits that a model and the data take, for likelihoods and least squares.

The data take -log2 p(data | parameters) bits, and each parameter (1/2) log2 n: more digits of it
than the data can tell are not worth writing. More parameters shorten the first part and lengthen
the second. That price is one of many rows. Of few rows each, parameters fit the data better than
they will ever fit new ones, and the lengths here pay for that too.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

# log g on which the mixture over g is summed; the last is far beyond 1 / eps^2
_LOG_G = (-40.0, 160.0)


def description_length(log_likelihood: float, parameters: float, n: int) -> float:
    """Return the bits of data and parameters, of any model fitted by maximum likelihood.

    -log2 likelihood + (p/2) log2 n + p (p + 1) / (n - p - 1) / ln 2 with p parameters. The first
    two terms are the two-part code of many rows. The third is the small-sample term of Hurvich and
    Tsai (1989), the likelihood of n normal values being too good by p + p (p + 1) / (n - p - 1)
    nats on average. Without it the largest of many models is picked from few rows.

    Parameters
    ----------
    log_likelihood : float
        Natural logarithm of the likelihood of all n rows at its maximum.
    parameters : float
        How many numbers were fitted, a variance among them.
    n : int
        How many rows.

    Returns
    -------
    float
        The length in bits; only differences between models of the same data mean anything.
        Infinite where parameters >= n - 1: such a model can say anything.

    See Also
    --------
    regression_description_length : A code for least squares, exact for any number of rows.

    Examples
    --------
    >>> round(description_length(-100.0, parameters=3, n=64), 2)
    153.56
    """
    if not n >= 1 or not parameters >= 0 or not math.isfinite(log_likelihood):
        raise ValueError(
            f"n={n} must be positive, parameters={parameters} not negative and "
            f"log_likelihood={log_likelihood} finite"
        )
    spare = n - parameters - 1
    if spare <= 0:
        return -log_likelihood / math.log(2) if parameters == 0 else math.inf
    nats = parameters / 2 * math.log(n) + parameters * (parameters + 1) / spare
    return (nats - log_likelihood) / math.log(2)


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
        raise ValueError("residuals must be finite and not empty")
    unit = float(np.abs(r).max())
    if unit == 0.0:
        unit = math.sqrt(np.finfo(float).tiny)  # no residual at all: as likely as a float can say
        r = np.full(len(r), unit)
    square = float(np.mean((r / unit) ** 2))  # squares neither overflow nor vanish
    return -len(r) / 2 * (math.log(2 * math.pi * square) + 2 * math.log(unit) + 1)


def regression_description_length(
    y: npt.ArrayLike, fitted: npt.ArrayLike, parameters: int
) -> float:
    """Return the bits of targets told by way of a least-squares fit, for any number of rows.

    A Bayes mixture code, so that no term is left out for want of rows: the mean and the variance
    are told in the same way by all models, the coefficients of the others have the prior
    N(0, g s^2 (X'X)^-1) of Zellner, g being mixed over by the density
    (1/(2n)) (1 + g/n)^(-3/2) of Liang et al. (2008, hyper-g/n), and the number k of coefficients
    the prior 1/k. With r the share of the squares that the fit leaves,

        2^-length = m(y) / (k H_n) * integral of (1 + g)^((n - k)/2) (1 + g r)^(-(n - 1)/2) p(g) dg

    where m(y) is of the mean alone and H_n the sum of 1/k. A fit through all rows says no more than
    the mean does, and costs more.

    Parameters
    ----------
    y : (n,) array-like
        Targets.
    fitted : (n,) array-like
        What least squares says about the same rows; a constant is among what is fitted.
    parameters : int
        How many coefficients were fitted, the constant included and the variance not.

    Returns
    -------
    float
        The length in bits; only differences between models of the same targets mean anything.

    See Also
    --------
    description_length : Any likelihood, priced as with many rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-1.0, -0.7, -0.4, -0.1, 0.2, 0.5, 0.8, 1.0])
    >>> y = x**2 + 0.05 * np.array([1, -1, 1, 1, -1, 1, -1, 1])
    >>> fits = [np.polynomial.Polynomial.fit(x, y, degree)(x) for degree in range(7)]
    >>> lengths = [regression_description_length(y, fit, k + 1) for k, fit in enumerate(fits)]
    >>> int(np.argmin(lengths))
    2
    """
    t, f = (np.asarray(a, dtype=np.float64).ravel() for a in (y, fitted))
    n, k = len(t), check_coefficients(parameters, len(t))
    if f.shape != t.shape or not (np.isfinite(t).all() and np.isfinite(f).all()):
        raise ValueError(f"y and fitted must be finite and equally long, got {n} and {len(f)}")
    unit = float(np.abs(t).max()) or 1.0
    t, f = t / unit, f / unit  # squares neither overflow nor vanish
    rounding = n * np.finfo(float).eps ** 2  # a target is known no better than its last digit
    around_mean = max(float(((t - t.mean()) ** 2).sum()), rounding)
    left = max(float(((t - f) ** 2).sum()), rounding)
    if left > around_mean * (1 + 1e-6):
        raise ValueError(
            "fitted is further from y than the mean of y, so it is not a least-squares fit with a "
            "constant; use description_length for other models"
        )
    log_mean = gammaln((n - 1) / 2) - math.log(n) / 2
    log_mean -= (n - 1) / 2 * (math.log(math.pi * around_mean) + 2 * math.log(unit))
    log_count = math.log(k) + math.log(float(np.sum(1 / np.arange(1, n + 1))))
    gain = log_mixture(n, k, min(left / around_mean, 1.0)) if k > 1 else 0.0
    return float(log_count - log_mean - gain) / math.log(2)


def log_mixture(n: int, k: int, left: float) -> float:
    """Return the logarithm of the factor by which k coefficients beat the mean, g mixed over."""
    # the integrand is analytic in log g and falls at both ends, so that equal steps are right to
    # rounding if they are well below the width of its peak, 1 / sqrt(k)
    log_g, step = np.linspace(*_LOG_G, 800 * math.isqrt(k) + 1, retstep=True)
    g = np.exp(log_g)
    gain = (n - k) / 2 * np.log1p(g) - (n - 1) / 2 * np.log1p(g * left)
    prior = -1.5 * np.log1p(g / n) - math.log(2 * n) + log_g
    return float(logsumexp(gain + prior)) + math.log(step)


def check_coefficients(parameters: Any, n: int) -> int:
    """Require a whole number of coefficients from 1 to the number of rows, of which two are needed.

    A constant alone is one coefficient.
    """
    if n < 2:
        raise ValueError(f"{n} targets do not determine mean and variance; at least two are needed")
    whole = isinstance(parameters, Real) and not isinstance(parameters, bool)
    if not whole or not 1 <= parameters <= n or int(parameters) != parameters:
        raise ValueError(
            f"parameters={parameters!r} must be an integer from 1 (only a constant) to the "
            f"number of rows, {n}"
        )
    return int(parameters)
