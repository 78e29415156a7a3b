"""Sample sizes and error bounds for finite classes and rectangles, and Hoeffding's bound.

With N hypotheses, one that agrees with m examples has an error above eps with probability at most
N (1 - eps)^m <= N exp(-eps m); the observed error of every one lies within eps of its true error
but with probability 2 N exp(-2 eps^2 m) (Hoeffding's inequality and the union bound).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from mercer.theory.bounds import (
    INDEPENDENT,
    TWO_LABELS,
    Bound,
    check_count,
    check_error,
    check_nonnegative,
    check_positive,
    check_probability,
    error_bound,
)

_TARGET = "one of the hypotheses makes no error at all"


def realisable_sample_size(hypotheses: float, error: float, delta: float) -> Bound:
    """Count the examples after which every consistent hypothesis is good: ln(N/delta)/error.

    Parameters
    ----------
    hypotheses : float
        Number of hypotheses, N.
    error : float
        The error allowed.
    delta : float
        The probability of failure allowed.

    Returns
    -------
    Bound
        Its value is the number of examples.

    Examples
    --------
    >>> realisable_sample_size(3**10, error=0.1, delta=0.05).value
    140
    """
    error, delta = check_probability("error", error), check_probability("delta", delta)
    size = math.ceil(_log_count(hypotheses, delta) / error)
    statement = (
        f"{size} examples suffice: with probability {1 - delta:g} every hypothesis that agrees "
        f"with them all has an error of at most {error:g}"
    )
    return Bound(size, False, (INDEPENDENT, TWO_LABELS, _TARGET), statement)


def agnostic_sample_size(hypotheses: float, error: float, delta: float) -> Bound:
    """Count the examples after which the best on the sample is nearly the best of all.

    With (2 / error^2) ln(2 N / delta) examples every observed error is within error/2 of the true
    one, so the hypothesis with the smallest observed error is within `error` of the best.

    Parameters
    ----------
    hypotheses : float
        Number of hypotheses, N.
    error : float
        Allowed excess of the error over that of the best hypothesis.
    delta : float
        The probability of failure allowed.

    Returns
    -------
    Bound
        Its value is the number of examples.

    Examples
    --------
    >>> agnostic_sample_size(1000, error=0.1, delta=0.05).value
    2120
    """
    error, delta = check_probability("error", error), check_probability("delta", delta)
    size = math.ceil(2 / error**2 * (math.log(2) + _log_count(hypotheses, delta)))
    statement = (
        f"{size} examples suffice: with probability {1 - delta:g} the hypothesis with the smallest "
        f"observed error is within {error:g} of the best one"
    )
    return Bound(size, False, (INDEPENDENT, TWO_LABELS), statement)


def rectangle_sample_size(error: float, delta: float, dimension: int = 2) -> Bound:
    """Count the examples for the tightest box around the positive ones: (2d/error) ln(2d/delta).

    Each of the 2d sides leaves out a strip of weight above error/(2d) with probability at most
    (1 - error/(2d))^m; in the plane this is (4/error) ln(4/delta).

    Parameters
    ----------
    error : float
        The error allowed.
    delta : float
        The probability of failure allowed.
    dimension : int
        Number of coordinates, d.

    Returns
    -------
    Bound
        Its value is the number of examples.

    Examples
    --------
    >>> rectangle_sample_size(error=0.1, delta=0.05).value
    176
    """
    error, delta = check_probability("error", error), check_probability("delta", delta)
    sides = 2 * check_count("dimension", dimension)
    size = math.ceil(sides / error * math.log(sides / delta))
    statement = (
        f"{size} examples suffice: with probability {1 - delta:g} the tightest box around the "
        f"positive ones has an error of at most {error:g}"
    )
    inside = "the positive examples are those inside some box with sides along the axes"
    return Bound(size, False, (INDEPENDENT, inside), statement)


def finite_class_dimension(hypotheses: float) -> Bound:
    """Bound the VC dimension of N hypotheses by log2 N: d points have 2^d labelings.

    Parameters
    ----------
    hypotheses : float
        Number of hypotheses, N.

    Returns
    -------
    Bound
        Its value is an integer.

    Examples
    --------
    >>> finite_class_dimension(3**10).value
    15
    """
    _log_count(hypotheses, 0.5)  # checks
    value = math.floor(hypotheses).bit_length() - 1  # exact, however many digits
    statement = f"so many hypotheses shatter at most {value} points"
    return Bound(value, False, (f"there are no more than 2^{value + 1} - 1 of them",), statement)


def hoeffding(n: int, delta: float, observed: float = 0.0, spread: float = 1.0) -> Bound:
    """Bound a mean from n observations: observed + spread sqrt(ln(1/delta) / (2 n)).

    Parameters
    ----------
    n : int
        Number of observations; for the error of a classifier, examples not used to choose it.
    delta : float
        The probability of failure allowed.
    observed : float
        Their mean.
    spread : float
        Each observation lies between 0 and this.

    Returns
    -------
    Bound
        An upper bound of the expected value; vacuous when it is not below `spread`.

    Examples
    --------
    >>> round(hoeffding(1000, delta=0.05, observed=0.1).value, 4)
    0.1387
    """
    n, delta = check_count("n", n), check_probability("delta", delta)
    spread = check_positive("spread", spread)
    if not check_nonnegative("observed", observed) <= spread:
        raise ValueError(f"observed={observed!r} must lie between 0 and spread={spread:g}")
    value = float(observed) + spread * math.sqrt(math.log(1 / delta) / (2 * n))
    least = min(value, spread)
    statement = f"with probability {1 - delta:g} the expected value is at most {least:.4g}"
    bounded = f"each observation lies between 0 and {spread:g}"
    fixed = "the observed quantity was not chosen by looking at these observations"
    return Bound(least, not value < spread, (INDEPENDENT, bounded, fixed), statement)


def finite_class_error(hypotheses: float, n: int, delta: float, observed: float = 0.0) -> Bound:
    """Bound the error of any of N hypotheses from its error on the n examples it was chosen by.

    Parameters
    ----------
    hypotheses : float
        Number of hypotheses, N.
    n : int
        Number of examples.
    delta : float
        The probability of failure allowed.
    observed : float
        The error on these examples; for 0 the sharper bound of the consistent case is given.

    Returns
    -------
    Bound
        An upper bound of the true error.

    Examples
    --------
    >>> round(finite_class_error(1000, n=500, delta=0.05).value, 4)
    0.0198
    """
    n, delta = check_count("n", n), check_probability("delta", delta)
    observed = check_error("observed", observed)
    logs = _log_count(hypotheses, delta)
    value = logs / n if observed == 0 else observed + math.sqrt(logs / (2 * n))
    statement = (
        f"with probability {1 - delta:g} the true error is at most {min(value, 1.0):.4g}, with "
        f"an observed error of {observed:.4g}"
    )
    return error_bound(value, (INDEPENDENT, TWO_LABELS), statement)


def _log_count(hypotheses: Any, delta: float) -> float:
    counted = isinstance(hypotheses, Real) and not isinstance(hypotheses, bool)  # of any size
    if not counted or not hypotheses >= 1 or hypotheses == math.inf:
        raise ValueError(f"hypotheses={hypotheses!r} must be finite and at least 1")
    return math.log(hypotheses) - math.log(delta)  # counts may have thousands of digits
