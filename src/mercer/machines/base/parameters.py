"""Parameters are checked when `fit` starts, before anything is allocated."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.rows.foreign import is_foreign, on_host
from mercer.solvers.base import Solver


class ParameterError(ValueError, TypeError):
    """A parameter of a machine is out of range; the message names machine, parameter and range.

    Both a ValueError and a TypeError, as scikit-learn's own is.
    """


_INT64 = 2**63  # integers from here on are objects to NumPy, not numbers


def shortened(value: Any) -> str:
    """Write a value for people; integers may have hundreds of digits."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"<integer of {value.bit_length()} bits>"
    return repr(value)


def refuse(machine: Any, name: str, value: Any, must: str) -> None:
    """Raise a `ParameterError`."""
    shown = f"<array of shape {value.shape}>" if isinstance(value, np.ndarray) else shortened(value)
    raise ParameterError(f"{type(machine).__name__}: {name}={shown} must {must}")


def plain(value: Any) -> Any:
    """Return NumPy's numbers as Python's, and integers beyond int64 as what every step can hold.

    Arrays of other libraries become NumPy's.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.int8(2)), plain(np.float32(0.5)), plain("auto")
    (2, 0.5, 'auto')
    """
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item() if not isinstance(value, np.longdouble) else float(value)
    if isinstance(value, int) and abs(value) >= _INT64 and is_real(value):
        return float(value)
    return on_host(value) if is_foreign(value) else value


def check_real(
    machine: Any, name: str, *, above: float = -math.inf, least: float = -math.inf
) -> None:
    """Require a finite number greater than `above` and at least `least`."""
    value = getattr(machine, name)
    if not is_real(value) or not math.isfinite(value) or value <= above or value < least:
        bound = f" greater than {above:g}" if above > -math.inf else ""
        bound += f" of at least {least:g}" if least > -math.inf else ""
        refuse(machine, name, value, f"be a finite number{bound}")


def check_optional_positive(machine: Any, name: str) -> None:
    """Require None or a positive number (infinity is the same as None)."""
    value = getattr(machine, name)
    if value is not None and not (is_real(value) and value > 0):
        refuse(machine, name, value, "be None or a positive number")


def check_optional_count(machine: Any, name: str) -> None:
    """Require None or a positive integer."""
    value = getattr(machine, name)
    good = is_real(value) and isinstance(value, Integral) and int(value) > 0
    if value is not None and not good:
        refuse(machine, name, value, "be None or a positive integer")


def check_count(machine: Any, name: str) -> None:
    """Require a positive integer."""
    value = getattr(machine, name)
    if not (is_real(value) and isinstance(value, Integral) and int(value) > 0):
        refuse(machine, name, value, "be a positive integer")


def check_optional_callable(machine: Any, name: str) -> None:
    """Require None or a function."""
    value = getattr(machine, name)
    if value is not None and not callable(value):
        refuse(machine, name, value, "be None or a function")


def check_limits(machine: Any) -> None:
    """Require a callback and a time limit that a solver can take."""
    check_optional_callable(machine, "callback")
    check_optional_positive(machine, "time_limit")


def check_choice(machine: Any, name: str, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    value = getattr(machine, name)
    if not isinstance(value, str) or value not in choices:
        refuse(machine, name, value, "be " + " or ".join(map(repr, choices)))


def check_share(machine: Any, name: str) -> None:
    """Require a number above 0 and at most 1."""
    value = getattr(machine, name)
    if not is_real(value) or not 0 < value <= 1:
        refuse(machine, name, value, "be a number above 0 and at most 1")


def check_optional_share(machine: Any, name: str) -> None:
    """Require None, or a number above 0 and at most 1."""
    if getattr(machine, name) is not None:
        check_share(machine, name)


def check_flag(machine: Any, name: str) -> None:
    """Require True or False."""
    value = getattr(machine, name)
    if not isinstance(value, bool | np.bool_):
        refuse(machine, name, value, "be True or False")


def is_real(value: Any) -> bool:
    """Return whether a value is a real number that float64 reaches, and not a truth value."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:  # an integer such as 10**400
        return False
    return True


# --- counts of components, solvers and seeds -----------------------------------------------------


def check_components(machine: Any, rows: float) -> None:
    """Require None, a share of the variance, or a count of at most the number of rows."""
    n_components = machine.n_components
    if n_components is None:
        return
    if is_real(n_components) and not isinstance(n_components, Integral):
        if not 0 < n_components < 1:
            must = "be a count (an integer), a share of the variance between 0 and 1, or None"
            refuse(machine, "n_components", n_components, must)
        return
    if not is_real(n_components) or n_components < 1:
        refuse(machine, "n_components", n_components, "be a positive integer, a share, or None")
    if n_components > rows:
        must = f"be at most the number of rows: n_samples = {rows:g}"
        refuse(machine, "n_components", n_components, must)


def check_solver(machine: Any) -> None:
    """Require None or a solver of eigenproblems."""
    if machine.solver is not None and not isinstance(machine.solver, Solver):
        refuse(machine, "solver", machine.solver, "be None or a solver such as Lanczos()")


def check_seed(machine: Any) -> None:
    """Require what NumPy makes random numbers from."""
    given = machine.random_state
    seed = isinstance(given, Integral) and is_real(given) and 0 <= int(given) < 2**32
    if not (given is None or seed or isinstance(given, np.random.RandomState)):
        refuse(machine, "random_state", given, _SEED)


def seed_of(random_state: Any) -> int:
    """Return the integer itself, or one drawn from a source of random numbers."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


# --- what a call asks for: numbers of draws, and where they are drawn from -----------------------

_SEED = "be None, an integer from 0 to 2^32 - 1, or a numpy.random.RandomState"


def source_of(machine: Any, random_state: Any) -> np.random.RandomState:
    """Return the source of random numbers that a call asks for."""
    try:
        source: np.random.RandomState = check_random_state(random_state)
    except (TypeError, ValueError):
        refuse(machine, "random_state", random_state, _SEED)
        raise
    return source


def check_number(machine: Any, name: str, value: Any) -> int:
    """Return how many of something a call asks for: an integer, zero or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        refuse(machine, name, value, "be an integer, zero or more")
    return int(value)
