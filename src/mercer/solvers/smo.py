"""Box-constrained quadratic programmes by sequential minimal optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Box, BoxAnswer
from mercer.backends.smo import smo as smo_on_rows
from mercer.gram import DenseGram, Gram, PartGram, PrecomputedGram, ShiftedGram
from mercer.problems import BoxQP, Dual
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_ITERATIONS_PER_ROW = 100
_LEAST_ITERATIONS = 10_000_000


@dataclass(frozen=True)
class SMO(Solver):
    """Second-order pair steps until no pair violates the optimality conditions by more than tol.

    Parameters
    ----------
    tol : float
        Largest allowed F_i - F_j over pairs that could still move (LIBSVM's criterion).
    max_iter : int or None
        Largest number of pair steps; None takes max(10^7, 100 n).
    """

    tol: float = 1e-3
    max_iter: int | None = None

    def refuses(self, problem: Any) -> str | None:
        """Take box programmes that have a feasible point."""
        if not isinstance(problem, BoxQP):
            return f"SMO answers BoxQP problems, not {type(problem).__name__}"
        if problem.infeasible():
            return "no point of the box has the required sums: the problem is infeasible"
        return None

    def run(self, problem: BoxQP, watch: Watch, start: Any = None) -> Solution:
        """Move pairs until the tolerance, a limit or the callback ends it."""
        n = len(problem.linear)
        limit = self.max_iter or max(_LEAST_ITERATIONS, _ITERATIONS_PER_ROW * n)
        # an earlier answer may belong to another box
        begin = problem.feasible_near(np.zeros(n) if start is None else start.coef)
        answer = _loop(problem, begin, self.tol, limit, watch)
        b, violation = answer.b, answer.violation
        status = _status(violation, self.tol, watch)
        if status is Status.SOLVED and _bends_down(problem.gram, b):
            status = Status.NOT_CONVEX
        intercept = middle(problem, b)
        return report(self, Dual(b, intercept), status, answer.iterations, watch)


def _loop(problem: BoxQP, start: Array, tol: float, limit: int, watch: Watch) -> BoxAnswer:
    gradient = problem.linear - problem.gram @ start if start.any() else problem.linear
    if watch.tick(0, np.inf):  # compiled loops are done with small problems before they first ask
        return BoxAnswer(start, gradient, 0, np.finfo(float).max)  # not known: far
    gram, shift, rows = problem.gram, None, None
    if isinstance(gram, ShiftedGram):
        gram, shift = gram.base, gram.shift
    if isinstance(gram, PartGram):
        gram, rows = gram.base, gram.index
    box = Box(
        np.asarray(gradient, dtype=np.float64),
        start,
        problem.lower,
        problem.upper,
        problem.kinks if np.any(problem.kink) else None,
        shift,
        problem.group,
        rows,
    )
    if isinstance(gram, DenseGram | PrecomputedGram):
        return choose_backend().box_qps(gram.dense(), [box], tol, limit, watch.tick)[0]
    held = problem.gram
    return smo_on_rows(lambda i: held.rows([i])[0], held.diag(), box, tol, limit, watch.tick)


def _status(violation: float, tol: float, watch: Watch) -> Status:
    if violation == np.inf and watch.stopped:
        return watch.stopped
    if not np.isfinite(violation) and violation != -np.inf:
        return Status.NOT_FINITE
    if violation <= tol:
        return Status.SOLVED
    return watch.stopped or Status.ITERATION_LIMIT


def _bends_down(gram: Gram, b: Array) -> bool:
    """Tell whether the answer itself shows negative curvature: b'Kb < 0."""
    support = np.flatnonzero(b)
    if not len(support):
        return False
    curvature = float(b @ (gram @ b))
    return curvature < -1e-10 * float(np.abs(gram.diag()[support]).max() * (b @ b))


def middle(problem: BoxQP, b: Array) -> float:
    """Give the offset halfway between the two sides of the optimality conditions.

    F = p - K b must be at most the offset where b can grow and at least where it can shrink.
    """
    F = problem.linear - problem.gram @ b
    rising = F[b < problem.upper].max(initial=-np.inf)
    falling = F[b > problem.lower].min(initial=np.inf)
    free = (b > problem.lower) & (b < problem.upper)
    if free.any():
        return float(np.clip(F[free].mean(), min(rising, falling), max(rising, falling)))
    finite = [v for v in (rising, falling) if np.isfinite(v)]
    return float(np.mean(finite)) if finite else 0.0
