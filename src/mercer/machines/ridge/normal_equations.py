"""Normal equations of ridge regression on features, by preconditioned conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dtrmm

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.contract import Factor, LandmarkRows
from mercer.backends.factorizations import parts
from mercer.deadline import check
from mercer.gram import FactoredGram, StreamedGram
from mercer.gram.policy import FLOAT32_RANGE
from mercer.machines.ridge.primal import Primal
from mercer.machines.ridge.problem import Coefficients, LinearSystem
from mercer.resources import rows_at_once, within_budget
from mercer.rows.points import is_sparse
from mercer.solvers.base import Solution, Solver, Status, Watch, report

# --- normal matrix -------------------------------------------------------------------------------
#
# G'SG of all rows or of a sample, and the Cholesky factors that precondition equations with it.
#
# Rows b are multiplied before they are mixed, G'SG = R'(B'SB)R, where that keeps the digits that
# the penalty asks for.

_EPS = float(np.finfo(float).eps)
_NORMAL_MATRIX_TINY = float(np.finfo(float).tiny)
_BLOCK = 4096  # rows that are written out at a time
_LATE = 1e-3  # of the penalty: what may be lost where rows are mixed after their products
_HELD = 1.2  # times the rows b: what holding them takes
_SENT = 1000  # columns: from here on a card multiplies a block in less time than it is sent in
_PROBES = 16


# --- factors -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FactorPreconditioner:
    """Cholesky factors of A + penalty I, one for each penalty, A near G'SG.

    Attributes
    ----------
    factors : list of (columns, factor)
        Targets that share a penalty, and their factor, the least penalty first; on a card, or an
        array here.
    """

    factors: list[tuple[Array, Any]]

    @classmethod
    def of(cls, problem: LinearSystem, count: int, seed: int) -> FactorPreconditioner:
        """Make it of so many rows."""
        return cls.of_matrix(sampled_normal_matrix(problem, count, seed), problem)

    @classmethod
    def of_matrix(cls, matrix: Array, problem: LinearSystem) -> FactorPreconditioner:
        """Factor A for all penalties."""
        floor = len(matrix) * _EPS * float(np.trace(matrix))  # below, pivots are rounding
        factors = []
        for columns in problem.groups():
            penalty = float(problem.penalties[columns[0]])
            factors.append((columns, _cholesky(matrix, penalty, floor)))
        return cls(factors)

    def __call__(self, R: Array) -> Array:
        """Return P^-1 R."""
        out = np.empty_like(R)
        for columns, factor in self.factors:
            right = R[:, columns]
            if isinstance(factor, Factor):
                out[:, columns] = factor.solve(right)
            else:
                out[:, columns] = linalg.cho_solve((factor.T, False), right, check_finite=False)
        return out

    def amplified(self, mixing: Array | None) -> float:
        """Estimate the norm of (R P^-1 R')^1/2, what a rounding of rows b is multiplied by."""
        factor = self.factors[0][1]
        G = np.random.default_rng(0).standard_normal((len(factor), _PROBES))
        if mixing is not None:
            G = mixing.T @ np.random.default_rng(0).standard_normal((len(mixing), _PROBES))
        solved = linalg.solve_triangular(factor.T, G, trans=1, lower=False, check_finite=False)
        return float(np.linalg.norm(solved)) / float(np.sqrt(_PROBES))


def _cholesky(matrix: Array, penalty: float, floor: float) -> Array:
    """Factor; what is not positive definite for rounding gets more on its diagonal."""
    shift = penalty
    while True:
        A = matrix.copy()
        A.flat[:: len(A) + 1] += shift
        if choose_backend().cholesky(A) == 0:
            return A
        shift = max(10 * shift, floor, _NORMAL_MATRIX_TINY)


# --- the matrix of a sample ----------------------------------------------------------------------


def sampled_normal_matrix(problem: LinearSystem, count: int, seed: int) -> Array:
    """Estimate G'SG from some rows, and from the landmarks; exact from all rows.

    Means are taken off in two steps, that of a few rows before products and the rest after.
    """
    gram: Any = problem.gram
    s, n = problem.row_weights, gram.shape[0]
    index, share, lone = np.arange(n), s, None
    if count < n:
        rng, total = np.random.default_rng(seed), s.sum()
        even = bool((s == s[0]).all())
        index = np.sort(rng.choice(n, count, replace=not even, p=None if even else s / total))
        share, lone = np.full(count, total / count), gram.made_for()
    late = is_mixed_late(problem)
    rows_of = gram.sampled_raw if late else gram.sampled
    width = gram.width if late else gram.rank
    sums = Sums.zero(width, problem.bias)
    for part in _parts(len(index), width):
        E = rows_of(index[part])
        sums.add(E, share[part])
    matrix, mean = sums.mixed(gram.map.mixing if late else None)
    if lone is not None:  # each may be alone in its direction, which a sample would miss
        matrix += _square(lone - mean, np.full(len(lone), s.sum() / n))
    return matrix


def is_mixed_late(problem: LinearSystem) -> bool:
    """Return whether R'(B'SB)R keeps the digits that the penalty asks for: half the work."""
    gram: Any = problem.gram
    if not isinstance(gram, StreamedGram) or gram.written is not None:
        return False
    R, lengths = gram.map.mixing, gram.longest()
    # features that are not mixed have lengths of their own; others are divided by small pivots
    most = 1.0 / max(1, gram.rank) if R is None else float(np.square(R).sum(axis=0).max(initial=0))
    lost = _EPS * float(np.linalg.norm(problem.row_weights * lengths)) * most
    return R is None or lost < _LATE * float(problem.penalties.min())


def _parts(n: int, width: int) -> Iterator[slice]:
    """Cover n rows by blocks; time limits and Ctrl-C hold between them."""
    step = rows_at_once(width, _BLOCK, arrays=2)
    for first in range(0, n, step):
        check()
        yield slice(first, min(first + step, n))


@dataclass
class Sums:
    """(B - middle)'S(B - middle) and what belongs to it, added up block by block.

    Attributes
    ----------
    square : (p, p) array
        The matrix so far.
    first : (p,) array
        (B - middle)'s.
    weight : float
        The sum of s.
    middle : (p,) array or None
        What is taken off all rows: the mean of the first block, zero without a bias.
    bias : bool
        Whether means are to be taken off.
    """

    square: Array
    first: Array
    weight: float
    middle: Array | None
    bias: bool

    @classmethod
    def zero(cls, width: int, bias: bool) -> Sums:
        """Begin."""
        middle = None if bias else np.zeros(width)
        return cls(np.zeros((width, width)), np.zeros(width), 0.0, middle, bias)

    def add(self, B: Array, s: Array) -> None:
        """Add rows; B is overwritten."""
        if self.middle is None:
            self.middle = s @ B / s.sum() if s.sum() > 0 else np.zeros(B.shape[1])
        if self.bias:
            B -= self.middle
            self.first += s @ B
        self.weight += float(s.sum())
        self.square += _square(B, s)

    def mixed(self, R: Array | None) -> tuple[Array, Array]:
        """Return G'SG and the mean of F."""
        matrix, mean = self.square, np.zeros(len(self.first))
        if self.bias and self.middle is not None:
            matrix = matrix - np.outer(self.first, self.first) / self.weight
            mean = self.middle + self.first / self.weight
        if R is None:
            return matrix, mean
        return _congruent(matrix, R), mean @ R


def _square(E: Array, share: Array) -> Array:
    """Return E'SE; E is overwritten."""
    if not (share == 1).all():
        E *= np.sqrt(share)[:, None]
    n, p = E.shape
    if p >= _SENT and choose_backend().keeps(8.0 * (n + p) * p):
        there = choose_backend().features(E, None)
        return there.gram(np.ones(n), np.zeros(p), np.full(n, -1), 0)
    return np.asarray(E.T @ E)  # of one array with itself: half the work


def _congruent(A: Array, R: Array) -> Array:
    """Return R'AR, symmetric."""
    product = _multiplied(_multiplied(A, R).T, R)  # (AR)'R, and A is its own transpose
    return np.asarray((product + product.T) / 2)


def _multiplied(B: Array, R: Array) -> Array:
    """Return B R; a triangular R, as landmarks have, is half the work."""
    whole = not R.size or np.tril(R, -1).any()
    product = np.empty((len(B), R.shape[1]))
    for some in parts(len(B), 2.0 * R.size):
        # (R'B')', by columns in memory
        product[some] = B[some] @ R if whole else dtrmm(1.0, R.T, B[some].T, lower=1).T
    return product


# --- the matrix of all rows ----------------------------------------------------------------------


def whole_normal_matrix(problem: LinearSystem, V: Array) -> tuple[Array, Array]:
    """Return G'SG and F'V in one pass over all rows; V (n, k) is what is pulled back beside."""
    gram: Any = problem.gram
    if not isinstance(gram, StreamedGram) or gram.written is not None:
        return sampled_normal_matrix(problem, gram.shape[0], 0), gram.pull(V)
    late = is_mixed_late(problem)
    width, R = (gram.width, gram.map.mixing) if late else (gram.rank, None)
    rows_of: Any = gram.sampled_raw if late else gram.sampled
    sums, pulled = Sums.zero(width, problem.bias), np.zeros((width, V.shape[1]))
    for part in _parts(gram.shape[0], gram.width):
        B = rows_of(part)
        pulled += B.T @ V[part]
        sums.add(B, problem.row_weights[part])
    matrix, _ = sums.mixed(R)
    return matrix, pulled if R is None else R.T @ pulled


# --- normal equations ----------------------------------------------------------------------------
#
# Normal equations of ridge regression on features, with rows on the host or on a card.

# Landmarks up to which the factor of all rows costs less than the passes that it saves: a row of it
# takes 2 m^2 operations at 6e13 a second, a pass 2 m values at 6e11, and one of some rows needs
# about 40 passes more.
_WHOLE = 4000
_NORMAL_EQUATIONS_FEW = (
    4  # rows for each landmark of which a factor is made first, and how many more are next
)
# Seconds of a row of a factor over m^2, and of a value of a pass; passes that rows beside the
# landmarks save. With more landmarks than these allow for, the landmarks alone make a factor.
_NORMAL_EQUATIONS_ROW, _VALUE, _SAVED = 2 / 6e13, 2 / 6e11, 20
_MADE_UP = 1e-5  # of sums before they cancel: right-hand sides that float32 may have made up
_NOTHING = 64 * float(
    np.finfo(float).eps
)  # of sums before they cancel: right-hand sides that are rounding


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """(G'SG + penalty) w = G'S y: all that is asked of the rows are round trips.

    Attributes
    ----------
    quick : FactoredGram
        K = F F', for products; it may be rounded to float32.
    problem : LinearSystem
        Weights, targets and penalties, and K itself.
    mean : (m,) array
        The weighted mean of F, zero without a bias; G = F - 1 mean'.
    centre : (t,) array
        The weighted mean of the targets, zero without a bias.
    right : (m, t) array
        G'S (y - centre).
    """

    quick: FactoredGram
    problem: LinearSystem
    mean: Array
    centre: Array
    right: Array

    @classmethod
    def of(cls, gram: FactoredGram, problem: LinearSystem) -> NormalEquations:
        """Find means and the right-hand side in one pass."""
        centre, pulled = centred_targets(problem)
        sums = gram.pull(np.column_stack([pulled, problem.row_weights]))
        return cls.from_sums(gram, problem, centre, pulled, sums)

    @classmethod
    def from_sums(
        cls, gram: FactoredGram, problem: LinearSystem, centre: Array, pulled: Array, sums: Array
    ) -> NormalEquations:
        """Take F'(pulled, s) that a pass has found."""
        s, y = problem.row_weights, problem.targets
        mean = sums[:, -1] / s.sum() if problem.bias else np.zeros(len(sums))
        right = sums[:, :-1] - np.outer(mean, pulled.sum(axis=0))
        most = np.linalg.norm(gram.absolute_pull(np.abs(s[:, None] * y)), axis=0)
        right[:, np.linalg.norm(right, axis=0) <= _NOTHING * most] = 0.0  # rounding, no target
        return cls(gram, problem, mean, centre, right)

    @property
    def is_rough(self) -> bool:
        """Whether products are those of rows rounded to float32."""
        return isinstance(self.quick, StreamedGram) and self.quick.is_rounded

    def product(self, W: Array) -> Array:
        """Return (G'SG + penalty) W."""
        s, level = self.problem.row_weights[:, None], self.mean @ W
        held = np.empty((len(s), W.shape[1]))  # by rows: a card without room begins anew

        def weigh(rows: slice, values: Array) -> Array:
            held[rows] = s[rows] * (values - level)
            return held[rows]

        pulled = self.quick.round_trip(W, weigh) - np.outer(self.mean, held.sum(axis=0))
        return np.asarray(pulled + self.problem.penalties * W)

    def residual(self, W: Array) -> Array:
        """Return G'S (y - centre - G W) - penalty W, differences taken row by row."""
        s, level = self.problem.row_weights[:, None], self.mean @ W
        y, held = self.problem.targets, np.empty((len(s), W.shape[1]))

        def left(rows: slice, values: Array) -> Array:
            held[rows] = s[rows] * ((y[rows] - self.centre) - (values - level))
            return held[rows]

        gram: Any = self.problem.gram if self.is_rough else self.quick
        pulled = gram.round_trip(W, left) - np.outer(self.mean, held.sum(axis=0))
        return np.asarray(pulled - self.problem.penalties * W)

    def intercept(self, W: Array) -> Array:
        """Return the biases."""
        return np.asarray(self.centre - self.mean @ W)


# --- descent -------------------------------------------------------------------------------------


def centred_targets(problem: LinearSystem) -> tuple[Array, Array]:
    """Return the weighted mean of the targets, zero without a bias, and S (y - mean)."""
    s, y = problem.row_weights, problem.targets
    centre = s @ y / s.sum() if problem.bias else np.zeros(y.shape[1])
    return centre, s[:, None] * (y - centre)


class CardEquations:
    """(G'SG + penalty) w = G'S y as `NormalEquations`, with rows that stay on a card.

    Parameters
    ----------
    problem : LinearSystem
        Weights, targets and penalties.
    rows : LandmarkRows
        The rows, their weights and centred targets on the card.
    centre : (t,) array
        The weighted mean of the targets, zero without a bias.

    Attributes
    ----------
    right : (m, t) array
        G'S (y - centre), to the digits of float32: where a descent begins. Residuals are exact.
    is_rough : bool
        Products are those of float32.
    """

    is_rough = True

    def __init__(self, problem: LinearSystem, rows: LandmarkRows, centre: Array) -> None:
        self.problem, self._rows, self._centre = problem, rows, centre
        self._weight = float(problem.row_weights.sum())
        self.right, sums = rows.pull()
        self._mean = self._mean_of(sums)

    @classmethod
    def of(cls, problem: LinearSystem) -> CardEquations | None:
        """Send the rows; None where no card works with them, or float32 does not hold them."""
        gram: Any = problem.gram
        if not isinstance(gram, StreamedGram) or gram.written is not None:
            return None
        size = float(gram.longest().max(initial=0.0))
        bound = gram.map.bound(gram.X) if FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1] else None
        if bound is None:
            return None
        s, y = problem.row_weights, problem.targets
        centre = s @ y / s.sum() if problem.bias else np.zeros(y.shape[1])
        found = cls(problem, bound(s, y - centre, problem.bias), centre)
        most = gram.absolute_pull(np.abs(s[:, None] * y))[0]
        made_up = np.linalg.norm(found.right, axis=0) <= _MADE_UP * most
        return None if made_up.any() else found

    def first_sample(self) -> int:
        """Return how many rows a factor is made of first; 0 for the landmarks alone."""
        n, m = self.problem.gram.shape[0], len(self.right)
        if m <= _WHOLE:
            return int(n)
        few = min(n, _NORMAL_EQUATIONS_FEW * m)
        return few if few * m * _NORMAL_EQUATIONS_ROW <= _SAVED * n * _VALUE else 0

    def larger_sample(self, rows: int) -> int:
        """Return how many to take after a factor that did not serve."""
        return min(self.problem.gram.shape[0], _NORMAL_EQUATIONS_FEW * max(rows, len(self.right)))

    def factors(self, count: int, seed: int) -> list[tuple[Array, Factor]]:
        """Factor G'SG + penalty of some rows, for the targets of each penalty."""
        s = self.problem.row_weights
        n, total = len(s), self._weight
        index, share, lone = np.arange(n), s, 0.0
        if not count:
            index, share, lone = index[:0], s[:0], total / len(self.right)
        elif count < n:
            rng, even = np.random.default_rng(seed), bool((s == s[0]).all())
            index = np.sort(rng.choice(n, count, replace=not even, p=None if even else s / total))
            share, lone = np.full(count, total / count), total / n
        penalties = self.problem.penalties
        return [
            (columns, self._rows.factor(index, share, lone, float(penalties[columns[0]])))
            for columns in self.problem.groups()
        ]

    def product(self, W: Array) -> Array:
        """Return (G'SG + penalty) W."""
        pulled, sums = self._rows.product(W, self._mean @ W)
        return np.asarray(pulled - np.outer(self._mean, sums) + self.problem.penalties * W)

    def residual(self, W: Array) -> Array:
        """Return G'S (y - centre - G W) - penalty W in float64, and learn the mean as exactly."""
        before = self._mean @ W
        pulled, sums, mass = self._rows.residual(W, before)
        self._mean = self._mean_of(mass)
        more = self._mean @ W - before
        pulled = pulled + np.outer(mass, more) - np.outer(self._mean, sums + self._weight * more)
        return np.asarray(pulled - self.problem.penalties * W)

    def intercept(self, W: Array) -> Array:
        """Return the biases."""
        return np.asarray(self._centre - self._mean @ W)

    def _mean_of(self, mass: Array) -> Array:
        return mass / self._weight if self.problem.bias else np.zeros(len(mass))


