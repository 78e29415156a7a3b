"""What of several tasks is learnt, between which bounds, and from where."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.array_types import Array, Points
from mercer.kernels import Kernel
from mercer.machines.process.learning import (
    NOISE,
    check_targets,
    flat_at,
    names_to_learn,
    range_of,
    require_matrices,
)
from mercer.problems.multitask.regression import TaskEvidence
from mercer.problems.process.kernel_parameters import KernelParameters

TASKS = "task_covariance"
_SPREAD = 0.5  # of the size of W: standard deviation of its entries at further starts
_SLANT = 0.1  # of the size of W: where all tasks are apart, slopes by what they share are zero


def learnt_names(machine: Any, kernel: Kernel) -> tuple[str, ...]:
    """Return what is learnt: with B, a factor before the kernel is none of it."""
    found = names_to_learn(machine, kernel, (TASKS, NOISE))
    every = isinstance(machine.optimize, bool | np.bool_)
    return tuple(name for name in found if not (every and name == "factor"))


def task_problem(
    machine: Any,
    kernel: Kernel,
    rows: tuple[Points, Array, Array],
    B: Array,
    names: list[str] | None,
    learnt: tuple[str, ...],
    seed: int = 0,
) -> TaskEvidence:
    """Return the search for B, parameters and noise.

    Parameters
    ----------
    machine : MultiTaskGaussianProcess
        With noise, bounds and starts.
    kernel : Kernel
        To start from.
    rows : (Points, (n, T) array, (n,) array)
        Rows of positive weight, their readings and weights.
    B : (T, T) array
        To start from.
    names : list of str or None
        Names of the columns.
    learnt : tuple of str
        What is learnt.
    seed : int
        Of the further starts.
    """
    X, targets, weights = rows
    whole = not np.isnan(targets).any()
    require_matrices(machine, len(targets) if whole else int(np.sum(~np.isnan(targets))))
    check_targets(machine, targets)
    known = tuple(name for name in learnt if name not in (TASKS, NOISE))
    inner = KernelParameters(kernel, known, names)
    begin, noise = inner.logs, float(machine.noise)
    if NOISE in learnt:
        begin = np.append(begin, np.log(noise))
    read = ~np.isnan(targets)
    squares = weights @ np.where(read, np.square(targets), 0.0)
    size = float(squares.sum() / (weights @ read).sum())
    size = size if np.isfinite(size) and size > 0 else 1.0
    variances = [False] * inner.size + [True] * (NOISE in learnt)
    found = range_of(machine, begin, variances, size, seed)
    lower, upper, starts = found.lower, found.upper, found.starts
    if TASKS in learnt:
        W = _root(B, size if machine.task_covariance is None else None)
        places = np.tril_indices(len(B))
        first = W[places]
        reach = np.sqrt(float(machine.bounds[1])) * max(np.abs(W).max(), np.sqrt(size))
        drawn = np.random.default_rng(seed).standard_normal((len(starts), len(first)))
        drawn[0] = 0.0
        moved = first + _SPREAD * np.abs(W).max() * drawn
        lower = np.concatenate([np.full(len(first), -reach), lower])
        upper = np.concatenate([np.full(len(first), reach), upper])
        starts = np.hstack([moved, starts])
    return TaskEvidence(
        X,
        inner,
        targets,
        weights,
        B,
        TASKS in learnt,
        noise,
        NOISE in learnt,
        lower,
        upper,
        starts,
        flat_at(machine),
    )


def _root(B: Array, size: float | None) -> Array:
    """Return W with W W' = B, lower triangular; slightly slanted, of the targets' size, for None.

    Where tasks start with nothing in common, signs of what they share are undecided: some slant
    lets the search begin.
    """
    if size is not None:
        count = len(B)
        slanted = np.eye(count) + _SLANT * np.tril(np.ones((count, count)), -1)
        return np.asarray(np.sqrt(size) * slanted)
    values, vectors = np.linalg.eigh(B)
    half = vectors * np.sqrt(np.maximum(values, 1e-12 * max(float(values[-1]), 1e-300)))
    R: Any = np.linalg.qr(half.T, mode="r")
    return np.asarray((R * np.where(R.diagonal() < 0, -1.0, 1.0)[:, None]).T)
