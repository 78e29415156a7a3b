"""Hyperparameters of Gaussian processes: which are learned, their bounds, starts, and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.backends import choose_backend
from mercer.kernels import Kernel
from mercer.kernels.derivatives import NoSlopeError, parameters
from mercer.machines.base.machine import is_precomputed
from mercer.machines.base.parameters import refuse
from mercer.machines.gaussian_process.problem import Evidence, KernelParameters, LaplaceEvidence
from mercer.resources import require_memory
from mercer.rows.points import row_count
from mercer.solvers.base import Solution
from mercer.solvers.bounded_descent import FLAT

NOISE = "noise"
_LARGEST = 1e140  # targets: sums of their squares over a noise are numbers up to here
_COPIES = 6  # K, its inverse, the slope, and what products need
_SPREAD = 1.0  # standard deviation of the logarithms of further starts
_SMALLEST = float(np.log(np.finfo(float).tiny))  # below, the exponential loses digits, then all


def check_learning(machine: Any) -> None:
    """Check `optimize`, `bounds` and `starts` of a machine."""
    given = machine.optimize
    names = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    if not isinstance(given, bool | np.bool_) and not (names and len(given)):
        refuse(machine, "optimize", given, "be True, False, or a list of names of parameters")
    try:
        low, high = (float(v) for v in machine.bounds)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not 0 < low <= 1 <= high < np.inf:
        refuse(machine, "bounds", machine.bounds, "be two positive numbers around 1")
    if given is not False and is_precomputed(machine.kernel):
        raise ValueError(
            f"{type(machine).__name__}: optimize={given!r} needs a kernel of rows, but the kernel "
            "is precomputed; pass the rows and a kernel, or optimize=False"
        )


def names_to_learn(
    machine: Any, kernel: Kernel, others: tuple[str, ...] = (NOISE,)
) -> tuple[str, ...]:
    """Return the names that `optimize` asks for; refuse those that cannot be learnt.

    Parameters
    ----------
    machine : estimator
        With the parameter `optimize`.
    kernel : Kernel
        Its kernel.
    others : tuple of str
        What can be learnt beside the kernel.
    """
    try:
        known = [*(each.name for each in parameters(kernel)), *others]
    except NoSlopeError as error:
        raise ValueError(
            f"{type(machine).__name__}: kernel={kernel!r} has no gradient in its parameters: "
            f"{error}; or optimize=False"
        ) from error
    if isinstance(machine.optimize, bool | np.bool_):
        if not known:
            raise ValueError(
                f"{type(machine).__name__}: kernel={kernel!r} has no parameter to learn; write a "
                "factor before it, such as 1.0 * kernel, or pass optimize=False"
            )
        return tuple(known)
    for name in machine.optimize:
        if name not in known:
            raise ValueError(
                f"{type(machine).__name__}: optimize names {name!r}; what can be learnt of "
                f"{kernel!r} is {', '.join(known)}"
            )
    return tuple(machine.optimize)


@dataclass(frozen=True, eq=False)
class ParameterRange:
    """Bounds on logarithms, and where to start.

    Attributes
    ----------
    lower, upper : (p,) array
        Bounds.
    starts : (k, p) array
        The first is what was given.
    """

    lower: Array
    upper: Array
    starts: Array


def range_of(
    machine: Any, begin: Array, weights: Sequence[bool], size: float, seed: int
) -> ParameterRange:
    """Return bounds and starts.

    Parameters
    ----------
    machine : estimator
        With `bounds` and `starts`.
    begin : (p,) array
        Logarithms of the parameters that were given.
    weights : sequence of bool
        Which of them are variances, in units of the targets squared.
    size : float
        Mean square of the targets, to which these may go as well; zero where it says nothing.
    seed : int
        Of the further starts.
    """
    low, high = np.log(np.array(machine.bounds, dtype=np.float64))
    lower, upper = begin + low, begin + high
    if size > 0:
        variance, reach = np.asarray(weights, dtype=bool), np.log(size)
        lower = np.where(variance, np.minimum(lower, reach + low), lower)
        upper = np.where(variance, np.maximum(upper, reach + high), upper)
    lower = np.maximum(lower, _SMALLEST)
    upper = np.maximum(upper, lower)
    drawn = _SPREAD * np.random.default_rng(seed).standard_normal(
        (int(machine.starts) - 1, len(begin))
    )
    starts = begin + np.vstack([np.zeros(len(begin)), drawn])
    return ParameterRange(lower, upper, np.clip(starts, lower, upper))


def check_targets(machine: Any, targets: Array) -> None:
    """Raise where slopes of the likelihood, squares of targets over the noise, overflow."""
    largest = float(np.nanmax(np.abs(targets), initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"{type(machine).__name__}: squares of y, whose largest entry is {largest:.0e}, are "
            "beyond float64, and with optimize so is the likelihood. Scale y"
        )


def evidence_problem(
    machine: Any,
    kernel: Kernel,
    rows: tuple[Points, Array, Array],
    names: list[str] | None,
    learnt: tuple[str, ...],
    seed: int = 0,
    landmarks: Points | None = None,
) -> Evidence:
    """Return the search for parameters of a regression.

    Parameters
    ----------
    machine : GaussianProcess
        With noise, bias, bounds and starts.
    kernel : Kernel
        To start from.
    rows : (Points, (n, t) array, (n,) array)
        Rows of positive weight, their targets and weights.
    names : list of str or None
        Names of the columns.
    learnt : tuple of str
        What is learnt.
    seed : int
        Of the further starts.
    landmarks : Points, optional
        Rows that stand for the kernel.
    """
    X, targets, weights = rows
    require_matrices(machine, len(targets) if landmarks is None else row_count(landmarks))
    check_targets(machine, targets)
    inner = KernelParameters(kernel, tuple(name for name in learnt if name != NOISE), names)
    learns_noise = NOISE in learnt
    begin, variances = inner.logs, [p.is_weight for p in inner.learnt for _ in p.values]
    if learns_noise:
        begin, variances = np.append(begin, np.log(float(machine.noise))), [*variances, True]
    size = _mean_square(targets, weights, bool(machine.bias))
    found = range_of(machine, begin, variances, size, seed)
    if learns_noise and size > 0:
        prior = _prior_variance(inner, begin[: inner.size], variances, X, weights)
        if prior is not None:
            shift = np.log(size) - np.log(prior + float(machine.noise))
            moved = found.starts + np.where(variances, shift, 0.0)
            found = replace(found, starts=np.clip(moved, found.lower, found.upper))
    return Evidence(
        X,
        inner,
        targets,
        weights,
        bool(machine.bias),
        float(machine.noise),
        learns_noise,
        found.lower,
        found.upper,
        found.starts,
        flat_at(machine),
        landmarks,
    )


def _mean_square(targets: Array, weights: Array, bias: bool) -> float:
    """Return the mean square of the targets, around their mean if there is a bias."""
    share = weights / weights.sum()
    left = targets - share @ targets if bias else targets
    size = float(share @ np.mean(np.square(left), axis=1))
    return size if np.isfinite(size) else 0.0


def _prior_variance(
    kernel: KernelParameters, logs: Array, variances: Sequence[bool], X: Points, weights: Array
) -> float | None:
    """Return the mean of k(x, x); None where variances that are learnt do not multiply all of k.

    Where they do, units of the targets decide nothing: the search starts where prior and targets
    are of one size.
    """
    more = logs + np.asarray(variances[: len(logs)], dtype=np.float64)
    own, larger = (
        choose_backend().diagonal(kernel.formula(at), X, np.float64) for at in (logs, more)
    )
    mean = float(weights @ own / weights.sum())
    return mean if mean > 0 and np.allclose(larger, math.e * own, rtol=1e-9) else None


def flat_at(machine: Any) -> float:
    """Return the slope that counts as none: what the search was asked for, and rounding beside."""
    return max(FLAT, 2.0 * float(machine.tol))


def require_matrices(machine: Any, n: int) -> None:
    """Require the memory that a search on n rows takes."""
    require_memory(
        _COPIES * 8 * n * n,
        f"{type(machine).__name__} learning parameters from {n} rows",
        "Alternatives: (fewer) landmarks, approximation=Nystrom(m); learn from some of the rows, "
        "and fit all with optimize=False; or a larger budget with mercer.config(memory=...).",
    )


def laplace_problem(
    machine: Any,
    kernel: Kernel,
    rows: tuple[Points, Array, Array],
    names: list[str] | None,
    learnt: tuple[str, ...],
    seed: int = 0,
) -> LaplaceEvidence:
    """Return the search for parameters of a classifier; arguments as in `evidence_problem`."""
    X, signs, weights = rows
    require_matrices(machine, len(signs))
    inner = KernelParameters(kernel, learnt, names)
    found = range_of(machine, inner.logs, [False] * inner.size, 0.0, seed)
    return LaplaceEvidence(
        X, inner, signs, weights, found.lower, found.upper, found.starts, flat_at(machine)
    )


def by_name(kernel: KernelParameters, gradient: Array) -> dict[str, Any]:
    """Return the gradient by the names of the parameters."""
    found: dict[str, Any] = {}
    first = 0
    for each in kernel.learnt:
        last = first + len(each.values)
        found[each.name] = gradient[first:last] if each.is_array else float(gradient[first])
        first = last
    return found


def together(solution: Solution, found: Solution | None) -> Solution:
    """Return the posterior's solution with the way of the search, and the worse of both endings."""
    if found is None:
        return solution
    return replace(
        solution,
        value=replace(solution.value, logs=found.value.logs),
        status=found.status if solution.status.ok else solution.status,
        iterations=found.iterations,
        seconds=found.seconds + solution.seconds,
        solver=found.solver,
        trace=found.trace,
        detail=found.detail or solution.detail,
    )


def given_variance(machine: Any, prior_var: Any, n: int) -> Array | None:
    """Check k(z, z) of new rows, as a call gives them."""
    if prior_var is None:
        return None
    prior = np.array(prior_var, dtype=np.float64)
    if prior.shape != (n,) or not np.isfinite(prior).all():
        raise ValueError(
            f"{type(machine).__name__}: prior_var has shape {prior.shape}; for {n} new rows it "
            f"must be finite, of shape {(n,)}"
        )
    return prior


def refuse_large(machine: Any, y: Array) -> None:
    """Raise where squares of targets, which likelihoods are made of, leave the range of float64."""
    largest = float(np.nanmax(np.abs(y), initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"{type(machine).__name__}: y has entries as large as {largest:.0e}, and likelihoods "
            "need their squares; divide y by a large number"
        )
