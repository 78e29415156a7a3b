"""Bounds by the VC dimension: Sauer's lemma, double sampling, and uniform deviations."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import gammaln, logsumexp

from mercer.theory.bounds import (
    INDEPENDENT,
    TWO_LABELS,
    Bound,
    check_count,
    check_error,
    check_probability,
    error_bound,
)

_CONSISTENT = "the hypothesis agrees with all examples, and some hypothesis makes no error"


def sauer(vc: int, m: int) -> int:
    """Bound the growth function: the sum of binomials (m over i), i from 0 to the VC dimension.

    Parameters
    ----------
    vc : int
        The VC dimension.
    m : int
        Number of points.

    Returns
    -------
    int
        The most labelings of m points; 2^m while m <= vc, of order m^vc after that.

    Examples
    --------
    >>> sauer(2, 4)
    11
    """
    vc, m = check_count("vc", vc, 0), check_count("m", m, 0)
    return sum(math.comb(m, i) for i in range(min(vc, m) + 1))


def growth_bound(vc: int, m: int) -> Bound:
    """Bound the growth function by a power of the number of points: (e m / d)^d for m >= d.

    Sauer's sum of binomials (`sauer`) is below it and above the growth function. It grows as m^d,
    while 2^m, all labelings, doubles with every point: so a class of finite VC dimension d gives
    fewer and fewer of all labelings, and can be learned.

    Parameters
    ----------
    vc : int
        The VC dimension, d.
    m : int
        Number of points, at least d.

    Returns
    -------
    Bound
        Vacuous if it is at least 2^m.

    Examples
    --------
    >>> sauer(3, 20), round(growth_bound(3, 20).value), 2**20
    (1351, 5951, 1048576)
    """
    vc, m = check_count("vc", vc, 0), check_count("m", m, 0)
    if m < vc:
        raise ValueError(f"m={m} must be at least vc={vc}: fewer points have all 2^m labelings")
    log_value = vc * (1 + math.log(m / vc)) if vc else 0.0
    value = math.exp(log_value) if log_value < 709 else math.inf  # larger values overflow
    shown = f"{value:.6g}" if math.isfinite(value) else f"e^{log_value:.6g}"
    statement = f"{m} points have at most {shown} labelings of {2.0 ** min(m, 1023):.6g}"
    assumptions = (f"the VC dimension is at most {vc}",)
    return Bound(value, not log_value < m * math.log(2), assumptions, statement)


def double_sampling_error(vc: int, n: int, delta: float) -> Bound:
    """Bound the error of a consistent hypothesis from a class of finite VC dimension.

    Two samples of n examples: if the first misses a region of weight eps, the second most likely
    hits it eps n / 2 times, and a random division puts all hits into one half with probability
    2^(-eps n / 2). So the probability of failure is at most 2 sauer(vc, 2n) 2^(-eps n / 2).

    Parameters
    ----------
    vc : int
        The VC dimension.
    n : int
        Number of examples.
    delta : float
        The probability of failure allowed.

    Returns
    -------
    Bound
        An upper bound of the true error.

    Examples
    --------
    >>> round(double_sampling_error(vc=3, n=10_000, delta=0.05).value, 4)
    0.0091
    """
    n, delta = check_count("n", n), check_probability("delta", delta)
    value = _double_sampling(check_count("vc", vc, 0), n, delta)
    statement = (
        f"with probability {1 - delta:g} every hypothesis that agrees with all {n} examples has an "
        f"error of at most {min(value, 1.0):.4g}"
    )
    assumptions = (INDEPENDENT, TWO_LABELS, f"the VC dimension is at most {vc}", _CONSISTENT)
    return error_bound(value, assumptions, statement)


def double_sampling_size(vc: int, error: float, delta: float) -> Bound:
    """Count the examples after which every consistent hypothesis is good, by the VC dimension.

    Parameters
    ----------
    vc : int
        The VC dimension.
    error : float
        The error allowed.
    delta : float
        The probability of failure allowed.

    Returns
    -------
    Bound
        Its value is the number of examples, the smallest that `double_sampling_error` allows.

    Examples
    --------
    >>> double_sampling_size(vc=3, error=0.1, delta=0.05).value
    680
    """
    error, delta = check_probability("error", error), check_probability("delta", delta)
    vc = check_count("vc", vc, 0)
    size = _smallest(lambda m: _double_sampling(vc, m, delta) <= error)
    statement = (
        f"{size} examples suffice: with probability {1 - delta:g} every hypothesis that agrees "
        f"with them all has an error of at most {error:g}"
    )
    assumptions = (INDEPENDENT, TWO_LABELS, f"the VC dimension is at most {vc}", _CONSISTENT)
    return Bound(size, False, assumptions, statement)


def vc_error(vc: int, n: int, delta: float, observed: float = 0.0) -> Bound:
    """Bound the error of any hypothesis from its error on the examples it was chosen by.

    The observed and the true error differ by more than eps for some hypothesis with probability at
    most 4 sauer(vc, 2n) exp(-eps^2 n / 8).

    Parameters
    ----------
    vc : int
        The VC dimension.
    n : int
        Number of examples.
    delta : float
        The probability of failure allowed.
    observed : float
        The error on these examples.

    Returns
    -------
    Bound
        An upper bound of the true error.

    Examples
    --------
    >>> round(vc_error(vc=3, n=100_000, delta=0.05, observed=0.1).value, 3)
    0.156
    """
    n, delta = check_count("n", n), check_probability("delta", delta)
    observed, vc = check_error("observed", observed), check_count("vc", vc, 0)
    value = observed + math.sqrt(8 / n * (math.log(4 / delta) + _log_sauer(vc, 2 * n)))
    statement = (
        f"with probability {1 - delta:g} the true error is at most {min(value, 1.0):.4g}, with "
        f"an observed error of {observed:.4g}"
    )
    assumptions = (INDEPENDENT, TWO_LABELS, f"the VC dimension is at most {vc}")
    return error_bound(value, assumptions, statement)


def _double_sampling(vc: int, n: int, delta: float) -> float:
    bits = (_log_sauer(vc, 2 * n) + math.log(2 / delta)) / math.log(2)
    # below 8 ln 2 / n the second sample need not hit the region often enough (Chernoff)
    return max(2 * bits, 8 * math.log(2)) / n


def _log_sauer(vc: int, m: int) -> float:
    if vc >= m:
        return m * math.log(2)
    # binomials rise up to m/2 and are negligible so far from the largest one that is summed
    wide = 40 * (math.isqrt(m) + 1)
    last = min(vc, m // 2 + wide)
    # in logarithms: the binomials themselves have thousands of digits
    i = np.arange(max(0, min(last, m // 2) - wide), last + 1)
    return float(logsumexp(gammaln(m + 1) - gammaln(i + 1) - gammaln(m - i + 1)))


def _smallest(good: Callable[[int], bool]) -> int:
    """Find the smallest count that is good, all larger ones being good too."""
    high = 1
    while not good(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high
