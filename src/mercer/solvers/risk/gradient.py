"""Plain gradient descent and stochastic gradients with a chosen step, as textbooks have them.

The cost is the mean over rows, C = (sum_i s_i loss(f(x_i), y_i) + penalty / 2 |f|^2) / sum_i s_i,
and steps are along its gradient, with nothing to precondition it. Coefficients of rows are changed
beside weights of features, so that both are one function at every step; without features, steps are
those of the function itself. Steps that are too long explode: that is told, and the best place on
the way is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.array_types import Array
from mercer.gram import FactoredGram
from mercer.problems import Coefficients
from mercer.problems.risk.smooth_risk import SmoothRisk
from mercer.solvers.base import Solution, Solver, Status, Watch, report

_EXPLODED = 1e8  # times the first cost: beyond, nothing comes back
_GAP = 1e-7  # of the objective: a tenth of what certificates ask
_POWERS = 30  # iterations for the largest curvature, in the sentence about steps


def wrong_setting(solver: Solver, sizes: tuple[str, ...], count: str) -> str | None:
    """Say what is wrong with the step, with numbers not below zero, or with a count, if anything.

    Parameters
    ----------
    solver : Solver
        Whose settings.
    sizes : tuple of str
        Which must be finite numbers, not negative.
    count : str
        Which must be a whole number, not negative.
    """
    name, step, steps = type(solver).__name__, vars(solver)["step"], getattr(solver, count)
    if not (isinstance(step, Real) and 0 < float(step) < np.inf):
        return f"{name}: step={step!r} must be positive, and finite"
    for size in sizes:
        value = getattr(solver, size)
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            return f"{name}: {size}={value!r} must be positive, or zero"
    if not (isinstance(steps, Integral) and int(steps) >= 0):
        return f"{name}: {count}={steps!r} must be a whole number, positive or zero"
    return None


@dataclass(frozen=True)
class GradientDescent(Solver):
    """Steps of one length along the gradient of the mean cost.

    Parameters
    ----------
    step : float
        Length eta of a step: w - eta dC/dw, b - eta dC/db. Above 2 over the largest curvature
        of C it explodes, far below it crawls.
    max_iter : int
        Largest number of steps.
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.

    Notes
    -----
    `solution_.trace` has the cost C before each step in `measure`.
    """

    answers = SmoothRisk

    step: float = 0.1
    max_iter: int = 1000
    tol: float = 1e-7

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        return wrong_setting(self, ("tol",), "max_iter")

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Go down until the gradient is small, or the cost explodes."""
        at, done = _Place(problem, start), 0
        status = Status.ITERATION_LIMIT
        for done in range(self.max_iter + 1):
            ended = at.judge(self.tol, watch, done)
            if ended is not None or done == self.max_iter:
                status = ended or status
                break
            at.move(self.step / at.total, at.slopes, problem.penalty)
        return at.reported(self, status, done, watch, at.longest())


@dataclass(frozen=True)
class StochasticGradient(Solver):
    """Steps along the gradient of one row's cost, rows drawn at random.

    Parameters
    ----------
    step : float
        Length eta of the first step: w - eta (loss' x_n + penalty / n w).
    decay : float
        Steps shrink as eta / (1 + decay t / n), t the number of steps so far; 0 for steps of one
        length, which wiggle about the minimum for ever.
    epochs : int
        As many steps as there are rows are an epoch; after each the gradient of all rows is looked
        at.
    tol : float
        Gradient, relative to what pulls on the function, at which it ends.
    random_state : int
        Seed of the rows drawn.

    Notes
    -----
    `solution_.trace` has the mean cost of all rows after each epoch in `measure`.
    """

    answers = SmoothRisk

    step: float = 0.1
    decay: float = 0.0
    epochs: int = 50
    tol: float = 1e-7
    random_state: int = 0

    def _obstacle(self, problem: SmoothRisk) -> str | None:
        wrong = wrong_setting(self, ("decay", "tol"), "epochs")
        if wrong is not None:
            return wrong
        seed: Any = self.random_state
        if not (isinstance(seed, Integral) and int(seed) >= 0):
            return f"StochasticGradient: random_state={seed!r} must be a whole number, not negative"
        if isinstance(problem.gram, FactoredGram):
            return None
        return (
            "StochasticGradient needs a kernel with an explicit finite feature map (Linear, "
            "low-degree Polynomial); use GradientDescent() or NewtonRisk() for others"
        )

    def run(self, problem: SmoothRisk, watch: Watch, start: Any = None) -> Solution:
        """Take as many steps as there are rows, look, and so on."""
        at, n, done = _Place(problem, start), len(problem.codes), 0
        rng, heights = np.random.default_rng(self.random_state), np.cumsum(problem.weights)
        status = Status.ITERATION_LIMIT
        for done in range(self.epochs + 1):
            ended = at.judge(self.tol, watch, done)
            if ended is not None or done == self.epochs:
                status = ended or status
                break
            drawn = np.searchsorted(heights, rng.random(n) * heights[-1], side="right")
            for t, row in enumerate(np.minimum(drawn, n - 1).tolist(), start=done * n):
                at.move_by_row(row, self.step / (1.0 + self.decay * t / n))
        return at.reported(self, status, done, watch, at.longest_by_row())