# --- primal gradient -----------------------------------------------------------------------------
#
# Linear systems with K = F F' by products with F alone: conjugate gradients in the features.
#
# With features of landmarks this is the form of Falkon (Rudi, Carratino and Rosasco, 2017): an
# iteration is one pass over the rows, k(x, landmarks) is never written out where the budget
# forbids it, and the preconditioner is a Cholesky factor of what a sample of the rows makes of
# F'SF.

_PRIMAL_GRADIENT_TINY = float(np.finfo(float).tiny)
_STEPS = 80  # with one preconditioner; a better one costs less than many more
_GROWTH = 4  # times the rows of a sample that did not serve
_RESTARTS = 8  # each must halve the true residual
# Nanoseconds on one core: an entry of a row b read from memory in a pass, or evaluated (Gaussian),
# and a row of the preconditioner over m^2, twice that where it is mixed first. A sample of 6 rows
# for each feature leaves 45 passes to do, twice as many where a few rows are unlike all others.
_READ, _EVALUATED, _PRIMAL_GRADIENT_ROW = 0.55, 3.0, 0.022
_PRIMAL_GRADIENT_FEW, _PASSES = 6, 90
_PRIMAL_GRADIENT_SINGLE = 2.5e-7  # of an entry: what float32 and sums in it get wrong
_PRIMAL_GRADIENT_MOVED = (
    0.3  # of the equations, preconditioned: each round in float64 leaves this share of errors
)
_SERVES = 0.1  # of the residual before: with less left, refinement needs no conjugate directions
_ROUND = 1e-4  # of the residual at its start: where a round in float32 ends
_LAST = 2e-5  # of it: where the last one may end, since a residual costs as much as ten steps
_SURE = 10  # times the drift that was seen: what a round is believed to drift at most
_LEAST_GOAL = 0.1  # of the tolerance: with less left beside the drift, the residual is looked at
_WRITTEN = 4  # times the features: what work with all of them at once takes


