"""Parameters of scikit-learn's classes, checked when `fit` starts, with its ranges."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mercer.machines.base.parameters import check_choice, check_flag, check_real, is_real, refuse

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
_GAMMAS = ("scale", "auto")


def check_kernel(machine: Any) -> None:
    """Check what says which kernel is meant."""
    kernel, gamma = machine.kernel, machine.gamma
    if not callable(kernel) and (not isinstance(kernel, str) or kernel not in KERNELS):
        named = ", ".join(map(repr, KERNELS))
        refuse(machine, "kernel", kernel, f"be one of {named}, a function, or a Mercer kernel")
    check_whole(machine, "degree", least=0)
    if isinstance(gamma, str):
        check_choice(machine, "gamma", _GAMMAS)
    elif not is_real(gamma) or not 0 <= gamma < np.inf:
        refuse(machine, "gamma", gamma, "be 'scale', 'auto' or a finite number of at least 0")
    check_real(machine, "coef0")


def check_solving(machine: Any) -> None:
    """Check tolerance and limit, and what is accepted without meaning anything here."""
    check_real(machine, "tol", above=0)
    check_whole(machine, "max_iter", least=-1)
    check_flag(machine, "shrinking")
    check_real(machine, "cache_size", above=0)
    check_verbose(machine)


def check_priors(machine: Any, name: str) -> None:
    """Require a list of numbers that are not negative, or None: scikit-learn takes other shapes."""
    given = getattr(machine, name)
    if given is None:
        return
    try:
        priors = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        priors = np.full((), np.nan)
    if priors.ndim != 1 or np.isnan(priors).any():
        refuse(machine, name, given, "be None, or hold one probability for each class")
    if not (priors >= 0).all():  # in scikit-learn's words, which its own tests look for
        refuse(machine, name, given, "hold probabilities. Priors must be non-negative")


def check_whole(machine: Any, name: str, least: int) -> None:
    """Require an integer of at least `least`."""
    value = getattr(machine, name)
    if not is_real(value) or not isinstance(value, Integral) or value < least:
        refuse(machine, name, value, f"be an integer of at least {least}")


def check_weight_of_slack(machine: Any) -> None:
    """Require C to be positive; infinity allows no slack."""
    if not is_real(machine.C) or not machine.C > 0:
        refuse(machine, "C", machine.C, "be a positive number (infinity allows no slack)")


def check_verbose(machine: Any) -> None:
    """Require a truth value or an integer of at least 0."""
    if not isinstance(machine.verbose, bool | np.bool_):
        check_whole(machine, "verbose", least=0)


def check_random_state(machine: Any) -> None:
    """Require what NumPy makes random numbers from."""
    given = machine.random_state
    seed = isinstance(given, int | np.integer) and is_real(given) and 0 <= int(given) < 2**32
    if not (given is None or seed or isinstance(given, np.random.RandomState)):
        must = "be None, an integer from 0 to 2^32 - 1, or a numpy.random.RandomState"
        refuse(machine, "random_state", given, must)


def check_linear(machine: Any) -> None:
    """Check what the linear machines share."""
    check_real(machine, "tol", above=0)
    check_real(machine, "C", above=0)
    check_flag(machine, "fit_intercept")
    if machine.fit_intercept:
        check_real(machine, "intercept_scaling", above=0)
    if isinstance(machine.dual, str):
        check_choice(machine, "dual", ("auto",))
    else:
        check_flag(machine, "dual")
    check_verbose(machine)
    check_random_state(machine)
    check_whole(machine, "max_iter", least=0)
