"""Linear systems with K = F F' in the space of the features: cost n D^2 instead of n^3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mercer._points import is_sparse, to_dense
from mercer._types import Array
from mercer.gram import FactoredGram
from mercer.problems import Coefficients, LinearSystem
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_REFINEMENTS = 2


@dataclass(frozen=True)
class Primal(Solver):
    """Solve (G'SG + penalty I) w = G'S y for the features G = F, centred when there is a bias.

    The normal equations square the condition number; two steps of refinement against the residual
    of the features themselves win back what that costs.
    """

    def refuses(self, problem: Any) -> str | None:
        """Take linear systems whose Gram is factored."""
        if isinstance(problem, LinearSystem) and isinstance(problem.gram, FactoredGram):
            return None
        return "Primal needs a LinearSystem whose kernel has an explicit finite feature map"

    def run(self, problem: LinearSystem, watch: Watch, start: Any = None) -> Solution:
        """Solve for each group of targets that share a penalty."""
        design = Design.of(problem.gram, problem.row_weights, problem.bias)
        weights = np.empty((design.F.shape[1], problem.targets.shape[1]))
        status = Status.SOLVED
        for columns in problem.groups():
            y, penalty = problem.targets[:, columns], float(problem.penalties[columns[0]])
            if penalty > 0:
                weights[:, columns] = _refined(design, y, penalty)
            else:
                weights[:, columns] = _least_squares(design, y)
                status = Status.SINGULAR
        value = design.coefficients(weights, problem.targets, problem.penalties)
        return report(self, value, status, 1, watch)


@dataclass(frozen=True, eq=False)
class Design:
    """The features F with row weights s and the weighted mean of F (zero without a bias)."""

    F: Any
    s: Array
    mean: Array
    bias: bool

    @classmethod
    def of(cls, gram: Any, s: Array, bias: bool) -> Design:
        """Take the features of a factored Gram."""
        F = gram.factor
        mean = np.asarray(F.T @ s) / s.sum() if bias else np.zeros(F.shape[1])
        return cls(F, s, mean, bias)

    def center(self, y: Array) -> Array:
        """Take the weighted mean off targets, when there is a bias."""
        return np.asarray(y - self.s @ y / self.s.sum()) if self.bias else y

    def normal_matrix(self) -> Array:
        """Give G'SG; the mean is taken off afterwards, so sparse features stay sparse."""
        scaled = (
            self.F.multiply(self.s[:, None]).tocsr()
            if is_sparse(self.F)
            else (self.F * self.s[:, None])
        )
        product = to_dense(self.F.T @ scaled)
        return np.asarray(product - self.s.sum() * np.outer(self.mean, self.mean))

    def pull(self, residual: Array) -> Array:
        """Give G'S r for a residual that was centred."""
        return np.asarray(self.F.T @ (self.s[:, None] * residual))

    def push(self, weights: Array) -> Array:
        """Give G w."""
        return np.asarray(self.F @ weights - self.mean @ weights)

    def coefficients(self, weights: Array, targets: Array, penalties: Array) -> Coefficients:
        """Give the answer in both spaces: a = S (y - F w - b) / penalty."""
        residual = self.center(targets) - self.push(weights)
        intercept = (
            self.s @ targets / self.s.sum() - self.mean @ weights
            if self.bias
            else np.zeros(targets.shape[1])
        )
        penalised = penalties > 0
        coef = self.s[:, None] * residual / np.where(penalised, penalties, 1.0)
        if not penalised.all():
            coef[:, ~penalised] = linalg.lstsq(to_dense(self.F).T, weights[:, ~penalised])[0]
        return Coefficients(coef, intercept, weights)


def _refined(design: Design, y: Array, penalty: float) -> Array:
    matrix = design.normal_matrix()
    matrix.flat[:: len(matrix) + 1] += penalty
    try:
        factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return _least_squares(design, y, penalty)
    centred = design.center(y)
    w = linalg.cho_solve(factor, design.pull(centred), check_finite=False)
    for _ in range(_REFINEMENTS):
        left = design.center(centred - design.push(w))
        w = w + linalg.cho_solve(factor, design.pull(left) - penalty * w, check_finite=False)
    return np.asarray(w)


def _least_squares(design: Design, y: Array, penalty: float = 0.0) -> Array:
    """Solve by singular values: of all best fits, the weights of least norm."""
    root = np.sqrt(design.s)[:, None]
    U, sigma, Vt = linalg.svd(
        root * (to_dense(design.F) - design.mean), full_matrices=False, check_finite=False
    )
    floor = max(design.F.shape) * np.finfo(float).eps * sigma.max(initial=0.0)
    kept = sigma > floor
    shrink = sigma[kept] / (sigma[kept] ** 2 + penalty)
    return np.asarray(Vt[kept].T @ (shrink[:, None] * (U[:, kept].T @ (root * design.center(y)))))
