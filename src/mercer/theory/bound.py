"""What a bound is: a number, what it rests on, whether it says anything, and a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any


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
        What must hold for it.
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
    """Require a whole number of at least `least`."""
    number = _number(name, value)
    if not math.isfinite(number) or number != int(number) or number < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
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