@dataclass(frozen=True)
class PrimalConjugateGradient(Solver):
    """Solve (G'SG + penalty I) w = G'S y for the features G = F, centred when there is a bias.

    All targets and penalties share every pass over the rows. The rows of features, or of the
    kernel's values at landmarks, are held where they fit the memory budget, and evaluated anew in
    every pass where they do not.

    Parameters
    ----------
    tol : float
        Stop when the error of f, in the norm of the problem, is below tol times f, as the
        preconditioner measures it; and the residual of the equations below tol times their
        right-hand side.
    max_iter : int
        Largest number of passes.
    sample : int or None
        Rows that the preconditioner is first made of; None weighs what they cost against what the
        passes cost that they save.
    random_state : int
        Draws them.
    """

    answers = LinearSystem

    tol: float = 1e-8
    max_iter: int = 1000
    sample: int | None = None
    random_state: int = 0

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems with dense features and a penalty."""
        if not isinstance(problem.gram, FactoredGram) or is_sparse(problem.gram.written):
            return (
                "PrimalConjugateGradient needs a LinearSystem whose kernel has dense features, "
                "such as those of approximation=Nystrom(1000)"
            )
        if not (problem.penalties > 0).all():
            return "PrimalConjugateGradient needs a positive penalty; use solver=Primal()"
        return None

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Descend with a preconditioner of some rows, then of more, until of all."""
        problem, scales = _scaled(problem)
        found = self._on_card(problem, watch, None if start is None else start.weights, scales)
        if found is not None:
            return found
        gram: Any = problem.gram
        rows, n = self.sample or sample_rows(problem), gram.shape[0]
        if rows < n:
            precondition = FactorPreconditioner.of(problem, rows, self.random_state)
            system = NormalEquations.of(held(gram, precondition), problem)
        else:
            centre, pulled = centred_targets(problem)
            together = np.column_stack([pulled, problem.row_weights])
            matrix, sums = whole_normal_matrix(problem, together)
            precondition = FactorPreconditioner.of_matrix(matrix, problem)
            system = NormalEquations.from_sums(gram, problem, centre, pulled, sums)
        W = np.zeros_like(system.right)
        if start is not None and start.weights is not None:
            W = start.weights / scales
        descent = _FeatureConjugateGradient(self, system, watch, W)
        while True:
            ended = descent.run(precondition, rows >= n)
            if ended is not Status.INACCURATE or descent.steps >= self.max_iter:
                break
            if descent.system.is_rough:  # float32 did not serve
                descent.system = replace(system, quick=gram)
            elif rows < n:
                rows *= _GROWTH
                precondition = FactorPreconditioner.of(problem, min(rows, n), self.random_state)
            else:
                break
        if ended is Status.INACCURATE and rows >= n and _can_be_written(gram):
            return self._written_out(problem, scales, watch)
        weights, intercept = scales * descent.W, scales * system.intercept(descent.W)
        value = Coefficients(np.zeros((0, weights.shape[1])), intercept, weights)
        return report(self, value, ended, descent.steps, watch)

    def _on_card(
        self, problem: LinearSystem, watch: Watch, weights: Array | None, scales: Array
    ) -> Solution | None:
        """Descend with rows that stay on a card; None without one, and where float32 fails."""
        system = CardEquations.of(problem)
        if system is None:
            return None
        n = problem.gram.shape[0]
        rows = self.sample or system.first_sample()
        W = np.zeros_like(system.right) if weights is None else weights / scales
        descent = _FeatureConjugateGradient(self, system, watch, W)
        while True:
            precondition = FactorPreconditioner(list(system.factors(rows, self.random_state)))
            ended = descent.run(precondition, is_whole=False)
            if ended is not Status.INACCURATE or rows >= n or descent.steps >= self.max_iter:
                break
            rows = system.larger_sample(rows)
        if ended is Status.INACCURATE:
            return None
        found, intercept = scales * descent.W, scales * system.intercept(descent.W)
        value = Coefficients(np.zeros((0, found.shape[1])), intercept, found)
        return report(self, value, ended, descent.steps, watch)

    def _written_out(self, problem: LinearSystem, scales: Array, watch: Watch) -> Solution:
        """Answer by features written out, which are known to more digits than products with R."""
        found = Primal().run(problem, watch)
        value = found.value
        forms = (scales * value.coef, scales * value.intercept, scales * value.weights)
        return replace(found, value=Coefficients(*forms))


