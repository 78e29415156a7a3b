"""Class `Bound`, checks of its arguments, and tail bounds (Chernoff, Hoeffding)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from mercer.theory.entropy import relative_entropy

# --- bound ---------------------------------------------------------------------------------------
#
# A bound is a number with its assumptions, a flag for vacuous bounds, and a sentence.


@dataclass(frozen=True)
class Bound:
    """A statement of learning theory with its figure.

    Attributes
    ----------
    value : float
        The bound: an error, a sample size, a dimension, a number of mistakes.
    vacuous : bool
        Whether it promises nothing that was not known before (an error of one or more).
    assumptions : tuple of str
        Its assumptions.
    statement : str
        The bound in words.
    """

    value: float
    vacuous: bool
    assumptions: tuple[str, ...]
    statement: str

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        says = " (vacuous: it promises nothing)" if self.vacuous else ""
        return "\n".join([self.statement + says, *(f"  if {a}" for a in self.assumptions)])


INDEPENDENT = "the examples are drawn independently from one distribution, also the new ones"
TWO_LABELS = "there are two labels, and an error counts one"


def check_probability(name: str, value: float) -> float:
    """Require a number strictly between 0 and 1."""
    if not 0.0 < _number(name, value) < 1.0:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1, both excluded")
    return float(value)


def check_count(name: str, value: float, least: int = 1) -> int:
    """Require an integer of at least `least`."""
    number = _number(name, value)
    if not math.isfinite(number) or number != int(number) or number < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}")
    return int(value)


def check_positive(name: str, value: float) -> float:
    """Require a positive finite number."""
    if not 0.0 < _number(name, value) < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive finite number")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    """Require a finite number that is not negative."""
    if not 0.0 <= _number(name, value) < math.inf:
        raise ValueError(f"{name}={value!r} must be finite and not negative")
    return float(value)


def check_error(name: str, value: float) -> float:
    """Require a share: a number from 0 to 1."""
    if not 0.0 <= _number(name, value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a number from 0 to 1")
    return float(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name}={value!r} must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} has {len(str(value))} digits: too large") from None


def error_bound(value: float, assumptions: tuple[str, ...], statement: str) -> Bound:
    """Return a bound on an error rate, at most one; from one on it is vacuous."""
    return Bound(min(float(value), 1.0), not value < 1.0, assumptions, statement)


# --- tails ---------------------------------------------------------------------------------------
#
# Tails: the probability that a mean of independent observations is far from its expectation.
#
# The theorems of learning depend on them. Chernoff's are sharp if the probability p is small,
# Hoeffding's hold whatever p is, and relative entropy is below both; the binomial sum itself is
# exact.


def chernoff_tail(n: int, p: float, psi: float, *, upper: bool = False) -> Bound:
    """Bound the probability that n trials of probability p succeed less often than (1 - psi) n p.

    P(Z < (1 - psi) mu) <= exp(-psi^2 mu / 2) with mu = n p, and for the other tail
    P(Z > (1 + psi) mu) <= exp(-psi^2 mu / 3).

    Parameters
    ----------
    n : int
        Number of independent trials.
    p : float
        The probability of success.
    psi : float
        Deviation as a fraction of the expectation; between 0 and 1.
    upper : bool
        Whether the tail above the expectation is asked for.

    Returns
    -------
    Bound
        An upper bound of a probability.

    Examples
    --------
    >>> round(chernoff_tail(1000, 0.1, psi=0.5).value, 8)  # half as often as expected
    3.73e-06
    """
    n, p, psi = check_count("n", n), check_error("p", p), check_probability("psi", psi)
    value = math.exp(-(psi**2) * n * p / (3 if upper else 2))
    side, share = ("more", 1 + psi) if upper else ("fewer", 1 - psi)
    statement = (
        f"{n} trials of probability {p:g} succeed {side} than {share * n * p:g} times with a "
        f"probability of at most {value:.4g}"
    )
    return error_bound(value, ("the trials are independent",), statement)


def hoeffding_tail(
    n: int, epsilon: float, spread: npt.ArrayLike = 1.0, *, two_sided: bool = True
) -> Bound:
    """Bound the probability that a mean of n values is off by epsilon: 2 exp(-2 n epsilon^2).

    For observations that lie in intervals of lengths s_i it is 2 exp(-2 n^2 epsilon^2 / sum s_i^2).

    Parameters
    ----------
    n : int
        Number of independent observations, not necessarily of one distribution.
    epsilon : float
        Deviation of the mean from its expectation.
    spread : float or (n,) array-like
        The length of the interval that each observation lies in.
    two_sided : bool
        Whether deviations in both directions count; for one the factor 2 falls away.

    Returns
    -------
    Bound
        An upper bound of a probability.

    Examples
    --------
    >>> round(hoeffding_tail(1000, 0.05).value, 5)
    0.01348
    """
    n, epsilon = check_count("n", n), check_positive("epsilon", epsilon)
    widths = np.asarray(spread, dtype=np.float64)
    if widths.shape not in ((), (n,)) or not (np.isfinite(widths).all() and (widths > 0).all()):
        raise ValueError(f"spread must be one positive number, or one for each of the {n}")
    widest = float(widths.max())
    squares = float(np.mean((widths / widest) ** 2))
    # no mean is off by more than the widest interval
    share = min(epsilon / widest, 2.0) if widest > epsilon / 2 else 2.0
    chance = math.exp(-2 * n * share**2 / squares) if share <= 1 else 0.0
    value = (2 if two_sided else 1) * chance
    side = "off" if two_sided else "too large"
    statement = (
        f"a mean of {n} observations is {side} by {epsilon:g} or more with a probability of at "
        f"most {min(value, 1.0):.4g}"
    )
    bounded = f"each observation lies in an interval of length {widest:g} or less"
    return error_bound(value, ("the observations are independent", bounded), statement)


def relative_entropy_tail(n: int, p: float, share: float) -> Bound:
    """Bound the probability of a fraction of successes in n trials: exp(-n D(share || p)).

    Sharper than `chernoff_tail` and `hoeffding_tail`, which follow from it. For a fraction above p,
    the event is that of so many or more successes, below p of so many or fewer.

    Parameters
    ----------
    n : int
        Number of independent trials.
    p : float
        The probability of success.
    share : float
        The fraction of successes.

    Returns
    -------
    Bound
        An upper bound of a probability.

    Examples
    --------
    >>> round(relative_entropy_tail(1000, 0.1, share=0.05).value, 10)
    5.55e-08
    """
    n, p, share = check_count("n", n), check_error("p", p), check_error("share", share)
    value = math.exp(-n * relative_entropy([share, 1 - share], [p, 1 - p]))
    side = "more" if share >= p else "fewer"
    statement = (
        f"{n} trials of probability {p:g} succeed {share * n:g} times or {side} with a probability "
        f"of at most {value:.4g}"
    )
    return error_bound(value, (INDEPENDENT,), statement)


def binomial_tail(n: int, p: float, count: int, *, upper: bool = False) -> float:
    """Return the probability that n trials of probability p succeed `count` times or fewer.

    Parameters
    ----------
    n : int
        Number of independent trials.
    p : float
        The probability of success.
    count : int
        The number of successes.
    upper : bool
        Whether `count` times or more is asked for.

    Returns
    -------
    float
        The sum of binomial probabilities.

    Examples
    --------
    >>> binomial_tail(3, 0.5, 1), binomial_tail(3, 0.5, 1, upper=True)
    (0.5, 0.875)
    """
    n, p, count = check_count("n", n), check_error("p", p), check_count("count", count, 0)
    if upper:
        return float(betainc(count, n - count + 1, p)) if 0 < count <= n else float(count == 0)
    return float(betainc(n - count, count + 1, 1 - p)) if count < n else 1.0
