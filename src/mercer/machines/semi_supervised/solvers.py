"""Solvers of graph labels (Cholesky, conjugate gradients) and of deformed kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import factorizations
from mercer.backends.factorizations import least_squares, multiplied
from mercer.gram.policy import factor_bytes
from mercer.machines.semi_supervised.problem import (
    Deformation,
    DeformedKernel,
    GraphLabels,
    GraphValues,
)
from mercer.resources import require_memory
from mercer.rows.points import to_dense
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.dispatch import choose
from mercer.solvers.linear_algebra import factor_spd

# --- graph labels by Cholesky --------------------------------------------------------------------


@dataclass(frozen=True)
class GraphCholesky(Solver):
    """Write D - alpha W out on the free rows, factor it, and solve: exact to rounding.

    Parameters
    ----------
    tol : float
        Largest error of a value, in units of the largest target, that counts as solved.
    """

    answers = GraphLabels

    tol: float = 1e-8

    def run(self, problem: GraphLabels, watch: Watch, start: Any = None) -> Solution:
        """Solve."""
        free = problem.free
        require_memory(
            2 * factor_bytes(len(free)),
            f"the equations of {len(free)} rows without a label",
            "Use neighbors=10, a graph with few edges, or solver GraphConjugateGradient().",
            held=problem.gram.nbytes,
        )
        found = np.empty((0, problem.targets.shape[1] + 1))
        if len(free):
            A = np.empty((len(free), len(free)))
            for some in deadline.row_slices(len(A), len(A)):
                A[some] = -problem.alpha * to_dense(problem.edges[free[some]][:, free])
            A.flat[:: len(A) + 1] = problem.degrees[free]
            factor = factor_spd(A)
            found = np.column_stack([factor(column) for column in right_sides(problem).T])
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        status = Status.SOLVED if error_of(problem, found) <= self.tol else Status.INACCURATE
        return report(self, answer(problem, found), status, 1, watch)


# --- graph labels by conjugate gradients ---------------------------------------------------------

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


# --- accuracy of graph labels --------------------------------------------------------------------
#
# Right-hand sides, solution of all samples, and a bound on its error.


def right_sides(problem: GraphLabels) -> Array:
    """Return the right-hand sides of all targets, and of the steps to a label: (m, t + 1)."""
    return np.column_stack([problem.right, problem.degrees[problem.free]])


def answer(problem: GraphLabels, found: Array) -> GraphValues:
    """Return values and steps of all rows from those of the free rows, (m, t + 1)."""
    steps = np.zeros(len(problem.labelled))
    steps[problem.free] = found[:, -1]
    return GraphValues(problem.complete(found[:, :-1]), steps)


def error_of(problem: GraphLabels, found: Array) -> float:
    """Bound the error of values, in units of the largest target; infinite for useless steps."""
    if not len(found):
        return 0.0
    left = np.abs(problem.product(found) - right_sides(problem)) / units_of(problem)
    if not left[:, -1].max() <= _USEFUL:
        return np.inf
    return float(left[:, :-1].max(initial=0.0)) / size_of(problem) * gain_of(problem, found)


def gain_of(problem: GraphLabels, found: Array) -> float:
    """Return how many times larger than that of the equations the error of values may be."""
    if problem.clamped:
        return float(2.0 * max(1.0, found[:, -1].max(initial=0.0)))
    return float(np.sqrt(len(found)) / (1.0 - problem.alpha))


def goals_of(problem: GraphLabels, tol: float) -> Array:
    """Return what is to be left of every equation: (m, t + 1).

    Steps bound errors and are no answer themselves: a digit of them is enough.
    """
    goals = units_of(problem) * tol * size_of(problem)
    goals[:, -1] = 0.5 * _USEFUL * problem.degrees[problem.free]
    return goals


_USEFUL = 0.2  # of the degree of a row: an error of the equation of its steps


def units_of(problem: GraphLabels) -> Array:
    """Return what errors of equations are divided by: (m, t + 1)."""
    units = np.repeat(problem.units[:, None], problem.targets.shape[1] + 1, axis=1)
    units[:, -1] = problem.degrees[problem.free]
    return units


def size_of(problem: GraphLabels) -> float:
    """Return the largest target, or one."""
    return float(np.abs(problem.targets).max(initial=0.0)) or 1.0


# --- deformed kernel -----------------------------------------------------------------------------
#
# One linear system with all samples, or with the features.

_EPS = float(np.finfo(np.float64).eps)
_COPIES = 4  # of n^2 numbers: K, M K, its factor, and a product on the way


@dataclass(frozen=True)
class Deform(Solver):
    """Solve (I + K M) U = K J for U = K T J, J the labelled columns; then T J = J - M U.

    With K = F F' by D < n features the system is I + F'MF, of size D. The second form has no
    inverse in it: T is as exact as U.
    """

    answers = DeformedKernel

    def run(self, problem: DeformedKernel, watch: Watch, start: Any = None) -> Solution:
        """Solve, directly."""
        if problem.ratio == 0:
            K = np.asarray(problem.gram.rows(problem.labelled), dtype=np.float64)
            value = Deformation(problem.units, _symmetric(K[:, problem.labelled]))
            return report(self, value, Status.SOLVED, 1, watch)
        few = problem.gram.factor is not None and problem.gram.rank < problem.gram.shape[0]
        deformed, status = _by_features if few else _by_rows, Status.SOLVED
        try:
            U = deformed(problem, _solved)
        except np.linalg.LinAlgError:
            U, status = deformed(problem, least_squares), Status.SINGULAR
        watch.tick(1, np.nan)  # told, but a direct answer has no half way to stop at
        value = Deformation(problem.units - problem.bend(U), _symmetric(U[problem.labelled]))
        return report(self, value, status, 1, watch)


def _by_rows(problem: DeformedKernel, solve: Callable[..., Array]) -> Array:
    n = problem.gram.shape[0]
    what = f"the deformed kernel of {n} rows"
    require_memory(8 * _COPIES * n * n, what, "Use fewer rows, or a kernel with few features.")
    K = np.asarray(problem.gram.dense(), dtype=np.float64)
    A = problem.bend(K).T  # (M K)' = K M
    A.flat[:: n + 1] += 1.0
    found: Array = solve(A, K[:, problem.labelled])
    return found


def _by_features(problem: DeformedKernel, solve: Callable[..., Array]) -> Array:
    F: Any = to_dense(problem.gram.factor)
    A = multiplied(F.T, problem.bend(F))
    A = (A + A.T) / 2
    A.flat[:: len(A) + 1] += 1.0
    inner = solve(A, F[problem.labelled].T)
    return multiplied(F, inner)


def _solved(A: Array, B: Array) -> Array:
    """Solve; raise `LinAlgError` where the identity in A is lost next to K.

    Rounding of the entries moves A by n eps max|A| at most in the norm. From 1 on, nothing is left
    of the identity, and whether a pivot is exactly zero is a matter of the order of operations.
    """
    if len(A) * _EPS * float(np.abs(A).max(initial=0.0)) >= 1.0:
        raise np.linalg.LinAlgError
    solved = factorizations.solve(A, B)
    if np.isnan(solved).any():
        raise np.linalg.LinAlgError
    return solved


def _symmetric(A: Array) -> Array:
    return np.asarray((A + A.T) / 2)


# --- choice --------------------------------------------------------------------------------------

choose.register(DeformedKernel)(lambda problem: Deform())


@choose.register
def _(problem: GraphLabels) -> Solver:
    return GraphConjugateGradient() if problem.has_few_edges else GraphCholesky()