class _Place:
    """Where a descent stands: coefficients of rows, weights of features, bias, and the best."""

    def __init__(self, problem: SmoothRisk, start: Coefficients | None) -> None:
        n, k = len(problem.codes), problem.columns
        self.problem, self.total = problem, float(problem.weights.sum())
        self.F: Any = problem.gram.factor if isinstance(problem.gram, FactoredGram) else None
        self.a = np.zeros((n, k)) if start is None else start.coef.copy()
        self.b = np.zeros(k) if start is None else start.intercept.copy()
        self.w = None if self.F is None else np.asarray(self.F.T @ self.a)
        self.first = self.lowest = np.inf
        self.best = self._held()
        self.left = np.inf
        self.slopes = np.zeros((n, k))

    def judge(self, tol: float, watch: Watch, step: int) -> Status | None:
        """Look at cost and gradient; say why to end, if so."""
        problem = self.problem
        with np.errstate(over="ignore", invalid="ignore"):
            image = np.asarray(problem.gram @ self.a if self.F is None else self.F @ self.w)
            risk, self.slopes = problem.both(image + self.b)
            squared = (self.a * image).sum() if self.w is None else np.square(self.w).sum()
            cost = (risk + 0.5 * problem.penalty * float(squared)) / self.total
            gradient = self._gradient()
        if step == 0:
            self.first = cost
        if not np.isfinite(cost) or cost > _EXPLODED * max(self.first, np.finfo(float).tiny):
            watch.tick(step, cost if np.isfinite(cost) else np.inf)
            return Status.DIVERGED
        if cost <= self.lowest:
            self.lowest, self.best = cost, self._held()
        proven = gradient**2 <= _GAP * 2 * problem.penalty * abs(cost * self.total)
        stopped = watch.tick(step, cost)
        if self.left <= tol and (proven or problem.penalty == 0 or not problem.loss.convex):
            return Status.SOLVED
        return watch.stopped if stopped else None

    def move(self, length: float, slopes: Array, penalty: float) -> None:
        """Take a step of all rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            keep = 1.0 - length * penalty
            self.a = keep * self.a - length * slopes
            if self.w is not None:
                self.w = keep * self.w - length * np.asarray(self.F.T @ slopes)
            if self.problem.bias:
                self.b = self.b - length * slopes.sum(axis=0)

    def move_by_row(self, row: int, length: float) -> None:
        """Take a step of one row."""
        assert self.w is not None
        problem, x = self.problem, self.F[[row]]
        with np.errstate(over="ignore", invalid="ignore"):
            code = problem.codes[row : row + 1]
            slope = problem.loss.slopes(np.asarray(x @ self.w) + self.b, code)
            keep = 1.0 - length * problem.penalty / self.total
            if keep != 1.0:
                self.a *= keep
                self.w *= keep
            self.a[row] -= length * slope[0]
            self.w -= length * np.asarray(x.T @ slope)
            if problem.bias:
                self.b = self.b - length * slope[0]

    def reported(
        self, solver: Solver, status: Status, done: int, watch: Watch, longest: float
    ) -> Solution:
        """Return where it ended, or the best place of a way that exploded."""
        value = self.best if status is Status.DIVERGED else self._held()
        seen = f"the gradient is {self.left:.1e} of what pulls on the function"
        if status in (Status.DIVERGED, Status.ITERATION_LIMIT):
            seen += f"; a step of more than about {longest:.2g} explodes"
        if not self.problem.loss.convex:
            seen += "; the loss is not convex, and this is where one start led"
        return report(solver, value, watch.stopped or status, done, watch, seen)

    def _held(self) -> Coefficients:
        w = None if self.w is None else self.w.copy()
        return Coefficients(self.a.copy(), self.b.copy(), w)

    def _gradient(self) -> float:
        """Note the gradient, relative to what pulls before it cancels; return its norm."""
        problem, slopes = self.problem, self.slopes
        sizes = problem.sizes(slopes)
        if self.w is not None:
            left = problem.penalty * self.w + np.asarray(self.F.T @ slopes)
            size = float(np.sqrt(np.square(left).sum()))
        else:
            rows = problem.penalty * self.a + slopes
            size = float(np.sqrt(max(float((rows * (problem.gram @ rows)).sum()), 0.0)))
        reach = float((np.sqrt(np.maximum(problem.gram.diag(), 0.0)) @ sizes).sum())
        self.left = size / reach if reach > 0 else 0.0
        if problem.bias:
            balance = np.abs(slopes.sum(axis=0)) / np.maximum(sizes.sum(axis=0), 1e-300)
            self.left = max(self.left, float(balance.max()))
        return size

    def longest_by_row(self) -> float:
        """Return 2 over the largest curvature of the cost of one row."""
        problem = self.problem
        f = np.zeros((1, problem.columns))
        bend = problem.loss.curvature(f, problem.codes[:1]).times(np.ones((1, problem.columns)))
        lengths = problem.gram.diag() + problem.bias
        steepest = float(np.abs(bend).max(initial=0.0)) * float(lengths.max(initial=0.0))
        total = steepest + problem.penalty / self.total
        return 2.0 / total if total > 0 else np.inf

    def longest(self) -> float:
        """Return 2 over the largest curvature of the mean cost, by power iteration at zero."""
        problem, n = self.problem, len(self.problem.codes)
        bend = problem.loss.curvature(np.zeros((n, problem.columns)), problem.codes)
        share = problem.weights / self.total
        v, curvature = np.ones((n, problem.columns)) + np.arange(n)[:, None] % 7, 0.0
        for _ in range(_POWERS):
            moved = share[:, None] * bend.times(v)
            grown = np.asarray(problem.gram @ moved) + problem.bias * moved.sum(axis=0)
            size = float(np.linalg.norm(grown))
            if not np.isfinite(size) or size == 0:
                break
            curvature, v = size / float(np.linalg.norm(v)), grown / size
        total = curvature + problem.penalty / self.total
        return 2.0 / total if total > 0 else np.inf
