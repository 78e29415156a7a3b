"""G'SG of all rows or of a sample, and the Cholesky factors that precondition equations with it.

Rows b are multiplied before they are mixed, G'SG = R'(B'SB)R, where that keeps the digits that the
penalty asks for. Sums over all rows run in float32 where a first block of them, done both ways,
shows that rounding moves the equations by little: half the time, and steps of refinement after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.blas import dtrmm

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.stored import Factor
from mercer.deadline import check
from mercer.gram import FactoredGram, StreamedGram
from mercer.gram.policy import FLOAT32_RANGE
from mercer.problems import LinearSystem
from mercer.resources import rows_at_once, within_budget

_EPS = float(np.finfo(float).eps)
_SINGLE = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(float).tiny)
_BLOCK = 4096  # rows that are written out at a time
_LATE = 1e-3  # of the penalty: what may be lost where rows are mixed after their products
_TRIED = 100.0  # times the penalty: with more rounding, float32 is not worth a try
_MOVED = 0.3  # of the equations, preconditioned: what float32 may change
_REFINED = 1e-2  # of them: up to here a step of refinement gains two digits, and nothing is held
_FEW_BLOCKS = 4  # of all rows: up to here a try costs more than float32 saves
_HELD = 1.2  # times the rows b: what holding them takes
_SENT = 1000  # columns: from here on a card multiplies a block in less time than it is sent in
_PROBES = 16
_POWERS = 6  # steps of the power method


# --- factors -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Cholesky factors of A + penalty I, one for each penalty, A near G'SG.

    Attributes
    ----------
    factors : list of (columns, factor)
        Targets that share a penalty, and their factor, the least penalty first; on a card, or an
        array here.
    """

    factors: list[tuple[Array, Any]]

    @classmethod
    def of(cls, problem: LinearSystem, count: int, seed: int) -> Preconditioner:
        """Make it of so many rows."""
        return cls.of_matrix(sampled_normal_matrix(problem, count, seed), problem)

    @classmethod
    def of_matrix(cls, matrix: Array, problem: LinearSystem) -> Preconditioner:
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

    def moved(self, change: Array, mixing: Array | None) -> float:
        """Estimate the norm of P^-1/2 R'ER P^-1/2 for a change E of B'SB."""
        upper = self.factors[0][1].T
        v, size = np.random.default_rng(0).standard_normal(len(upper)), 0.0
        for _ in range(_POWERS):
            u = linalg.solve_triangular(upper, v / np.linalg.norm(v), check_finite=False)
            u = change @ (u if mixing is None else mixing @ u)
            u = u if mixing is None else mixing.T @ u
            v = linalg.solve_triangular(upper, u, trans=1, check_finite=False)
            size = float(np.linalg.norm(v))
            if not 0 < size < np.inf:
                break
        return size


def _cholesky(matrix: Array, penalty: float, floor: float) -> Array:
    """Factor; what is not positive definite for rounding gets more on its diagonal."""
    shift = penalty
    while True:
        A = matrix.copy()
        A.flat[:: len(A) + 1] += shift
        if choose_backend().cholesky(A) == 0:
            return A
        shift = max(10 * shift, floor, _TINY)


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


def is_mixed_late(problem: LinearSystem, rounding: float = _EPS, allowed: float = _LATE) -> bool:
    """Return whether R'(B'SB)R keeps the digits that the penalty asks for: half the work."""
    gram: Any = problem.gram
    if not isinstance(gram, StreamedGram) or gram.written is not None:
        return False
    R, lengths = gram.map.mixing, gram.longest()
    # features that are not mixed have lengths of their own; others are divided by small pivots
    most = 1.0 / max(1, gram.rank) if R is None else float(np.square(R).sum(axis=0).max(initial=0))
    lost = rounding * float(np.linalg.norm(problem.row_weights * lengths)) * most
    return (R is None and rounding == _EPS) or lost < allowed * float(problem.penalties.min())


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

    def add(self, B: Array, s: Array, dtype: Any = np.float64) -> None:
        """Add rows, with products in one or the other precision; B is overwritten."""
        if self.middle is None:
            self.middle = s @ B / s.sum() if s.sum() > 0 else np.zeros(B.shape[1])
        if self.bias:
            B -= self.middle
            self.first += s @ B
        self.weight += float(s.sum())
        self.square += _square(B.astype(dtype, copy=False), s)

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
        E *= np.sqrt(share).astype(E.dtype)[:, None]
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
    if not R.size or np.tril(R, -1).any():
        return np.asarray(B @ R)
    return np.asarray(dtrmm(1.0, R.T, B.T, lower=1)).T  # (R'B')', by columns in memory


