"""Values of a graph from products alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.problems import GraphLabels
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.semi_supervised.graph_answer import (
    answer,
    error_of,
    gain_of,
    goals_of,
    right_sides,
)

_AIM = 0.3  # of what is asked for, so that the true residual meets it
_RESTARTS = 8  # the residual that is carried along drifts from the true one by rounding


@dataclass(frozen=True)
class GraphConjugateGradient(Solver):
    """Conjugate gradients on D - alpha W, preconditioned by D; for graphs with few edges.

    Parameters
    ----------
    tol : float
        Stop when no value has an error above it, in units of the largest target.
    max_iter : int
        Largest number of products with W.
    """

    answers = GraphLabels

    tol: float = 1e-8
    max_iter: int = 10_000

    def run(self, problem: GraphLabels, watch: Watch, start: Any = None) -> Solution:
        """Descend, look at the true residual, and descend again from there if it is not small."""
        B = right_sides(problem)
        X, steps, status, before = np.zeros_like(B), 0, Status.SOLVED, np.inf
        for turn in range(_RESTARTS):
            error = error_of(problem, X)
            if error <= self.tol:
                status = Status.SOLVED
                break
            if turn > 1 and error > 0.5 * before:  # at first, steps are not known yet
                status = Status.INACCURATE
                break
            before = error
            X = X.copy()
            goals = _AIM * goals_of(problem, self.tol / gain_of(problem, X))
            with watch.keeping():
                taken, status = self._descend(problem, B, X, goals, watch, steps)
                steps += taken
            status = watch.stopped or status
            if status is not Status.SOLVED:
                break
        return report(self, answer(problem, X), status, steps, watch)

    def _descend(
        self, problem: GraphLabels, B: Array, X: Array, goals: Array, watch: Watch, done: int
    ) -> tuple[int, Status]:
        """Run one recurrence for each column, changing X in place."""
        d = problem.degrees[problem.free][:, None]
        R = B - problem.product(X)
        Z = R / d
        P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
        for step in range(1, self.max_iter - done + 1):
            AP = problem.product(P)
            curvature = np.einsum("ij,ij->j", P, AP)
            pace = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
            X += pace * P
            R -= pace * AP
            worst = float((np.abs(R) / goals).max())
            if not np.isfinite(worst):
                return step, Status.NOT_FINITE
            if worst <= 1.0:
                return step, Status.SOLVED
            if watch.tick(done + step, worst * self.tol):
                return step, watch.stopped or Status.STOPPED
            Z = R / d
            rz, before = np.einsum("ij,ij->j", R, Z), rz
            P = Z + np.divide(rz, before, out=np.zeros_like(rz), where=before > 0) * P
        return self.max_iter - done, Status.ITERATION_LIMIT
