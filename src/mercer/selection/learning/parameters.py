"""What functions that learn kernels may be asked, checked: errors name function and parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.machines.base.parameters import is_real


def checked(function: str, name: str, value: Any) -> float:
    """Require a positive, finite number."""
    if not is_real(value) or not math.isfinite(value) or not value > 0:
        raise ValueError(f"{function}: {name}={value!r} must be a positive, finite number")
    return float(value)


def counted(function: str, name: str, value: Any) -> int:
    """Require a whole number, one or more."""
    if not is_real(value) or not value >= 1 or value != value // 1:
        raise ValueError(f"{function}: {name}={value!r} must be a whole number, at least 1")
    return int(value)


def check_limits(function: str, tol: Any, max_iter: Any, callback: Any, time_limit: Any) -> None:
    """Require what says when a search ends."""
    checked(function, "tol", tol)
    counted(function, "max_iter", max_iter)
    if callback is not None and not callable(callback):
        raise ValueError(f"{function}: callback={callback!r} must be a function or None")
    if time_limit is not None:
        checked(function, "time_limit", time_limit)


def check_flag(function: str, name: str, value: Any) -> None:
    """Require a truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{function}: {name}={value!r} must be True or False")


def one_of(function: str, name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    if not isinstance(value, str) or value not in choices:
        shown = " or ".join(map(repr, choices))
        raise ValueError(f"{function}: {name}={value!r} must be {shown}")