def _can_be_written(gram: Any) -> bool:
    return within_budget(_WRITTEN * 8.0 * gram.shape[0] * gram.rank)


def _scaled(problem: LinearSystem) -> tuple[LinearSystem, Array]:
    """Divide targets by powers of two, so that squares of them are numbers."""
    largest = np.abs(problem.targets).max(axis=0, initial=0.0)
    scales = np.ldexp(1.0, np.frexp(np.where(largest > 0, largest, 1.0))[1])
    return replace(problem, targets=problem.targets / scales), scales


def sample_rows(problem: LinearSystem) -> int:
    """Return how many rows the preconditioner is made of: few and many passes, or all and few."""
    gram: Any = problem.gram
    n, m = int(gram.shape[0]), int(gram.rank)
    entry = _READ if _is_held(gram) or _fits(gram, np.float32) else _EVALUATED
    few = min(n, _PRIMAL_GRADIENT_FEW * m)
    passes = _PASSES * entry * float(n) * m
    row = _PRIMAL_GRADIENT_ROW * float(m) ** 2 * (1 if is_mixed_late(problem) else 2)
    return few if (n - few) * row > passes else n


def held(gram: FactoredGram, precondition: FactorPreconditioner) -> FactoredGram:
    """Return the Gram with rows that are read from memory, if they fit the budget.

    In float32 where its rounding moves the equations by less than they are preconditioned to.
    """
    if not isinstance(gram, StreamedGram) or _is_held(gram):
        return gram
    size = float(np.sqrt(gram.longest().max(initial=0.0)))
    rounding = (
        _PRIMAL_GRADIENT_SINGLE
        * size
        * np.sqrt(gram.shape[0])
        * precondition.amplified(gram.map.mixing)
    )
    in_range = FLOAT32_RANGE[0] < size**2 < FLOAT32_RANGE[1]
    for dtype in (
        (np.float32, np.float64)
        if rounding < _PRIMAL_GRADIENT_MOVED and in_range
        else (np.float64,)
    ):
        if _fits(gram, dtype):
            return gram.hold(dtype)
    return gram


