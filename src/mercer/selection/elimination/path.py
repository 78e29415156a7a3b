"""One feature after another is left out: those first whose loss the margin feels least."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer import deadline
from mercer.array_types import Array
from mercer.kernels import Kernel
from mercer.machines.base.machine import is_precomputed, kernel_of
from mercer.machines.base.other_names import Machine
from mercer.machines.base.parameters import ParameterError, is_real
from mercer.resources import require_memory
from mercer.selection.elimination.margin_loss import margin_losses

_FITS = "SVC(), SVR() or KernelRidge()"


@dataclass(frozen=True, eq=False)
class EliminationStep:
    """A fit on the way.

    Attributes
    ----------
    features : int array
        The features of this fit.
    losses : array
        What |w|^2 / 2 loses without each of them.
    kernel : Kernel
        The kernel of this fit.
    machine : object
        The fitted machine, which takes kernel matrices.
    """

    features: Array
    losses: Array
    kernel: Kernel
    machine: Any


@dataclass(frozen=True, eq=False)
class EliminationPath:
    """The order in which features were left out.

    Attributes
    ----------
    ranking : (d,) int array
        1 for features that were kept to the end, larger ones the earlier a feature was left out.
    sizes : (m,) int array
        How many features each fit had.
    features : tuple of int arrays
        Which ones.
    losses : tuple of arrays
        What |w|^2 / 2 loses without each of them.
    """

    ranking: Array
    sizes: Array
    features: tuple[Array, ...]
    losses: tuple[Array, ...]


def eliminate_features(
    machine: Any, X: Any, y: Any, *, n_features: int = 1, step: int | float = 1
) -> EliminationPath:
    """Leave features out one after another, by what the margin loses without them.

    Parameters
    ----------
    machine : SVC, SVR or KernelRidge
        Fitted again after every step, from the last answer where it can.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels or targets.
    n_features : int
        How many to keep.
    step : int or float
        How many to leave out at once, or which share of those that are left.

    Returns
    -------
    EliminationPath
        The order, and what was lost.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.selection import eliminate_features
    >>> X = np.random.default_rng(0).normal(size=(80, 5))
    >>> y = X[:, 1] ** 2 + X[:, 3] ** 2 > 1.5  # no line tells these apart
    >>> path = eliminate_features(SVC("gaussian(3)", C=10), X, y)
    >>> sorted(path.features[-2].tolist())
    [1, 3]
    """
    rows, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
    check_machine(machine)
    ranking = np.ones(rows.shape[1], dtype=np.int64)
    steps = list(steps_of(machine, rows, targets, n_features, step))
    for later, earlier in zip(steps[1:], steps, strict=False):
        gone = np.setdiff1d(earlier.features, later.features)
        ranking[gone] = len(steps) - steps.index(earlier)
    return EliminationPath(
        ranking,
        np.array([len(one.features) for one in steps]),
        tuple(one.features for one in steps),
        tuple(one.losses for one in steps),
    )


def steps_of(
    machine: Any, X: Array, y: Array, fewest: int, step: int | float
) -> Iterator[EliminationStep]:
    """Return the fits of an elimination, from all features to the fewest."""
    n, d = X.shape
    require_memory(8 * 3 * n * n, f"eliminating features: K of {n} rows", "Use fewer rows.")
    inner = clone(machine).set_params(kernel="precomputed")
    if "warm_start" in inner.get_params():
        inner.set_params(warm_start=True)
    active = np.arange(d)
    while True:
        deadline.check()
        rows = np.ascontiguousarray(X[:, active])
        kernel = kernel_of(machine.kernel, rows)
        inner.fit(np.asarray(kernel(rows), dtype=np.float64), y)
        losses = margin_losses(kernel, rows, coefficients_of(inner, n))
        yield EliminationStep(active, losses, kernel, inner)
        if len(active) <= fewest:
            return
        count = int(step) if step >= 1 else max(1, int(step * len(active)))
        count = min(count, len(active) - fewest)
        # equal losses: the last columns go first
        order = np.lexsort((-np.arange(len(active)), losses))
        active = np.sort(active[order[count:]])


def coefficients_of(machine: Any, n: int) -> Array:
    """Return the coefficients of all functions of a machine that takes kernel matrices: (n, k)."""
    ends = np.vstack([np.eye(n), np.zeros((1, n))])
    if not hasattr(machine, "_expansion"):
        name = type(machine).__name__
        raise ParameterError(f"FeatureElimination: {name} is no sum over its rows; use {_FITS}")
    values = np.asarray(machine._expansion(ends))
    return np.asarray(values[:-1] - values[-1])


def check_machine(machine: Any) -> None:
    """Raise unless a machine has one function of its kernel, or one for each class."""
    if not (isinstance(machine, Machine) and hasattr(machine, "kernel")):
        raise ParameterError(f"FeatureElimination: machine={machine!r} must have a kernel: {_FITS}")
    if is_precomputed(machine.kernel):
        raise ParameterError(
            "FeatureElimination: machine has kernel='precomputed', which knows no features; pass "
            "the kernel and rows"
        )


def check_step(step: Any) -> None:
    """Raise unless a step is a count or a share."""
    whole = is_real(step) and (step >= 1 and float(step).is_integer())
    if not (whole or (is_real(step) and 0 < step < 1)):
        raise ParameterError(
            f"FeatureElimination: step={step!r} must be a positive integer, or a share between 0 "
            "and 1"
        )
