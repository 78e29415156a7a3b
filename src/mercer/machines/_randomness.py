"""A `random_state` checked when `fit` starts, and the one seed that is drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.machines._parameters import refuse


def check_seed(machine: Any) -> None:
    """Require what scikit-learn takes: None, an integer of 32 bits, or a RandomState."""
    try:
        check_random_state(machine.random_state)
    except (TypeError, ValueError):
        must = "be None, an integer from 0 to 2^32 - 1, or a numpy.random.RandomState"
        refuse(machine, "random_state", machine.random_state, must)


def seed_of(machine: Any) -> int:
    """Give the integer itself, or one drawn."""
    if isinstance(machine.random_state, int | np.integer):
        return int(machine.random_state)
    return int(check_random_state(machine.random_state).randint(2**31 - 1))
