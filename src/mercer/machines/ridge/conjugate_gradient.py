"""Preconditioned conjugate gradients for ridge systems with K, with or without a bias."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import HERE, LongArrays
from mercer.backends.lapack import one_blas_thread
from mercer.deadline import check
from mercer.gram import Gram, LazyGram, PartialFactor, ShiftedGram, pivoted_cholesky
from mercer.gram.policy import FLOAT32_RANGE
from mercer.machines.ridge.problem import Coefficients, LinearSystem
from mercer.resources import rows_at_once
from mercer.solvers.base import Solution, Solver, Status, Watch, report


def in_float32(gram: Gram) -> Gram | None:
    """Return the same K with entries in float32, where it is evaluated anew for each product.

    Parameters
    ----------
    gram : Gram
        K.

    Returns
    -------
    Gram or None
        None where K is stored, where it is in float32 already, and where its entries do not fit.
    """
    if not isinstance(gram, LazyGram) or gram.dtype != np.float64:
        return None
    size = float(np.abs(gram.diag()).max(initial=0.0))
    if not FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1] or not gram.source.fits_float32():
        return None
    return LazyGram(gram.source.in_float32())


# --- bordered ------------------------------------------------------------------------------------
#
# The ridge equations with a bias as right-hand sides of one symmetric matrix.
#
# (K + D) a + b 1 = y with 1'a = 0 is solved by C = K + D alone: with C x = y - mean and C u = 1,
# b = mean + 1'x / 1'u and a = x - (b - mean) u. What is left of the equations is what is left of
# the first system less (b - mean) times what is left of the second; certificates measure just
# that.

_ROUNDING = 1e-8  # of the targets, the mean included: what is smaller counts as rounding of them


@dataclass(frozen=True, eq=False)
class Bordered:
    """Targets that share one matrix, made ready for solvers of symmetric systems.

    Attributes
    ----------
    right : (n, k) array
        Right-hand sides: targets without their weighted mean and, with a bias, a column of ones.
    mean : (t,) array
        What was taken off; zero without a bias.
    sizes : (t,) array
        Norms that residuals are measured by.
    bias : bool
        Whether there is a bias.
    """

    right: Array
    mean: Array
    sizes: Array
    bias: bool

    @classmethod
    def of(cls, problem: LinearSystem, columns: Array) -> Bordered:
        """Take some targets of a problem."""
        y, s = problem.targets[:, columns], problem.row_weights
        mean = s @ y / s.sum() if problem.bias else np.zeros(len(columns))
        right = y - mean
        sizes = np.maximum(_norms(right), _ROUNDING * _norms(y))
        if problem.bias:
            right = np.column_stack([right, np.ones(len(y))])
        return cls(right, mean, np.maximum(sizes, np.finfo(float).tiny), problem.bias)

    def answer(self, X: Array) -> tuple[Array, Array]:
        """Return coefficients and biases, from solutions for all right-hand sides."""
        if not self.bias:
            return X, np.zeros(X.shape[1])
        offset = self._offset(X)
        return X[:, :-1] - np.outer(X[:, -1], offset), self.mean + offset

    def start(self, coef: Array) -> Array:
        """Return where to begin, from coefficients of an earlier answer."""
        return np.column_stack([coef, np.zeros(len(coef))]) if self.bias else coef.copy()

    def measure(self, X: Array, R: Array) -> float:
        """Return the largest relative residual of the answer, from those of the systems."""
        if self.bias:
            R = R[:, :-1] - np.outer(R[:, -1], self._offset(X))
        worst = (_norms(R) / self.sizes).max(initial=0.0)
        return float(worst)

    def _offset(self, X: Array) -> Array:
        total = X[:, -1].sum()
        sums = X[:, :-1].sum(axis=0)
        return np.asarray(sums / total if total > 0 else np.zeros_like(sums))


def _norms(A: Array) -> Array:
    return np.asarray(np.linalg.norm(A, axis=0))


# --- preconditioner ------------------------------------------------------------------------------
#
# The inverse of F F' + D, with F of a randomly pivoted Cholesky factor of K.

_WORK = 1e10  # operations between two chances to hear Ctrl-C
_CANCELLED = 1e6  # times P^-1 v: sums in float32 whose difference still has a digit
_LARGE = 1 << 22  # entries of W: beyond, no cache holds them, and reading takes the time
_COPIES = 3  # of F on a card: it, W, and what W is made of


@dataclass(frozen=True, eq=False)
class LowRankPreconditioner:
    """v -> (F F' + D)^-1 v = D^-1 v - W W'v, held and applied where products with K are made.

    Attributes
    ----------
    arrays : LongArrays
        Where.
    shift : (n, 1) array
        D.
    low : (n, r) array or None
        W, in float32 where its products are differences of numbers not too large for that: all of
        it is read in every step.
    """

    arrays: LongArrays
    shift: Any
    low: Any

    @classmethod
    def of(cls, gram: Gram, rough: PartialFactor, shift: Array) -> LowRankPreconditioner:
        """Build P for K + diag(shift)."""
        arrays, F = gram.operator().arrays, rough.factor
        if not arrays.has_room(8.0 * len(shift) * _COPIES * F.shape[1]):
            arrays = HERE
        there = arrays.put(shift[:, None])
        return cls(arrays, there, _low(arrays, there, F))

    def __call__(self, V: Array) -> Array:
        """Multiply by the inverse of P."""
        V = self.arrays.put(V)
        out = V / self.shift
        if self.low is not None:
            self.arrays.take_off(self.low, V, out)
        return self.arrays.get(out)


def _low(arrays: LongArrays, shift: Any, F: Array) -> Any:
    """Return W with W W' = D^-1 F (I + F'D^-1 F)^-1 F'D^-1; None where there is none."""
    n, rank = F.shape
    there, low, inner = arrays.lent(F), arrays.empty(n, rank), np.empty((rank, rank))
    step = max(1, int(_WORK / max(1, n * rank)))
    for first in range(0, rank, step):
        check()
        columns = slice(first, first + step)
        low[:, columns] = there[:, columns] / shift
        inner[:, columns] = arrays.get(there.T @ low[:, columns])
    inner = (inner + inner.T) / 2
    inner.flat[:: rank + 1] += 1.0
    largest = float(np.abs(inner).sum(axis=0).max(initial=0.0))  # no eigenvalue is larger
    factor = choose_backend().cholesky_factor(inner) if rank else None
    if factor is None:
        return None
    factor = factor.here() if arrays is HERE else factor
    step = max(1, int(_WORK / max(1, rank * rank)))
    for first in range(0, n, step):
        check()
        rows = slice(first, first + step)
        low[rows] = factor.half_there(low[rows].T).T
    return arrays.rounded(low) if n * rank > _LARGE and largest < _CANCELLED else low


