"""What slack costs: C, for all rows or for each, and how it goes with nu."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.machines.base.parameters import is_real, refuse, shortened
from mercer.machines.base.targets import DistinctRows


def check_cost(machine: Any) -> None:
    """Require C to be a positive number, or one for each row; infinity allows no slack."""
    C = machine.C
    if is_real(C):
        if not C > 0:
            refuse(machine, "C", C, "be a positive number (infinity allows no slack)")
        return
    try:
        costs = np.asarray(C, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        costs = np.zeros(())
    if (
        isinstance(C, bool | str | bytes)
        or costs.ndim != 1
        or not (costs.size and (costs > 0).all())
    ):
        refuse(machine, "C", C, "be a positive number, or an array of one for each row")


def refuse_squared_beside_nu(machine: Any, name: str) -> None:
    """Refuse squared slack in the nu form, whose box bounds slack that counts as it is."""
    if machine.nu is not None and getattr(machine, name) == "l2":
        refuse(
            machine,
            name,
            "l2",
            f"be 'l1' beside nu={shortened(machine.nu)}: a share of rows outside is bounded by "
            "slack that counts as it is. For squared slack set nu=None and choose C",
        )


def warn_unused_beside_nu(machine: Any, name: str) -> None:
    """Warn that a parameter which was set has no effect: nu stands in its place."""
    if machine.nu is None:
        return
    default = signature(type(machine)).parameters[name].default
    value = getattr(machine, name)
    if is_real(value) and value == default:
        return
    shown = shortened(value) if is_real(value) else "<array>"
    warnings.warn(
        f"{type(machine).__name__}: {name}={shown} has no effect beside nu={machine.nu}, which "
        f"stands in its place. Set nu=None to use it, or leave {name} at {default}.",
        UserWarning,
        stacklevel=6,
    )


def costs_of(machine: Any, rows: DistinctRows, weights: Array) -> Array:
    """Return the weight of the slack of each merged row: C times how often it counts."""
    if is_real(machine.C):
        with np.errstate(over="ignore"):
            return _as_finite(float(machine.C) * rows.weight, np.isfinite(machine.C))
    C = np.asarray(machine.C, dtype=np.float64)
    if len(C) != len(weights):
        refuse(machine, "C", machine.C, f"have one entry for each of the {len(weights)} rows")
    with np.errstate(over="ignore", invalid="ignore"):  # infinity times no weight: not looked at
        return _as_finite(rows.total(C * weights), np.isfinite(C).all())


def _as_finite(costs: Array, finite: bool | np.bool_) -> Array:
    """Return costs of a finite C as finite numbers: what overflowed is not the hard margin."""
    return np.minimum(costs, np.finfo(float).max) if finite else np.asarray(costs)


def amounts_of(machine: Any, weights: Array) -> Array:
    """Return what copies of a row share its coefficient by: their weight, times their own C."""
    C = np.asarray(machine.C, dtype=np.float64)
    return weights * C if C.ndim and np.isfinite(C).all() else weights
