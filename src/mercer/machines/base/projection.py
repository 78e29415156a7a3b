"""Parameters that machines which project share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mercer.machines.base.parameters import is_real, refuse
from mercer.solvers import Solver


def check_components(machine: Any, rows: float) -> None:
    """Require None, a share of the variance, or a count of at most the number of rows."""
    wanted = machine.n_components
    if wanted is None:
        return
    if is_real(wanted) and not isinstance(wanted, Integral):
        if not 0 < wanted < 1:
            must = "be a count (an integer), a share of the variance between 0 and 1, or None"
            refuse(machine, "n_components", wanted, must)
        return
    if not is_real(wanted) or wanted < 1:
        refuse(machine, "n_components", wanted, "be a positive integer, a share, or None")
    if wanted > rows:
        must = f"be at most the number of rows: n_samples = {rows:g}"
        refuse(machine, "n_components", wanted, must)


def check_solver(machine: Any) -> None:
    """Require None or a solver of eigenproblems."""
    if machine.solver is not None and not isinstance(machine.solver, Solver):
        refuse(machine, "solver", machine.solver, "be None or a solver such as Lanczos()")


def check_seed(machine: Any) -> None:
    """Require what NumPy makes random numbers from."""
    given = machine.random_state
    seed = isinstance(given, Integral) and is_real(given) and 0 <= int(given) < 2**32
    if not (given is None or seed or isinstance(given, np.random.RandomState)):
        must = "be None, an integer from 0 to 2^32 - 1, or a numpy.random.RandomState"
        refuse(machine, "random_state", given, must)


def seed_of(random_state: Any) -> int:
    """Return the integer itself, or one drawn from a source of random numbers."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
