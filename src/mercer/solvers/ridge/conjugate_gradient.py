"""Linear systems from products alone: conjugate gradients, preconditioned."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends.blas import one_blas_thread
from mercer.gram import Gram, ShiftedGram, pivoted_cholesky
from mercer.problems import Coefficients, LinearSystem
from mercer.resources import rows_at_once
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.full.bordered import Bordered
from mercer.solvers.ridge.full.preconditioner import Preconditioner
from mercer.solvers.ridge.full.products import in_float32

_RESTARTS = 12  # looks at the true residual; each must find it halved
_LOOK = 1e-3  # of the true residual: where the one carried along has fallen to this, look again
_DRIFT = 0.1  # of the true residual: beyond, the directions so far are worth nothing
_FACTORS = 3  # arrays of the size of the low-rank factor: it, its order changed, and solved with
_FACTOR_SHARE = 0.4  # of the memory budget, for them
_BLOCK_SHARE = 0.2  # of the memory budget, for the factors of the blocks
# A column more costs 2 n r operations, a product n^2 / 2 evaluations of about ten times the time of
# an operation: at this many times the root of n, the factor takes as long as twenty products.
_RANK = 8.0
_LEAST_RANK = 500  # up to here the factor is made in a moment


@dataclass(frozen=True)
class ConjugateGradient(Solver):
    """Preconditioned conjugate gradients; K is never stored unless the Gram stores it.

    The preconditioner is F F' + B: F from a randomly pivoted Cholesky factor, B the diagonal blocks
    of what that leaves, over groups of rows near one another (`Preconditioner`). Where K is
    evaluated anew for each product, iterations run on entries in float32, and the residual is
    replaced by the true one, in float64, now and then; where that shows float32 to be too little,
    they go on in float64.

    Parameters
    ----------
    tol : float
        Stop when the residual of every target, the bias included, is below tol times its
        right-hand side, recomputed in float64.
    max_iter : int
        Largest number of products with K.
    rank : int or None
        Columns of the partial Cholesky factor; None for 500 or eight times the root of the rows,
        whichever is more. Fewer are taken where the memory budget is small.
    block : int
        Rows of a block; 0 for none. Smaller ones are taken where the memory budget is small.
    """

    answers = LinearSystem

    tol: float = 1e-8
    max_iter: int = 2000
    rank: int | None = None
    block: int = 1500

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with a positive diagonal added."""
        if not (problem.penalties > 0).all():
            return "ConjugateGradient needs a positive penalty; use solver=Cholesky()"
        return None

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        coef, intercept, status, steps = np.empty((n, t)), np.zeros(t), Status.SOLVED, 0
        # an error at the level of the penalty is as good as none
        trace_tol = float(problem.penalties.min() * (1.0 / problem.row_weights).sum())
        rank, block = self.sizes(n)
        rough = pivoted_cholesky(problem.gram, rank, trace_tol=trace_tol)
        size = block if rough.trace_left > trace_tol else 0  # nothing is left to be blocked
        fast = in_float32(problem.gram)
        for columns in problem.groups():
            shift = problem.shift(columns[0])
            bordered = Bordered.of(problem, columns)
            descent = _Descent(
                bordered,
                ShiftedGram(problem.gram, shift),
                None if fast is None else ShiftedGram(fast, shift),
                Preconditioner.of(problem.gram, rough, shift, size),
                self.tol,
                self.max_iter,
            )
            begin = None if start is None else bordered.start(start.coef[:, columns])
            ended = descent.run(begin, watch)
            coef[:, columns], intercept[columns] = bordered.answer(descent.X)
            steps += descent.steps
            status = status if ended is Status.SOLVED else ended
        return report(self, Coefficients(coef, intercept), status, steps, watch)

    def sizes(self, n: int) -> tuple[int, int]:
        """Return the rank and the rows of a block that the memory budget allows for n rows."""
        wanted = max(_LEAST_RANK, int(_RANK * sqrt(n))) if self.rank is None else self.rank
        rank = min(wanted, n)
        if rank:
            rank = rows_at_once(n, rank, arrays=_FACTORS, share=_FACTOR_SHARE)
        block = min(self.block, n)
        return rank, rows_at_once(n, block, share=_BLOCK_SHARE) if block else 0


