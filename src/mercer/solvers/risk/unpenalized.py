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
        w = before = np.zeros((F.shape[1], problem.columns))
        status, done, left, level = Status.ITERATION_LIMIT, 0, np.inf, False
        for done in range(self.max_iter + 1):
            last = left
            f = F @ w
            value, slopes = problem.both(f)
            reach = np.abs(F).T @ np.abs(slopes)
            gradient = F.T @ slopes
            left = float((np.abs(gradient) / np.maximum(reach, 1e-300)).max(initial=0.0))
            if left <= self.tol or watch.tick(done, left):
                status = Status.SOLVED if left <= self.tol else watch.stopped or Status.STOPPED
                break
            stalled = level and left > 0.5 * last
            if stalled and last < left:
                w, left = before, last
            ahead = None
            if not stalled:
                ahead, level = _step(problem, F, w, value, slopes)
            if ahead is None:
                status = Status.SOLVED if left <= _CLOSE else Status.INACCURATE
                break
            w, before = ahead, w
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


def _step(
    problem: SmoothRisk, F: Array, w: Array, value: float, slopes: Array
) -> tuple[Array | None, bool]:
    """Return Newton's step, halved until it pays, and whether it promises less than rounding.

    Near the minimum a step gains the square of its length, which values of the risk cannot resolve
    long before gradients are exact. So a step need not pay more than rounding may hide; where none
    promises more, the caller asks whether the gradient still falls.
    """
    bend = problem.loss.curvature(F @ w, problem.codes).times(np.ones_like(slopes))
    curved = problem.weights[:, None] * np.maximum(bend, 1e-300)
    step = np.zeros_like(w)
    for column in range(w.shape[1]):
        root = np.sqrt(curved[:, column])
        step[:, column] = -np.linalg.lstsq(root[:, None] * F, slopes[:, column] / root, rcond=None)[
            0
        ]
    promised, t = float((slopes * (F @ step)).sum()), 1.0
    hidden = 2 * _rounding(F, w, value, slopes)  # of both values
    while t > _SHORTEST and promised < 0:
        if problem.risk(F @ (w + t * step)) <= value + 1e-4 * t * promised + hidden:
            return np.asarray(w + t * step), -promised <= 2 * hidden  # half of it is gained
        t *= 0.5
    return None, True


def _rounding(F: Array, w: Array, value: float, slopes: Array) -> float:
    """Bound the rounding error of the risk, to first order and in any order of summation.

    The values F w are off by (d + 1) u |F| |w| at most (Higham, Accuracy and Stability, 3.1), which
    moves the risk by its slopes; a sum of n losses, none negative and each off by a few u, by
    (n + 8) u of itself. Twice u is `eps`.
    """
    n, d = F.shape
    moved = float((np.abs(slopes) * (np.abs(F) @ np.abs(w))).sum())
    return float(np.finfo(float).eps * ((n + 8) * abs(value) + (d + 1) * moved))
