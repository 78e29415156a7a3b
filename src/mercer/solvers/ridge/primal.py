"""Linear systems with K = F F' in the space of the features: cost n D^2 instead of n^3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer.array_types import Array
from mercer.backends import choose_backend
from mercer.backends.lapack import interruptible
from mercer.gram import FactoredGram
from mercer.problems import LinearSystem
from mercer.solvers.base import Solution, Solver, Status, Watch, report
from mercer.solvers.ridge.design import Design, resolved

_REFINEMENTS = 2
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Primal(Solver):
    """Solve (G'SG + penalty I) w = G'S y for the features G = F, centred when there is a bias.

    The normal equations square the condition number; two steps of refinement against the residual
    of the features themselves win back what that costs. Where they cannot, and for penalties that
    rounding would swallow, singular values of the features give the answer of least norm.
    """

    answers = LinearSystem

    def _obstacle(self, problem: LinearSystem) -> str | None:
        """Take linear systems whose Gram is factored."""
        if isinstance(problem.gram, FactoredGram):
            return None
        return "Primal needs a LinearSystem whose kernel has an explicit finite feature map"

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a penalty."""
        design = Design.of(problem.gram, problem.row_weights, problem.bias)
        matrix = design.normal_matrix()
        floor = _EPS * float(np.trace(matrix)) / max(1, len(matrix))
        weights = np.empty((len(matrix), problem.targets.shape[1]))
        status = Status.SOLVED
        for done, columns in enumerate(problem.groups(), start=1):
            y, penalty = problem.targets[:, columns], float(problem.penalties[columns[0]])
            if penalty > floor:
                weights[:, columns] = _refined(design, matrix, y, penalty)
            else:
                weights[:, columns], whole = _least_squares(design, y)
                status = status if whole else Status.SINGULAR
            watch.tick(done, np.nan)  # told, but a direct answer has no half way to stop at
        value = design.coefficients(weights, problem.targets, problem.penalties, floor)
        return report(self, value, status, 1, watch)


def _refined(design: Design, matrix: Array, y: Array, penalty: float) -> Array:
    A = matrix.copy()
    A.flat[:: len(A) + 1] += penalty
    diagonal = A.diagonal().copy()
    info = choose_backend().cholesky(A)
    # a pivot at the level of rounding means the factor holds noise, not the matrix
    if info or (np.square(A.diagonal()) <= len(A) * _EPS * diagonal).any():
        return _least_squares(design, y, penalty)[0]
    factor, centred = (A.T, False), design.center(y)
    w = linalg.cho_solve(factor, design.rmatvec(centred), check_finite=False)
    for _ in range(_REFINEMENTS):
        left = design.center(centred - design.push(w))
        w = w + linalg.cho_solve(factor, design.rmatvec(left) - penalty * w, check_finite=False)
    return np.asarray(w)


def _spread(design: Design, E: Array, Vt: Array) -> Array:
    """Return the singular values, less the rounding of the means that were taken off.

    A sum of n terms may be off by n eps of them, which shifts all rows alike.
    """
    along = E @ Vt.T
    if design.bias:
        root = np.sqrt(design.s)
        along -= np.outer(root, root @ along / design.s.sum())
    return np.asarray(np.linalg.norm(along, axis=0))


def _least_squares(design: Design, y: Array, penalty: float = 0.0) -> tuple[Array, bool]:
    """Solve by singular values: of all best fits, that of least norm; and whether it was alone."""
    root = np.sqrt(design.s)[:, None]
    E = root * design.dense()
    try:
        U, sigma, Vt = interruptible(np.linalg.svd, E, full_matrices=False)
    except np.linalg.LinAlgError:  # of numbers that are none, or too far apart for any answer
        return np.full((E.shape[1], y.shape[1]), np.nan), False
    kept = resolved(_spread(design, E, Vt), Vt, design.lengths(), E.shape)
    shrink = sigma[kept] / (sigma[kept] ** 2 + penalty)
    w = Vt[kept].T @ (shrink[:, None] * (U[:, kept].T @ (root * design.center(y))))
    return np.asarray(w), len(sigma) == E.shape[1] and bool(kept.all())