@dataclass
class _Descent:
    """One run of conjugate gradients for all right-hand sides, which share the product with K."""

    bordered: Bordered
    exact: Gram
    fast: Gram | None
    precondition: Preconditioner
    tol: float
    max_iter: int
    steps: int = 0
    X: Array = field(default_factory=lambda: np.empty((0, 0)))

    def run(self, start: Array | None, watch: Watch) -> Status:
        """Descend, look at the true residual, and go on from there until that is small.

        The residual that a recurrence carries along drifts from the true one by rounding, and by
        what float32 takes from K.
        """
        B = self.bordered.right
        X = np.zeros_like(B) if start is None else start
        gram, before, way = self.fast or self.exact, np.inf, None
        self.X, carried, best = X, None, np.inf
        for _ in range(_RESTARTS):
            R = B - self.exact @ X if np.any(X) else B.copy()
            true = self.bordered.measure(X, R)
            if true < best:
                self.X, best = X.copy(), true
            if true <= self.tol:
                return Status.SOLVED
            if not true <= 0.5 * before:
                if gram is self.exact:
                    return Status.INACCURATE if np.isfinite(true) else Status.NOT_FINITE
                gram, X, before, way = self.exact, self.X.copy(), np.inf, None
                continue
            before = true
            if carried is not None and np.linalg.norm(R - carried) > _DRIFT * np.linalg.norm(R):
                way = None
            goal, ended = max(0.5 * self.tol, _LOOK * true), Status.TIME_LIMIT
            X = X.copy()
            with watch.keeping(), one_blas_thread():  # X is changed in place
                carried, way, ended = self._descend(gram, X, R, way, goal, watch)
            if ended is Status.NOT_CONVEX and gram is not self.exact:
                gram, X, before, way = self.exact, self.X.copy(), np.inf, None
            elif ended is not Status.SOLVED:
                self.X = X if np.isfinite(X).all() else self.X
                return ended
        return Status.INACCURATE

    def _descend(
        self, gram: Gram, X: Array, R: Array, way: Array | None, goal: float, watch: Watch
    ) -> tuple[Array, Array, Status]:
        """Run one recurrence per column until the residual carried along is below the goal."""
        Z = self.precondition(R)
        P = Z.copy() if way is None else way
        rz = np.einsum("ij,ij->j", R, Z)
        rounding = _rounding(gram)
        while self.steps < self.max_iter:
            self.steps += 1
            KP = gram @ P
            curvature = np.einsum("ij,ij->j", P, KP)
            if (curvature < -rounding * np.einsum("ij,ij->j", P, P)).any():
                return R, P, Status.NOT_CONVEX
            descent = np.einsum("ij,ij->j", R, P)
            step = np.divide(descent, curvature, out=np.zeros_like(rz), where=curvature > 0)
            X += step * P
            before, R = R, R - step * KP
            worst = self.bordered.measure(X, R)
            if not np.isfinite(worst):
                return R, P, Status.NOT_FINITE
            Z = self.precondition(R)
            # r'z less its part along the last residual: rounding of P and K is forgiven
            new, share = np.einsum("ij,ij->j", R, Z), np.einsum("ij,ij->j", R - before, Z)
            P = Z + np.divide(share, rz, out=np.zeros_like(rz), where=rz > 0) * P
            rz = new
            stop = watch.tick(self.steps, worst)
            if worst <= goal:
                return R, P, Status.SOLVED
            if stop:
                return R, P, watch.stopped or Status.STOPPED
        return R, P, Status.ITERATION_LIMIT


def _rounding(gram: Gram) -> float:
    """Bound what rounding makes of p'Kp over p'p: beyond, K is not positive semidefinite.

    Products have errors of sqrt(n) eps |p|'|K||p|, in all likelihood (Higham and Mary, 2019, with
    twice the unit roundoff), and the norm of |K| is at most the trace of a positive semidefinite K.
    """
    n, size = gram.shape[0], float(np.abs(gram.diag()).sum())
    return sqrt(n) * float(np.finfo(gram.dtype).eps) * size
