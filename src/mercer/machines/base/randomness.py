"""A `random_state` checked before it is used, the seed drawn from it, and numbers of draws."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.machines.base.parameters import refuse

_SEED = "be None, an integer from 0 to 2^32 - 1, or a numpy.random.RandomState"


def check_seed(machine: Any) -> None:
    """Require what scikit-learn takes: None, an integer of 32 bits, or a RandomState."""
    try:
        check_random_state(machine.random_state)
    except (TypeError, ValueError):
        refuse(machine, "random_state", machine.random_state, _SEED)


def seed_of(machine: Any) -> int:
    """Return the integer itself, or one drawn."""
    if isinstance(machine.random_state, int | np.integer):
        return int(machine.random_state)
    return int(check_random_state(machine.random_state).randint(2**31 - 1))


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