# --- the matrix of all rows ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NormalMatrix:
    """G'SG of all rows, with what else one pass over them gives.

    Attributes
    ----------
    matrix : (m, m) array
        G'SG, in float32 where that serves.
    sums : (m, k) array
        F'V, in float64.
    gram : FactoredGram
        K, with its rows held where steps of refinement will need many passes.
    """

    matrix: Array
    sums: Array
    gram: FactoredGram

    @classmethod
    def of(cls, problem: LinearSystem, V: Array) -> NormalMatrix:
        """Go over all rows once; V (n, k) is what is pulled back beside."""
        gram: Any = problem.gram
        if not isinstance(gram, StreamedGram) or gram.written is not None:
            matrix = sampled_normal_matrix(problem, gram.shape[0], 0)
            return cls(matrix, gram.pull(V), gram)
        return _Pass(problem, V, is_mixed_late(problem)).run()


class _Pass:
    """One pass over all rows b, or over the features where they must be mixed first."""

    def __init__(self, problem: LinearSystem, V: Array, late: bool) -> None:
        gram: Any = problem.gram
        self.problem, self.gram, self.V, self.late = problem, gram, V, late
        width = gram.width if late else gram.rank
        self.sums = Sums.zero(width, problem.bias)
        self.pulled = np.zeros((width, V.shape[1]))
        self.dtype: Any = np.float64
        self.held: Array | None = None

    def run(self) -> NormalMatrix:
        """Add up all blocks; the first says in which precision."""
        gram, s = self.gram, self.problem.row_weights
        rows_of = gram.sampled_raw if self.late else gram.sampled
        R = gram.map.mixing if self.late else None
        parts = list(_parts(gram.shape[0], gram.width))
        for done, part in enumerate(parts):
            check()
            B = rows_of(part)
            self.pulled += B.T @ self.V[part]
            if self.held is not None:
                self.held[part] = B
            if done == 0 and len(parts) > _FEW_BLOCKS and self._is_worth_a_try():
                self._try(B, s[part])
            else:
                self.sums.add(B, s[part], self.dtype)
        matrix, _ = self.sums.mixed(R)
        if self.held is not None:
            gram = StreamedGram(gram.features, gram.map, gram.X, self.held, is_filled=True)
        return NormalMatrix(matrix, self.pulled if R is None else R.T @ self.pulled, gram)

    def _is_worth_a_try(self) -> bool:
        size = float(self.gram.longest().max(initial=0.0))
        in_range = self.late and FLOAT32_RANGE[0] < size < FLOAT32_RANGE[1]
        return in_range and is_mixed_late(self.problem, _SINGLE, _TRIED)

    def _try(self, B: Array, s: Array) -> None:
        """Add the first block both ways, and see what the difference does to the equations."""
        problem, n, R = self.problem, self.gram.shape[0], self.gram.map.mixing
        raw = B.astype(np.float32)
        self.sums.add(B, s)
        assert self.sums.middle is not None
        rough = Sums(np.zeros_like(self.sums.square), self.sums.first * 0, 0.0, None, True)
        rough.middle = self.sums.middle
        rough.add(raw.astype(np.float64), s, np.float32)
        blocks = n / len(s)
        pilot = Preconditioner.of_matrix(blocks * self.sums.mixed(R)[0], problem)
        moved = np.sqrt(blocks) * pilot.moved(rough.square - self.sums.square, R)
        if not moved < _MOVED:
            return
        self.dtype = np.float32
        if moved > _REFINED and within_budget(_HELD * 4.0 * n * self.gram.width):
            self.held = np.empty((n, self.gram.width), dtype=np.float32)
            self.held[: len(s)] = raw