def _is_held(gram: FactoredGram) -> bool:
    return gram.written is not None or gram.nbytes > 0


def _fits(gram: Any, dtype: Any) -> bool:
    needed = _HELD * np.dtype(dtype).itemsize * gram.shape[0] * gram.width
    return bool(gram.on_card or within_budget(needed))


class _FeatureConjugateGradient:
    """Conjugate gradients, one recurrence per column, all sharing each pass."""

    def __init__(
        self,
        solver: PrimalConjugateGradient,
        system: NormalEquations | CardEquations,
        watch: Watch,
        W: Array,
    ) -> None:
        self.solver, self.system, self.watch = solver, system, watch
        self.W, self.steps = W, 0

    def run(self, precondition: FactorPreconditioner, is_whole: bool) -> Status:
        """Descend, look at the true residual, and descend again from there if it is not small."""
        right = self.system.right
        sizes = np.maximum(_sizes(right, precondition(right)), _PRIMAL_GRADIENT_TINY)
        ended = self._refine(precondition, sizes) if is_whole else None
        if ended is not None:
            return ended
        before, drift, expected = np.inf, np.inf, right
        for _ in range(_RESTARTS):
            R, worst = self._look_in_time(precondition, sizes)
            if R is None:
                return Status.TIME_LIMIT
            if not np.isfinite(worst):
                return Status.NOT_FINITE
            if worst <= self.solver.tol:
                return Status.SOLVED
            if worst > 0.5 * before:
                return Status.INACCURATE
            # Products were off by this share of where their round began. What float64 itself gets
            # wrong of W is not seen by this, and far less than what float32 does.
            if np.isfinite(before) and self.system.is_rough:
                off = R - expected
                drift = float((_sizes(off, precondition(off)) / sizes).max(initial=0.0)) / before
            before = worst
            unseen = _SURE * drift * worst
            ended, expected, reached = self._descend(
                R, sizes, self._goal(worst, unseen), precondition
            )
            if ended is not Status.SOLVED or reached + unseen <= self.solver.tol:
                return ended
        return Status.INACCURATE

    def _goal(self, worst: float, unseen: float) -> float:
        """Return where a round ends: far enough that no look is needed after it, where it can."""
        tol = self.solver.tol
        if self.system.is_rough and 0.5 * tol < _LAST * worst:  # more would be lost again
            return max(0.5 * tol, _ROUND * worst)
        return min(0.5 * tol, tol - unseen) if unseen <= (1 - _LEAST_GOAL) * tol else 0.5 * tol

    def _look_in_time(
        self, precondition: FactorPreconditioner, sizes: Array
    ) -> tuple[Array | None, float]:
        """Look; None where the time was over before, and there is an answer to be kept."""
        R, worst = None, np.inf
        with self.watch.keeping(lambda: bool(np.any(self.W))):
            R, worst = self._look(precondition, sizes)
        return R, worst

    def _look(self, precondition: FactorPreconditioner, sizes: Array) -> tuple[Array, float]:
        """Return the true residual, and the largest of its sizes."""
        right = self.system.right
        R = self.system.residual(self.W) if np.any(self.W) else right.copy()
        R[:, ~right.any(axis=0)] = 0.0
        return R, float((_sizes(R, precondition(R)) / sizes).max(initial=0.0))

    def _refine(self, precondition: FactorPreconditioner, sizes: Array) -> Status | None:
        """Solve with the factor of all rows, as long as each time leaves a tenth; None if not."""
        before, worst = 1.0 / _SERVES, 0.0
        if not np.any(self.W):
            self.W = precondition(self.system.right)
        for _ in range(_RESTARTS):
            R, worst = self._look(precondition, sizes)
            if worst <= self.solver.tol:
                return Status.SOLVED
            if not worst < _SERVES * before:
                break
            self.W, before = self.W + precondition(R), worst
            self.steps += 1
            if self.watch.tick(self.steps, worst):
                return self.watch.stopped or Status.STOPPED
            if self.steps >= self.solver.max_iter:
                return Status.ITERATION_LIMIT
        if not worst <= 1:
            self.W = np.zeros_like(self.W)
        return None

    def _descend(
        self, R: Array, sizes: Array, goal: float, precondition: FactorPreconditioner
    ) -> tuple[Status, Array, float]:
        """Take steps; return how they ended, and the residual as they have it, with its size."""
        W, ended, worst = self.W.copy(), Status.TIME_LIMIT, np.inf
        with self.watch.keeping():
            Z = precondition(R)
            P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
            ended = Status.INACCURATE
            for _ in range(_STEPS):
                AP = self.system.product(P)
                curvature = np.einsum("ij,ij->j", P, AP)
                step = np.divide(rz, curvature, out=np.zeros_like(rz), where=curvature > 0)
                W += step * P
                R = R - step * AP
                self.steps += 1
                Z = precondition(R)
                worst = float((_sizes(R, Z) / sizes).max(initial=0.0))
                if self.watch.tick(self.steps, worst):
                    ended = self.watch.stopped or Status.STOPPED
                    break
                if not worst > goal:
                    ended = Status.SOLVED
                    break
                if self.steps >= self.solver.max_iter:
                    ended = Status.ITERATION_LIMIT
                    break
                rz, before = np.einsum("ij,ij->j", R, Z), rz
                P = Z + np.divide(rz, before, out=np.zeros_like(rz), where=before > 0) * P
        self.W = W
        return ended, R, worst


def _sizes(R: Array, Z: Array) -> Array:
    """Return the size of residuals as the preconditioner measures it: sqrt(r'P^-1 r)."""
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ij->j", R, Z), 0.0)))
