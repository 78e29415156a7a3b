"""Linear systems that are singular to working precision: the limit of a vanishing penalty.

With E = S^1/2 K S^1/2 = V diag(m) V' and c = V'S^1/2 1, the ridge solution tends, as the penalty
goes to zero, to the weighted least squares fit of least norm. In directions where E vanishes only
the bias can fit anything, so the bias is fitted there, if the constant reaches there at all.
"""

from __future__ import annotations

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.problems import LinearSystem
from mercer.resources import require_memory
from mercer.solvers.base import Status
from mercer.solvers.ridge.weighted import weighted
from mercer.solvers.spectral.eigh import DECOMPOSED

_EPS = float(np.finfo(float).eps)


def least_norm(problem: LinearSystem, columns: Array) -> tuple[Array, Array, Status]:
    """Return coefficients, biases and status for targets that share a penalty."""
    n = problem.gram.shape[0]
    require_memory(
        DECOMPOSED * 8 * n * n,
        f"the eigendecomposition of {n} points",
        "Use a larger penalty instead.",
        held=problem.gram.nbytes,
    )
    # weights and penalty over a power of four, which changes no answer: S^1/2 K S^1/2 is finite
    half = int(np.frexp(np.sqrt(problem.row_weights.max(initial=0.0)))[1])
    root = np.ldexp(np.sqrt(problem.row_weights), -half)
    m, V = choose_backend().eigh(weighted(problem.gram, root))
    m = m + np.ldexp(problem.penalties[columns[0]], -2 * half)
    floor = n * _EPS * np.abs(m).max(initial=0.0)
    known = np.abs(m) > floor
    inverse = np.where(known, 1.0, 0.0) / np.where(known, m, 1.0)
    y, c = V.T @ (root[:, None] * problem.targets[:, columns]), V.T @ root
    free = np.where(known, 0.0, c)
    a, b = inverse[:, None] * y, np.zeros(y.shape[1])
    if problem.bias:
        reaches = free @ free > n * _EPS * (c @ c)
        pull = free if reaches else inverse * c
        b = pull @ y / (pull @ c or 1.0)
        a = inverse[:, None] * (y - np.outer(c, b))
        if reaches:  # coefficients sum to zero, at no change of the function
            a -= np.outer(free, c @ a) / (free @ free)
    return root[:, None] * (V @ a), b, _status(m, floor)


def _status(m: Array, floor: float) -> Status:
    if (m < -floor).any():
        return Status.NOT_CONVEX
    return Status.SOLVED if (m > floor).all() else Status.SINGULAR