# --- conjugate gradient --------------------------------------------------------------------------
#
# Linear systems from products alone: conjugate gradients, preconditioned.

_RESTARTS = 12  # looks at the true residual; each must find it halved
_LOOK = 1e-3  # of the true residual: where the one carried along has fallen to this, look again
_DRIFT = 0.1  # of the true residual: beyond, the directions so far are worth nothing
_FACTORS = 3  # arrays of the size of the low-rank factor: it, its order changed, and solved with
_FACTOR_SHARE = 0.4  # of the memory budget, for them
# A column more costs 2 n r operations, a product n^2 / 2 evaluations of about ten times the time of
# an operation: at this many times the root of n, the factor takes as long as twenty products.
_RANK = 8.0
_LEAST_RANK = 500  # up to here the factor is made in a moment


@dataclass(frozen=True)
class ConjugateGradient(Solver):
    """Preconditioned conjugate gradients; K is never stored unless the Gram stores it.

    The preconditioner is F F' plus the diagonal that is added to K, with F from a randomly pivoted
    Cholesky factor. Where K is evaluated anew for each product, iterations run on entries in
    float32, and the residual is replaced by the true one, in float64, now and then; where that
    shows float32 to be too little, they go on in float64.

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
    block : None
        Deprecated and without effect.
    """

    answers = LinearSystem
    without_effect = ("block",)

    tol: float = 1e-8
    max_iter: int = 2000
    rank: int | None = None
    block: int | None = None

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
        rough = pivoted_cholesky(problem.gram, self.columns(n), trace_tol=trace_tol)
        fast = in_float32(problem.gram)
        for columns in problem.groups():
            shift = problem.shift(columns[0])
            bordered = Bordered.of(problem, columns)
            descent = _ConjugateGradientRun(
                bordered,
                ShiftedGram(problem.gram, shift),
                None if fast is None else ShiftedGram(fast, shift),
                LowRankPreconditioner.of(problem.gram, rough, shift),
                self.tol,
                self.max_iter,
            )
            begin = None if start is None else bordered.start(start.coef[:, columns])
            ended = descent.run(begin, watch)
            coef[:, columns], intercept[columns] = bordered.answer(descent.X)
            steps += descent.steps
            status = status if ended is Status.SOLVED else ended
        return report(self, Coefficients(coef, intercept), status, steps, watch)

    def columns(self, n: int) -> int:
        """Return the columns of the preconditioner that the memory budget allows for n rows."""
        wanted = max(_LEAST_RANK, int(_RANK * sqrt(n))) if self.rank is None else self.rank
        rank = min(wanted, n)
        return rows_at_once(n, rank, arrays=_FACTORS, share=_FACTOR_SHARE) if rank else 0


@dataclass
class _ConjugateGradientRun:
    """One run of conjugate gradients for all right-hand sides, which share the product with K."""

    bordered: Bordered
    exact: Gram
    fast: Gram | None
    precondition: LowRankPreconditioner
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
