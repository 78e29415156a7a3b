"""Weights of the sum of kernels that is aligned best with a target: nonnegative least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mercer.array_types import Array
from mercer.problems.kernel_learning.kernel_alignment import KernelAlignment, KernelWeights
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_NOTHING = 1e-12  # of the largest part: a weight that is rounding
_RANK = 1e-13  # of the largest eigenvalue: below, kernels that are sums of others


@dataclass(frozen=True)
class Nonnegative(Solver):
    """Write d'Md - 2 a'd as |A d - c|^2 by eigenvalues of M, and let an active set solve it."""

    answers = KernelAlignment

    def _obstacle(self, problem: KernelAlignment) -> str | None:
        """Take alignments, of at least one kernel that has one."""
        if not problem.grams:
            return "there is no kernel to give a weight to"
        return None

    def run(self, problem: KernelAlignment, watch: Watch, start: Any = None) -> Solution:
        """Measure the inner products, and solve."""
        if watch.tick(0, np.inf):
            equal = np.full(len(problem.grams), 1.0 / len(problem.grams))
            status = watch.stopped or Status.STOPPED
            return report(self, KernelWeights(equal), status, 0, watch)
        moments = problem.moments
        weights = aligned(moments.kernels, moments.target)
        watch.tick(1, 0.0)
        return report(self, KernelWeights(weights), Status.SOLVED, 1, watch)


def aligned(M: Array, a: Array) -> Array:
    """Return the weights, of sum 1; equal ones where no kernel is aligned at all."""
    size = np.sqrt(np.maximum(M.diagonal(), np.finfo(float).tiny))
    unit, right = M / size / size[:, None], a / size  # cosines: kernels of any size alike
    right = right / max(float(np.abs(right).max(initial=0.0)), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(unit)
    kept = values > _RANK * values[-1]
    root = np.sqrt(values[kept])
    d = nnls(root[:, None] * vectors[:, kept].T, vectors[:, kept].T @ right / root)[0] / size
    d[d * size < _NOTHING * (d * size).max(initial=0.0)] = 0.0
    total = float(d.sum())
    return np.asarray(d / total) if total > 0 else np.full(len(a), 1.0 / len(a))
