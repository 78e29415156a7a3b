"""Newton's method where nothing holds the weights back: least squares, logistic regression.

Without a penalty the answer is the weights themselves; coefficients of rows that give them are not
unique, and the shortest are taken. The machine has seen to it before that there is a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.points import to_dense
from mercer.problems import Coefficients
from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.resources import require_memory
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_SHORTEST = 1e-10
_CLOSE = 1e-7  # gradient, relative, up to which a descent that rounding stops has arrived


@dataclass(frozen=True)
class UnpenalizedNewton(Solver):
    """Newton steps, halved until they pay, for two classes or squares, features of full rank.

    Parameters
    ----------
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.
    max_iter : int
        Largest number of steps.
    """

    answers = SmoothRisk

    tol: float = 1e-12
    max_iter: int = 100

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        if problem.penalty == 0 and problem.loss.convex and isinstance(problem.gram, FactoredGram):
            return None
        return (
            "UnpenalizedNewton is for penalty=0, the log or squared loss, and a kernel with fewer "
            "features than rows (Linear, low-degree Polynomial); use NewtonRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Solve weighted least squares until the gradient is small."""
        n, d = problem.gram.factor.shape
        what = f"{n} rows of {d} features, three times"
        require_memory(3 * 8 * n * (d + 1), what, "Use penalty > 0.")
        F = augmented(problem)
        w, value = np.zeros((F.shape[1], problem.columns)), np.inf
        status, done, left = Status.ITERATION_LIMIT, 0, np.inf
        for done in range(self.max_iter + 1):
            f = F @ w
            value, slopes = problem.both(f)
            reach = np.abs(F).T @ np.abs(slopes)
            gradient = F.T @ slopes
            left = float((np.abs(gradient) / np.maximum(reach, 1e-300)).max(initial=0.0))
            if left <= self.tol or watch.tick(done, left):
                status = Status.SOLVED if left <= self.tol else watch.stopped or Status.STOPPED
                break
            ahead = _step(problem, F, w, value, slopes)
            if ahead is None:
                status = Status.SOLVED if left <= _CLOSE else Status.INACCURATE
                break
            w = ahead
        return report(self, held(problem, F, w), status, done, watch)


def augmented(problem: SmoothRisk) -> Array:
    """Return the features, with a column of ones for the bias last."""
    F = np.asarray(to_dense(problem.gram.factor), dtype=np.float64)
    return np.column_stack([F, np.ones(len(F))]) if problem.bias else F


def held(problem: SmoothRisk, F: Array, w: Array) -> Coefficients:
    """Return weights and bias, with the shortest coefficients of rows that give the weights."""
    d = F.shape[1] - int(problem.bias)
    bias = w[d] if problem.bias else np.zeros(w.shape[1])
    coef = np.linalg.lstsq(F[:, :d].T, w[:d], rcond=None)[0]
    return Coefficients(np.asarray(coef), np.asarray(bias), w[:d])


def _step(problem: SmoothRisk, F: Array, w: Array, value: float, slopes: Array) -> Array | None:
    """Return Newton's step by weighted least squares, halved until it pays."""
    bend = problem.loss.curvature(F @ w, problem.codes).times(np.ones_like(slopes))
    curved = problem.weights[:, None] * np.maximum(bend, 1e-300)
    step = np.zeros_like(w)
    for column in range(w.shape[1]):
        root = np.sqrt(curved[:, column])
        step[:, column] = -np.linalg.lstsq(root[:, None] * F, slopes[:, column] / root, rcond=None)[
            0
        ]
    promised, t = float((slopes * (F @ step)).sum()), 1.0
    while t > _SHORTEST and promised < 0:
        if problem.risk(F @ (w + t * step)) <= value + 1e-4 * t * promised:
            return np.asarray(w + t * step)
        t *= 0.5
    return None
