"""Discriminant directions with K = F F', in the space of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.gram import FactoredGram
from mercer.points import is_sparse, to_dense
from mercer.problems import Directions, Discriminant
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.discriminant.discriminate import (
    GOOD,
    NOT_DEFINITE,
    has_lost_pivots,
    rank_of,
    row_size,
)
from mercer.solvers.spectral.signs import signs_of

_ROWS_AT_ONCE = 1024  # centred in the cache: fresh memory for a copy costs more than the work
_CANCELLED = 1e-6  # of a sum of squares: less, and taking off the mean cost too many digits


@dataclass(frozen=True)
class PrimalDiscriminant(Solver):
    """Factor S_W + penalty I = L L'; singular vectors of L^-1 (m_c - m) sqrt(p_c) are L'w."""

    answers = Discriminant

    def _obstacle(self, problem: Discriminant) -> str | None:
        """Take problems whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "PrimalDiscriminant needs a Discriminant whose kernel has an explicit feature map"

    def run(self, problem: Discriminant, watch: Watch, start: Any = None) -> Solution:
        """Factor the scatter, whiten the class means, rotate."""
        F = problem.gram.factor  # refused otherwise
        require_memory(
            2 * F.shape[1] ** 2 * 8, f"the scatter of {F.shape[1]} features", "Use fewer features."
        )
        means = np.asarray(F.T @ problem.averages)  # (D, classes)
        S, left = _scatter(problem, F, means)
        means += left
        B = problem.between(means, means @ problem.shares)
        rank = rank_of(np.linalg.svd(B, compute_uv=False), float(np.sqrt(row_size(problem))))
        L = _factor(problem, S, F)
        watch.tick(1, np.nan)
        white = linalg.solve_triangular(L, B, lower=True, check_finite=False)
        U, sigma, _ = np.linalg.svd(white, full_matrices=False)
        count = min(problem.count, rank)
        W = linalg.solve_triangular(L, U[:, :count], lower=True, trans="T", check_finite=False)
        f = np.asarray(F @ W) - (means @ problem.shares) @ W
        turn = signs_of(f)
        W, f, values = W * turn, f * turn, sigma[:count] ** 2
        residual = _residual(problem, W, f, B, values)
        watch.tick(2, residual)
        status = Status.SOLVED if residual <= GOOD else Status.INACCURATE
        detail = f"residual {residual:.1e}"
        return report(self, Directions(values, weights=W), status, 1, watch, detail)


def _residual(problem: Discriminant, W: Array, f: Array, B: Array, values: Array) -> float:
    """Measure S_B w - lambda (S_W + penalty) w by products with the features themselves."""
    F = problem.gram.factor
    between = B @ (B.T @ W)
    inside = np.asarray(F.T @ problem.within(f)) + problem.penalty * W
    size = float(np.linalg.norm(between[:, 0]))
    left = float(np.linalg.norm(between - values * inside, axis=0).max())
    return left / max(size, float(np.finfo(float).tiny))


def _factor(problem: Discriminant, S: Array, F: Any) -> Array:
    A = np.ascontiguousarray(S)
    A.flat[:: len(A) + 1] += problem.penalty
    diagonal = A.diagonal().copy()
    info = choose_backend().cholesky(A)
    if info or has_lost_pivots(A, diagonal, np.abs(_largest(F))):
        raise np.linalg.LinAlgError(NOT_DEFINITE)
    return A


def _largest(F: Any) -> Array:
    """Return the largest entry of each column."""
    highest, lowest = (to_dense(end).ravel() for end in (F.max(axis=0), F.min(axis=0)))
    return np.maximum(highest, -lowest)


def _scatter(problem: Discriminant, F: Any, means: Array) -> tuple[Array, Array]:
    """Return S_W, and what rounding left of the class means.

    Sparse features are not centred, their means are taken off afterwards; unless these are so large
    that nothing but rounding would be left.
    """
    root = np.sqrt(problem.row_weights)
    mass = np.bincount(problem.codes, problem.row_weights, len(problem.shares))
    if is_sparse(F):
        weighted = sparse.diags_array(root) @ F
        squares = (weighted.T @ weighted).toarray()
        S = np.asarray(squares - (means * mass) @ means.T)
        if (S.diagonal() > _CANCELLED * squares.diagonal()).all():
            return S, np.zeros_like(means)
    total, left, averages = np.zeros((F.shape[1],) * 2), np.zeros_like(means), problem.averages
    for first in range(0, F.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        away = to_dense(F[part]) - means.T[problem.codes[part]]
        left += away.T @ averages[part]
        away *= root[part, None]
        total += away.T @ away
    return total - (left * mass) @ left.T, left
