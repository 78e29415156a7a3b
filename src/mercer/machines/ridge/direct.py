"""Direct ridge solvers: Cholesky factor, minimum-norm solution, and paths by Cholesky factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mercer import deadline
from mercer.array_types import Array
from mercer.backends import Band, choose_backend
from mercer.backends.contract import Factor
from mercer.gram import Gram, ShiftedGram
from mercer.gram.policy import factor_bytes
from mercer.machines.ridge.problem import (
    Coefficients,
    LinearSystem,
    PathValue,
    RidgePath,
    RidgePoint,
    assemble_path,
    ridge_point,
)
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.eigen.dense import DECOMPOSED

# --- banded --------------------------------------------------------------------------------------
#
# Systems with a band plus a penalty: what a matrix that was reduced to a band is solved by.


def solve_band(band: Band, penalty: float, rotated: Array) -> Array:
    """Return (B + p)^-1 times columns that Q' has turned; NaN where B + p is not definite."""
    lower = band.lower.T.copy(order="F")
    lower[0] += penalty
    _, solved, info = lapack.dpbsv(lower, rotated, lower=1, overwrite_ab=1)
    return np.asarray(solved) if info == 0 else np.full_like(rotated, np.nan)


# --- weighted ------------------------------------------------------------------------------------
#
# The Gram matrix with row weights on both sides.


def weighted(gram: Gram, root: Array) -> Array:
    """Return S^1/2 K S^1/2 as a new matrix, free to be overwritten."""
    matrix = choose_backend().empty(*gram.shape)
    K, scaled = gram.dense(), not (root == 1.0).all()
    for some in deadline.row_slices(len(root), len(root)):
        matrix[some] = K[some]
        if scaled:
            matrix[some] *= root[some, None]
            matrix[some] *= root
    return matrix


# --- path end ------------------------------------------------------------------------------------
#
# How every walk along a path of penalties ends: the best point, and why it ended.


def path_end(
    problem: RidgePath, points: list[RidgePoint], watch: Watch
) -> tuple[PathValue, Status]:
    """Choose among the penalties that were reached; the others have infinite scores."""
    missing = len(problem.penalties) - len(points)
    nan = np.full(problem.targets.shape, np.nan)
    value = assemble_path(problem, points + [RidgePoint(nan, nan[0], nan)] * missing)
    if not np.isfinite(value.residuals).all():
        return value, Status.NOT_DEFINITE
    return value, Status.SOLVED if not missing else watch.stopped or Status.STOPPED


# --- least norm ----------------------------------------------------------------------------------
#
# Linear systems that are singular to working precision: the limit of a vanishing penalty.
#
# With E = S^1/2 K S^1/2 = V diag(m) V' and c = V'S^1/2 1, the ridge solution tends, as the
# penalty goes to zero, to the weighted least squares fit of least norm. In directions where E
# vanishes only the bias can fit anything, so the bias is fitted there, if the constant reaches
# there at all.

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


# --- cholesky ------------------------------------------------------------------------------------
#
# Linear systems by one Cholesky factorisation per distinct diagonal.


@dataclass(frozen=True)
class Cholesky(Solver):
    """Factor K + diag(shift) = L L' and solve; the answer is exact to rounding.

    A matrix that is singular to working precision gets the answer of least norm instead, by an
    eigendecomposition, and the status says so.
    """

    answers = LinearSystem

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a matrix."""
        n, t = problem.targets.shape
        require_memory(
            factor_bytes(n),
            f"the Cholesky factor of {n} points",
            "Use solver=ConjugateGradient(), which stores no matrix.",
            held=problem.gram.nbytes,
        )
        coef, intercept, status = np.empty((n, t)), np.zeros(t), Status.SOLVED
        for done, columns in enumerate(problem.groups(), start=1):
            right = np.column_stack([problem.targets[:, columns], np.ones(n)])
            factor = shifted_factor(ShiftedGram(problem.gram, problem.shift(columns[0])))
            if factor is not None:
                solved = factor.solve(right)
                coef[:, columns], intercept[columns] = eliminate_bias(solved, problem.bias)
            else:
                coef[:, columns], intercept[columns], ended = least_norm(problem, columns)
                status = status if ended is Status.SOLVED else ended
            watch.tick(done, np.nan)  # told, but a direct answer has no half way to stop at
        return report(self, Coefficients(coef, intercept), status, 1, watch)


def shifted_factor(gram: ShiftedGram) -> Factor | None:
    """Return the Cholesky factor; None if the matrix is singular to working precision."""
    factor = gram.base.cholesky(gram.shift)
    if factor is None:
        return None
    # a pivot at the level of rounding means the factor holds noise, not the matrix
    noise = gram.shape[0] * np.finfo(float).eps * gram.diag()
    return None if (np.square(factor.diagonal()) <= noise).any() else factor


def eliminate_bias(solved: Array, bias: bool) -> tuple[Array, Array]:
    """Turn C^-1 [y, 1] into coefficients and biases of the bordered system.

    With u = C^-1 1: b = 1'a / 1'u makes the coefficients a - b u sum to zero.
    """
    a, u = solved[:, :-1], solved[:, -1]
    if not bias or u.sum() == 0:
        return a, np.zeros(a.shape[1])
    intercept = a.sum(axis=0) / u.sum()
    return a - np.outer(u, intercept), intercept


# --- cholesky path -------------------------------------------------------------------------------
#
# Ridge paths of a few penalties: a Cholesky factor and its inverse for each.


@dataclass(frozen=True)
class CholeskyPath(Solver):
    """For each penalty C = L L'; diag(C^-1) is the column sums of squares of L^-1."""

    answers = RidgePath

    def run(self, problem: RidgePath, watch: Watch, start: Any = None) -> Solution:
        """Factor and invert for each penalty."""
        root = np.sqrt(problem.row_weights)
        right = root[:, None] * np.column_stack([problem.targets, np.ones(len(root))])
        points: list[RidgePoint] = []
        zero = np.zeros(len(root))
        with watch.keeping(lambda: bool(points)):
            for penalty in problem.penalties.tolist():
                diag, solved = _inverted(problem.gram.cholesky(penalty + zero, root), right)
                G_diag = problem.row_weights * diag
                points.append(ridge_point(problem, penalty, G_diag, root[:, None] * solved))
                if watch.tick(len(points), len(problem.penalties) - len(points)):
                    break
        value, status = path_end(problem, points, watch)
        return report(self, value, status, len(points), watch)


def _inverted(factor: Factor | None, right: Array) -> tuple[Array, Array]:
    """Return diag(A^-1) and A^-1 right; NaN if A is not positive definite."""
    if factor is None:
        return np.full(len(right), np.nan), np.full_like(right, np.nan)
    solved = factor.solve(right)
    return factor.inverse_diagonal(), solved
